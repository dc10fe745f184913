"""Simulations at deployed contracts."""
