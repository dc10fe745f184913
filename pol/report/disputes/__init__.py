"""Disputes as people read them: moves, what is left, the last operation."""
