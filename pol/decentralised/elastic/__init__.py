"""Trainings whose workers join, leave, die and come back while it goes on (docs/spec/rounds.md)."""
