"""Instruments of the arithmetic: vectors, sweeps over all words, greatest errors."""
