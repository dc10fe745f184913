"""Connections to Ethereum nodes: networks, their settings, and logs that are kept."""
