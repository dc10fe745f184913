"""Replacements: operations without a rule of their own, computed by operations that have one."""

from pol.graph.capture.replacements import (
    complex_arithmetic,
    complex_memory,
    factorizations,
    fourier,
    functions,
    linear_systems,
    matrices,
    norms,
    numbers,
    order,
    places,
)
from pol.graph.capture.replacements.table import REPLACEMENTS

__all__ = ["REPLACEMENTS"]
FAMILIES = (
    *(functions, numbers, order, places, norms, matrices, factorizations, linear_systems),
    *(complex_arithmetic, complex_memory, fourier),
)
"""Importing them fills the table."""
