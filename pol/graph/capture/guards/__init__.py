"""Guards: what a capture refuses, because the program would be another training."""
