"""Does a device give the defined bits? Primitives, kernels of every class, trees and trainings, against constants."""
