"""Verbs of parties and observers of a market."""
