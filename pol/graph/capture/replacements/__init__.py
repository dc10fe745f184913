"""Replacements: operations without a rule of their own, computed by operations that have one.

A gradient is an operation, too: it has a formula, or is that of the replacement, differentiated (`pullback`).
"""

import pol.graph.capture.replacements.traced_shapes  # noqa: F401  # results of operations under a trace
from pol.graph.capture.replacements.complex import arithmetic, fourier, inverse_stft, memory
from pol.graph.capture.replacements.images import affine_grids, grid_sampling, interpolation, pooling, windows
from pol.graph.capture.replacements.indexing import bags, masks, places
from pol.graph.capture.replacements.losses import ctc, margins
from pol.graph.capture.replacements.matrices import diagonals, factorizations, linear_systems, norms, products
from pol.graph.capture.replacements.numbers import (
    constants,
    elementary,
    order,
    quantization,
    statistics,
    transcendental,
)
from pol.graph.capture.replacements.table import EXACT, REPLACEMENTS

__all__ = ["EXACT", "REPLACEMENTS"]
FAMILIES = (
    *(transcendental, elementary, constants, order, statistics, quantization, masks, places, bags),
    *(diagonals, products, norms, factorizations, linear_systems),
    *(affine_grids, grid_sampling, interpolation, pooling, windows, ctc, margins),
    *(arithmetic, memory, fourier, inverse_stft),
)
"""Importing them fills the table."""
