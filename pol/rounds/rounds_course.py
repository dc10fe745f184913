"""The course of a training in rounds: what the first step of each claim observes, and how far it moves its weights.

It is no evidence: of each claim one step is executed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import PolError
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import Component
from pol.graph.tensor_type import DType
from pol.rounds.auditing.claim_replay import (
    LoadedPhase,
    load_end,
    load_phase,
    load_start,
    phase_constants,
    replay_claim,
)
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.verification.engines.engine import SlotDistance, slot_distances
from pol.verification.examination.training_course import spread

MOST_CLAIMS = 200
"""Claims that are looked at, spread evenly over the training."""


@dataclass(frozen=True)
class ClaimCourse:
    """One claim whose program observes scalars: their values in its first step, and the L2 norm of its weights' change.

    NaN where the end was withheld.
    """

    entry: ClaimEntry
    observed: Mapping[str, float]
    moved: float


def rounds_course(
    rounds: LoggedRounds,
    executors: ExecutorFactory,
    advance: Callable[[int, int], None] = lambda done, total: None,
    most: int = MOST_CLAIMS,
) -> list[ClaimCourse]:
    """The claims that a loss is known of, in the order of their places; those whose start is withheld are left out."""
    observing = [
        e for e in rounds.claims.values() if 0 <= e.claim.phase < len(rounds.plan.phases) and _names(rounds, e)
    ]
    observing.sort(key=lambda entry: (*entry.claim.place, entry.worker))
    chosen, found = [observing[at] for at in spread(len(observing), most)], list[ClaimCourse]()
    for done, entry in enumerate(chosen, 1):
        try:
            found.append(_course(rounds, entry, executors))
        except PolError:
            continue
        finally:
            advance(done, len(chosen))
    return found


def claim_distances(rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> tuple[SlotDistance, ...]:
    """How far each slot of a claimed end is from its replay; one that its author has kept counts as equal.

    Raises:
        OperationalError: something is withheld.
    """
    phase = load_phase(rounds.store, rounds.plan.phase(entry.claim.phase))
    start, replayed = load_start(rounds, entry, executors), replay_claim(rounds, entry, executors)
    held = load_end(rounds, entry)
    end = [held.get(place, words) for place, words in enumerate(replayed)]
    return slot_distances(phase.program, phase.names, start, replayed, end)


def _names(rounds: LoggedRounds, entry: ClaimEntry) -> list[str]:
    """The observed scalars of a claim's program."""
    try:
        phase = load_phase(rounds.store, rounds.plan.phases[entry.claim.phase])
    except PolError:
        return []
    types = {name: phase.program.nodes[node].type for name, node in phase.names.observed.items()}
    return [name for name, type_ in types.items() if type_.numel == 1 and type_.dtype is DType.F32]


def _course(rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> ClaimCourse:
    phase, names = load_phase(rounds.store, rounds.plan.phases[entry.claim.phase]), _names(rounds, entry)
    start = load_start(rounds, entry, executors)
    executor = executors(phase.program, phase_constants(rounds, entry))
    nodes = [phase.names.observed[name] for name in names]
    _, words = executor.observing(nodes).advance(start, entry.claim.first_step)
    values = (float(word.reshape(-1).view(np.float32)[0]) for word in words)
    return ClaimCourse(entry, dict(zip(names, values, strict=True)), _moved(rounds, entry, phase, start))


def _moved(rounds: LoggedRounds, entry: ClaimEntry, phase: LoadedPhase, start: Sequence[Words]) -> float:
    try:
        end = load_end(rounds, entry)
    except PolError:
        return math.nan
    slots = phase.program.slots
    weights = [at for at in end if slots[at].component is Component.PARAMETER and slots[at].type.dtype is DType.F32]
    with np.errstate(all="ignore"):
        changes = (end[at].view(np.float32).astype(np.float64) - start[at].view(np.float32) for at in weights)
        return math.sqrt(sum(float(np.square(change).sum()) for change in changes))
