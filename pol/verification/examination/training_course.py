"""The course of a training from its checkpoints: what each step observes there, and how far each tensor moves.

It is no evidence: nothing but one step from each checkpoint is executed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError, ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage.store import Store
from pol.training.task.learning_proof import TaskCheckpoint, load_checkpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.engines.engine import observed_scalars
from pol.verification.runs.tensor_comparison import compare_tensors, recorded_tensors
from pol.verification.verdict.slot_residual import slot_lengths

MOST_SEGMENTS = 60
"""Segments that are looked at, spread evenly over the training."""


@dataclass(frozen=True)
class TrainingCourse:
    """What checkpoints show of a training.

    ``segments`` are pairs of the first and the last step of those that were looked at. ``ways`` has for each of them
    how far each of ``slots`` has moved, as a share of its length before (L2); NaN where it
    couldn't be seen, or was zero before.
    ``observed`` has for each observed scalar points ``(step, value)``.
    """

    segments: tuple[tuple[int, int], ...]
    slots: tuple[str, ...]
    ways: tuple[tuple[float, ...], ...]
    observed: Mapping[str, tuple[tuple[int, float], ...]]


def course_of(
    store: Store,
    task: LoadedTask,
    checkpoints: Sequence[TaskCheckpoint],
    executors: ExecutorFactory,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> TrainingCourse:
    """The course of a task's training. A checkpoint that can't be read, or is bad, leaves a gap."""
    names = observed_scalars(task)
    executor = executors(task.program, task.constants).observing([task.names.observed[name] for name in names])
    observed: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    ways, chosen, held = [], spread(len(checkpoints) - 1), dict[int, Sequence[Words] | None]()
    for done, at in enumerate(chosen):
        advance(done, len(chosen))
        # Segments beside each other share a state.
        held = {i: held[i] if i in held else _state(store, task, checkpoints[i]) for i in (at, at + 1)}
        before, after = held[at], held[at + 1]
        if before is not None and names:
            _, words = executor.advance(list(before), checkpoints[at].step)
            for name, word in zip(names, words, strict=True):
                observed[name].append((checkpoints[at].step, float(word.reshape(-1).view(np.float32)[0])))
        ways.append(_shares(task, before, after))
    advance(len(chosen), len(chosen))
    return TrainingCourse(
        segments=tuple((checkpoints[at].step, checkpoints[at + 1].step) for at in chosen),
        slots=tuple(task.names.slots),
        ways=tuple(ways),
        observed={name: tuple(points) for name, points in observed.items()},
    )


def recorded_course(run: RecordedRun, advance: Callable[[int, int], None] = lambda done, total: None) -> TrainingCourse:
    """The course of a training that no task describes: no step of it can be executed."""
    steps, found = run.steps, list[dict[str, float]]()
    chosen = spread(len(steps) - 1)
    for done, at in enumerate(chosen):
        advance(done, len(chosen))
        sides = (recorded_tensors(run, step, run.store.url) for step in steps[at : at + 2])
        rows = list(compare_tensors(*sides))
        far = {row.name: math.nan if row.distance is None else row.distance.relative for row in rows}
        found.append(far | {row.name: 0.0 for row in rows if row.how == "equal"})
    slots = tuple(dict.fromkeys(name for row in found for name in row))
    ways = tuple(tuple(row.get(name, math.nan) for name in slots) for row in found)
    return TrainingCourse(tuple((steps[at], steps[at + 1]) for at in chosen), slots, ways, {})


def spread(segments: int, most: int = MOST_SEGMENTS) -> list[int]:
    """At most so many of the segments, evenly, with the first and the last."""
    if segments <= most:
        return list(range(max(0, segments)))
    return sorted({round(number * (segments - 1) / (most - 1)) for number in range(most)})


def _state(store: Store, task: LoadedTask, entry: TaskCheckpoint) -> Sequence[Words] | None:
    try:
        return load_checkpoint(store, task, entry)
    except (ProtocolError, OperationalError, MemoryError):
        return None


def _shares(task: LoadedTask, before: Sequence[Words] | None, after: Sequence[Words] | None) -> tuple[float, ...]:
    if before is None or after is None:
        return (math.nan,) * len(task.program.slots)
    ways = slot_lengths(task.program, after, before)
    lengths = slot_lengths(task.program, before, [np.zeros_like(words) for words in before])
    return tuple(
        way / length if length else math.nan if way else 0.0 for way, length in zip(ways, lengths, strict=True)
    )
