"""Complex numbers as pairs of reals."""
