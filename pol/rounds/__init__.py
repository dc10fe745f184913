"""Trainings of many workers as a graph of claims whose starts follow from other claims (docs/spec/rounds.md)."""
