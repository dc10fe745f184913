"""Verbs about learning records and files, without a chain."""
