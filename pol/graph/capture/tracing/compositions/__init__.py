"""Operations of torch as compositions of others, where torch has no decomposition, or none of the gradient.

They replace operations of a traced graph, gradients included: a composition is differentiated where its gradient needs
no formula of its own.
"""

import pol.graph.capture.replacements.traced_shapes  # noqa: F401  # results of operations under a trace
from pol.graph.capture.tracing.compositions.table import COMPOSITIONS, WRITES

__all__ = ["COMPOSITIONS", "WRITES"]
