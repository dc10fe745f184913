"""Tracing: from user code to a flat functional graph of ATen operations."""
