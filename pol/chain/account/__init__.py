"""Accounts: signers, wallet, outbox, fees."""
