"""Moves as calldata and back: their fields, bytes, sizes and gas (docs/spec/dispute.md)."""
