"""Trainings in rounds with liars, and disputes about their claims."""
