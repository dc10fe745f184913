"""Verbs that verify a training."""
