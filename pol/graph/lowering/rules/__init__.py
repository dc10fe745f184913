"""One file for each family of operations; importing this package fills the table of rules.

The order is that of docs/operations.md, where the first line of a file's docstring is the family's heading.
"""

from types import ModuleType

from pol.graph.lowering.rules import (
    activations,
    adaptive_pooling,
    convolutions,
    draws,
    elementwise,
    gathering,
    integers,
    joins,
    losses,
    matrix_products,
    normalization,
    padding,
    pooling,
    powers,
    reductions,
    resampling,
    running_sums,
    scatter,
    softmax,
    sorting,
    unfolding,
    views,
)

FAMILIES: tuple[ModuleType, ...] = (
    views,
    joins,
    elementwise,
    activations,
    powers,
    integers,
    reductions,
    running_sums,
    softmax,
    normalization,
    matrix_products,
    convolutions,
    gathering,
    scatter,
    sorting,
    losses,
    pooling,
    adaptive_pooling,
    resampling,
    padding,
    unfolding,
    draws,
)
