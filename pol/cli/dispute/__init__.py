"""Verbs that read a kept dispute."""
