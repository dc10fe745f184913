"""Verdicts on segments and whole proofs: the acceptance rule, second looks, screening."""
