"""Losses that torch computes by kernels of their own."""
