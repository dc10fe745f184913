"""Contracts in general: creation, calls, events, relaying, announcements."""
