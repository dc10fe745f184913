"""Seeded populations that play the game for money."""
