"""Payouts, tickets, planted errors, jackpot and auction as integers. Arguments out of range raise ProtocolError."""
