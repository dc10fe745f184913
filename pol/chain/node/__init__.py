"""Ethereum nodes: endpoints, quorum, logs, caches, and an embedded chain."""
