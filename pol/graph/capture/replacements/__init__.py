"""Replacements: operations without a rule of their own, computed by operations that have one."""

from pol.graph.capture.replacements.complex import arithmetic, fourier, memory
from pol.graph.capture.replacements.indexing import places
from pol.graph.capture.replacements.matrices import diagonals, factorizations, linear_systems, norms
from pol.graph.capture.replacements.numbers import elementary, order, transcendental
from pol.graph.capture.replacements.table import REPLACEMENTS

__all__ = ["REPLACEMENTS"]
FAMILIES = (
    *(transcendental, elementary, order, places, norms, diagonals, factorizations, linear_systems),
    *(arithmetic, memory, fourier),
)
"""Importing them fills the table."""
