"""Lowering: ATen operations to maps and folds, by a table in pure Python."""

from pol.graph.lowering.program import RULES, lower

__all__ = ["RULES", "lower"]
