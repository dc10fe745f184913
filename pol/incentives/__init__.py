"""Payouts, tickets, planted errors, jackpot and auction as integers; the game and its parameters."""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
