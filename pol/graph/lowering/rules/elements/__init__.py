"""Rules of operations on each element by itself."""
