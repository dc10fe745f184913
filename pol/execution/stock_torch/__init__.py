"""Native execution: a captured step on torch's own kernels."""
