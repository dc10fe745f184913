"""One file for each family of operations; importing this package fills the table of rules.

The order is that of docs/operations.md, where the first line of a file's docstring is the family's heading.
"""

from types import ModuleType

from pol.graph.lowering.rules.elements import activations, draws, elementwise, integers, losses, powers
from pol.graph.lowering.rules.folds import matrix_products, normalization, reductions, running_sums, softmax
from pol.graph.lowering.rules.images import adaptive_pooling, convolutions, pooling, resampling
from pol.graph.lowering.rules.places import gathering, scatter, sorting
from pol.graph.lowering.rules.shapes import joins, padding, unfolding, views

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
