"""Trainings of many workers on a chain: plans, stakes, disputes, evidence, demands, shares (contracts/rounds)."""
