"""Matrices: diagonals, products, norms, factorizations and systems."""
