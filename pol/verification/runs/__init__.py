"""Recorded runs: checks of one, comparisons of two, and whether a resumption equals an uninterrupted run."""
