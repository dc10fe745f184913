"""Payouts, tickets, planted errors, jackpot and auction as integers; the game and its parameters."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
