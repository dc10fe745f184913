"""Accounts recomputed from events: the vault's balances and every settlement."""
