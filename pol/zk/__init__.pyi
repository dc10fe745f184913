from .circuits import example_vectors as example_vectors
from .circuits import load_circuit as load_circuit
from .ezkl.error_bound import error_bound as error_bound
from .fixed_point import integer_step as integer_step
from .step_data import network_step as network_step
