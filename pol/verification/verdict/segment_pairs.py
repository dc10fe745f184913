"""Two segments replayed as one: whether a checkpoint acts as it should (docs/spec/verdict.md#pairs).

What a solver adds to a state may be within its limits, and Adam makes whole weights of it in the next segment, where it
belongs to the start that nobody questions. Over both segments the replay has its own state in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pol.commitments.keccak import keccak256
from pol.training.task.learning_proof import TaskCheckpoint
from pol.training.task.task_document import LoadedTask

SHARE = 4
"""One pair for so many segments that are drawn: half of their work again."""
LEAST = 3
"""Pairs at least: one alone that ends elsewhere may be honest."""


def pairs_of(segments: Sequence[int], count: int, seed: bytes) -> list[int]:
    """The pairs to replay with ``segments``, of ``count`` in all: pair p has the segments 2p and 2p + 1.

    Where all segments are replayed all pairs are. Else ``seed``, which the solver couldn't know, chooses among those
    that hold one of the segments.
    """
    near = {segment // 2 for segment in segments if segment // 2 * 2 + 1 < count}
    chosen = sorted(near, key=lambda pair: keccak256(seed + pair.to_bytes(4, "big")))
    most = len(chosen) if len(segments) == count else max(LEAST, -(-len(segments) // SHARE))
    return sorted(chosen[:most])


def ends_of(pairs: Sequence[int]) -> set[int]:
    """The checkpoints that these pairs begin and end at."""
    return {2 * pair for pair in pairs} | {2 * pair + 2 for pair in pairs}


def paired_task(task: LoadedTask) -> LoadedTask:
    """The same training in segments of twice the length; a last segment without a second one is left out."""
    document = task.document
    interval = 2 * document.interval
    return replace(task, document=replace(document, interval=interval, steps=document.steps // interval * interval))


def paired_entry(entry: TaskCheckpoint) -> TaskCheckpoint:
    """A checkpoint as it is counted there."""
    return replace(entry, index=entry.index // 2)
