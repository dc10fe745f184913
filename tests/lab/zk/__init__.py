"""Instruments of zero-knowledge proofs."""
