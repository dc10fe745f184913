"""Observers without a key."""
