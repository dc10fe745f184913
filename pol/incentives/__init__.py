"""Payouts, tickets, planted errors, jackpot and auction as integers."""
