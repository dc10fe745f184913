"""Floating-point metrics for people. Nothing is decided by them: see `pol.verification.distance`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.graph.step_program import Component, StepProgram
from pol.graph.types import DType
from pol.verification.distance import require_state


@dataclass(frozen=True)
class Metrics:
    """How far ``x`` (the replay) is from ``y`` (the solver), over one component.

    ``l1``, ``l2`` and ``linf`` are norms of ``x - y`` and ``relative_*`` the same over the norm of ``x - start``;
    ``cosine`` is 1 - cos of the angle between the two updates ``x - start`` and ``y - start``. Any of them is NaN when
    it is undefined: a caller must never read NaN as agreement.
    """

    elements: int
    l1: float
    l2: float
    linf: float
    relative_l1: float
    relative_l2: float
    relative_linf: float
    cosine: float


def measure(
    program: StepProgram, start: Sequence[Words], x: Sequence[Words], y: Sequence[Words], component: Component
) -> Metrics | None:
    """The metrics of one component's f32 slots; None if the program has none.

    Raises:
        ProtocolError: a state doesn't fit the program.
    """
    for state in (start, x, y):
        require_state(program, state)
    indices = [i for i, s in enumerate(program.slots) if s.component == component and s.type.dtype == DType.F32]
    if not indices:
        return None
    origin, a, b = (
        np.concatenate([state[i].reshape(-1).view(np.float32).astype(np.float64) for i in indices])
        for state in (start, x, y)
    )
    with np.errstate(all="ignore"):
        difference, update, other = a - b, a - origin, b - origin
        return Metrics(
            elements=int(a.size),
            l1=float(np.abs(difference).sum()),
            l2=float(np.linalg.norm(difference)),
            linf=float(np.abs(difference).max()),
            relative_l1=_ratio(np.abs(difference).sum(), np.abs(update).sum()),
            relative_l2=_ratio(np.linalg.norm(difference), np.linalg.norm(update)),
            relative_linf=_ratio(np.abs(difference).max(), np.abs(update).max()),
            cosine=cosine_distance(update, other),
        )


def _ratio(part: np.floating, whole: np.floating) -> float:
    return float(part) / float(whole) if float(whole) > 0.0 else float("nan")


def cosine_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """1 - cos: 0 for equal directions, 1 for a right angle, 2 for opposite ones; NaN if either vector is zero."""
    if a.shape != b.shape:
        raise ProtocolError(f"no angle between vectors of shapes {a.shape} and {b.shape}")
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return 1.0 - float(a @ b) / norms if norms > 0.0 else float("nan")
