"""Canonical replay of segments, in this process or on many machines."""
