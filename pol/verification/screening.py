"""A cheap look at all checkpoints for segments that don't look like their neighbours: a hint where to replay.

It is no evidence. Nothing is executed: the parameters of each segment move by some distance, and in an honest training
that distance changes slowly. Whoever forges a segment with care passes; whoever skips or pads steps without it doesn't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import Component
from pol.graph.types import DType
from pol.training.learning_proof import LearningProof, load_checkpoint
from pol.training.storage.store import Store
from pol.training.task import LoadedTask

REACH = 3
"""Neighbours on either side that a segment is compared with."""
SUSPICIOUS = 6.0
"""Scores from here on are named: the typical one is 1."""
_SMALLEST_SPREAD = 1e-3


@dataclass(frozen=True)
class Suspicion:
    """How little a segment looks like its neighbours.

    ``moved`` is the L2 norm of the change of its f32 parameters, NaN if it couldn't be seen; ``score`` how far the
    logarithm of that is from what the neighbours suggest, over what is typical in this training.
    """

    segment: int
    moved: float
    score: float

    @property
    def is_named(self) -> bool:
        """Whether it is far outside of what is typical."""
        return self.score >= SUSPICIOUS


def screen(
    store: Store, task: LoadedTask, proof: LearningProof, advance: Callable[[int, int], None] = lambda done, total: None
) -> list[Suspicion]:
    """All segments, the most suspicious first.

    A segment whose ends can't be read, aren't finite or are equal has an infinite score: a replay says what it is.
    """
    moved = list(_movements(store, task, proof, advance))
    return sorted(score(moved), key=lambda s: (-s.score, s.segment))


def score(moved: Sequence[float]) -> list[Suspicion]:
    """The scores of segments that move their parameters by these distances, in their order."""
    logs = [math.log(m) if 0.0 < m < math.inf else math.nan for m in moved]
    residuals = [_residual(logs, i) for i in range(len(logs))]
    known = [r for r in residuals if not math.isnan(r)]
    spread = max(median(known), _SMALLEST_SPREAD) if known else _SMALLEST_SPREAD
    scores = (
        math.inf if math.isnan(own) else 0.0 if math.isnan(r) else r / spread
        for own, r in zip(logs, residuals, strict=True)
    )
    return [Suspicion(i, m, s) for i, (m, s) in enumerate(zip(moved, scores, strict=True))]


def _residual(logs: Sequence[float], i: int) -> float:
    """How far a segment is from what its neighbours suggest, in units of what noise makes of it; NaN without any.

    They suggest the middle between both sides, so that a schedule is followed; at an end, the line of the other side.
    """
    middles = [(i - k, i + k, 0.5, 0.5) for k in range(1, REACH + 1)]
    lines = [(i + side, i + 2 * side, 2.0, -1.0) for side in (-1, 1)]
    found: list[float] = []
    for a, b, weight_a, weight_b in middles + lines:
        if len(found) < REACH and min(a, b) >= 0 and max(a, b) < len(logs):
            far = abs(logs[i] - weight_a * logs[a] - weight_b * logs[b]) / math.hypot(1.0, weight_a, weight_b)
            found += [] if math.isnan(far) else [far]
    return median(found) if found else math.nan


def _movements(
    store: Store, task: LoadedTask, proof: LearningProof, advance: Callable[[int, int], None]
) -> Iterator[float]:
    before = None
    for done, entry in enumerate(proof.checkpoints):
        try:
            after = load_checkpoint(store, task, entry)
        except (ProtocolError, OperationalError, MemoryError):
            after = None
        if done:
            yield math.nan if before is None or after is None else _moved(task, before, after)
        before = after
        advance(done + 1, len(proof.checkpoints))


def _moved(task: LoadedTask, before: Sequence[Words], after: Sequence[Words]) -> float:
    total = 0.0
    with np.errstate(all="ignore"):
        for slot, a, b in zip(task.program.slots, before, after, strict=True):
            if slot.component is Component.PARAMETER and slot.type.dtype is DType.F32:
                difference = (b.view(np.float32).astype(np.float64) - a.view(np.float32)).reshape(-1)
                total += float(difference @ difference)
    return math.sqrt(total) if total >= 0.0 else math.nan
