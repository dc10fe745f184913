"""Lowering: ATen operations to maps and folds, one rule each, in pure Python."""

from pol.graph.lowering import rules as _rules  # noqa: F401  # every rule enters itself into the table
from pol.graph.lowering.lower import Lowering, lower
from pol.graph.lowering.rule_table import RULES

__all__ = ["RULES", "Lowering", "lower"]
