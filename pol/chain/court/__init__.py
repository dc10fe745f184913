"""The dispute game on chain."""
