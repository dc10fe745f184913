"""Kernels for GPUs, built for the host, give the bits of the reference on drawn nodes of every class."""
