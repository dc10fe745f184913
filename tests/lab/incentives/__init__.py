"""Mirrors and searches of incentives that only tests and benchmarks use."""
