"""Whole learning proofs: drawn segments, replayed by an engine, and one verdict with its report."""
