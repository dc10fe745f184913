"""Exact circuits: rank-one constraints, Groth16, proofs."""
