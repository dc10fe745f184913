"""Functions of numbers, their order and statistics."""
