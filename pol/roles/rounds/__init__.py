"""Parties of trainings in rounds: workers and the keeper of the log, beside the processes that train."""
