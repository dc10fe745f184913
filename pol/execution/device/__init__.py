"""Step programs on GPUs: kernels that CUDA and, for tests, this machine's C++ compiler build from one source."""
