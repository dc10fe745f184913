"""Disputes played off chain."""
