"""Honest runs of torch on this machine in all the ways that change bits: what attacks are compared with."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import torch

from lab.attacks.attack_loop import AttackLoop
from lab.attacks.attack_target import State, Target
from lab.benchmarks.figure import torch_threads
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import relative_distance
from pol.claims.distance import component_distances
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.step_program import Component
from pol.training.task.task_training import to_tensor

Segment = Callable[[Sequence[Words], int, int], State]


def spread(target: Target, ways: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """The greatest relative distance of each component over all segments, by way of running.

    Each segment starts from the run's own checkpoint, as in a verification.
    """
    return {way: _greatest(target, way) for way in ways}


def run(target: Target, way: str) -> list[State]:
    """All checkpoints of an honest run."""
    around, build = WAYS[way]
    states: list[State] = [target.task.initial_state]
    with around():
        segment = build(target)
        for index in range(target.segments):
            states.append(segment(states[-1], index * target.interval, target.interval))
    return states


def _greatest(target: Target, way: str) -> tuple[float, float, float]:
    states = run(target, way)
    greatest = [0.0] * len(Component)
    for index in range(target.segments):
        replayed = target.segment_end(states[index], index)
        distances = component_distances(target.task.program, replayed, states[index + 1])
        references = component_distances(target.task.program, replayed, states[index])
        relative = map(relative_distance, distances, references)
        greatest = [max(pair) for pair in zip(greatest, relative, strict=True)]
    parameter, buffer, optimizer = greatest
    return parameter, buffer, optimizer


def _loop(target: Target) -> Segment:
    return AttackLoop(target).train


def _graph(target: Target) -> Segment:
    """The captured graph, operation by operation: what the solver of the market runs."""
    native = NativeExecutor(target.task.aten)
    task = target.task
    constants = [to_tensor(e.type, w) for e, w in zip(task.aten.constants, task.constants, strict=True)]

    def segment(start: Sequence[Words], first: int, count: int) -> State:
        tensors = [target.tensor(place, words) for place, words in enumerate(start)]
        for step in range(first, first + count):
            tensors, _ = native.run(tensors, constants, step)
        return [target.words(place, tensor) for place, tensor in enumerate(tensors)]

    return segment


@contextmanager
def _without_onednn() -> Iterator[None]:
    with warnings.catch_warnings():
        # Of settings for graphics processors, which are read and written back here as well.
        warnings.simplefilter("ignore", UserWarning)
        with torch.backends.mkldnn.flags(enabled=False):
            yield


WAYS: Mapping[str, tuple[Callable[[], AbstractContextManager[object]], Callable[[Target], Segment]]] = {
    "eager": (nullcontext, _loop),
    "graph": (nullcontext, _graph),
    "two threads": (partial(torch_threads, 2), _loop),
    "without oneDNN": (_without_onednn, _loop),
    "compiled": (nullcontext, lambda target: AttackLoop(target, compiled=True).train),
}
"""By name: the settings of torch, and what runs a segment under them."""
