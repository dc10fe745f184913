"""Beacon contracts, and drand's relays over HTTP."""
