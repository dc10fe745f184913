"""Does a device give the defined bits? Primitives, kernels of every class, trees and trainings, against constants.

``gpt.step`` and ``cnn.step`` are step programs of two models of this project with drawn weights and data, under its
licence; `python -m lab.kernels.self_test_digests --programs` writes them.
"""
