"""Learning records on chain."""
