"""Rules of operations that move words and compute nothing."""
