"""Verbs that read a recorded dispute."""
