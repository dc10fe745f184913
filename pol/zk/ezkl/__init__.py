"""Proofs by EZKL: keys, prover, files."""
