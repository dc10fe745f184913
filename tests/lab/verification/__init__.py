"""Instruments of verification."""
