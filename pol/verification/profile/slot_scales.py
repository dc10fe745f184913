"""Scales by which each slot of a task counts in the measure of its own noise, so that limits follow it.

A distance sees the numbers of a slot times 2^scale. With scales that make the noise of all slots of a component alike,
what a threshold allows in one of them is a multiple of its own noise, however far others move (docs/spec/profile.md,
"Limits of slots").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from pol.commitments.program_hash import program_hash
from pol.errors import UnsupportedError
from pol.graph.step_program import MAX_SCALE, RANGE_BITS, Component
from pol.training.storage.store import Store
from pol.training.task import task_source
from pol.training.task.published_task import load
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import require_thresholds
from pol.verification.profile.slot_noise import SlotNoise

HEADROOM = 10
"""Bits by which the numbers of a slot may grow until they have no distance: a thousandfold, and the square of that for
averages of squares, which have a scale of their own."""
_ROUNDING = 2.0**-24
"""Noise that every number may have later, of its magnitude."""


def scales_of(slots: Sequence[SlotNoise]) -> list[int]:
    """The scale of each slot: the noisiest of a component keeps its own, the others see as much noise.

    No scale is below the present one, or so high that numbers which grow a thousandfold have no distance.
    """
    noise = [_noise(slot) for slot in slots]
    levels = dict.fromkeys(Component, -math.inf)
    for slot, own in zip(slots, noise, strict=True):
        if own is not None and (slot.noise or slot.way):  # a constant decides for no other
            levels[slot.component] = max(levels[slot.component], own + slot.scale)
    return [
        slot.scale if own is None else max(slot.scale, min(math.floor(levels[slot.component] - own), _most(slot)))
        for slot, own in zip(slots, noise, strict=True)
    ]


def with_scales(store: Store, task: LoadedTask, scales: Sequence[int]) -> str:
    """Publish a task anew whose slots have these scales; the digest of its document. All else is as it was."""
    graph = task.aten
    inputs = [replace(entry, scale=scale) for entry, scale in zip(graph.slots, scales, strict=True)]
    scaled = replace(graph, inputs=(*inputs, *graph.inputs[len(inputs) :]))
    program, _ = task_source.program_of(scaled, task.document.steps)
    document = replace(
        task.document,
        program=store.put(program.to_bytes()),
        program_hash=program_hash(program),
        aten=store.put(task_source.encode(scaled)),
    )
    return store.put(document.encode())


def bounded(
    store: Store, task: LoadedTask, measure: Callable[[LoadedTask], Profile], tell: Callable[[str], None]
) -> tuple[LoadedTask, Profile]:
    """A task whose thresholds bound every trained slot, and its profile: the task itself, or the same with scales.

    ``tell`` gets the reason for scales.

    Raises:
        UnsupportedError: no scales help, or nothing can be measured.
    """
    profile = measure(task)
    try:
        require_thresholds(profile)
    except UnsupportedError as error:
        tell(f"{error}\nThe task gets scales: its tensors count by their own noise")
        task = load(store, with_scales(store, task, scales_of(profile.slots)))
        profile = measure(task)
        require_scaled(profile)
    return task, profile


def require_scaled(profile: Profile) -> None:
    """Check the thresholds of a task with scales. Raises UnsupportedError: the scales don't help."""
    try:
        require_thresholds(profile)
    except UnsupportedError as error:
        raise UnsupportedError(f"scales by the noise of each tensor don't help this task: {error}") from error


def _noise(slot: SlotNoise) -> float | None:
    """The binary logarithm of its noise, now or later; None of zeros, of integers and where there is no distance."""
    if not slot.greatest or not math.isfinite(slot.noise):
        return None
    return math.log2(max(slot.noise, slot.length * _ROUNDING))


def _most(slot: SlotNoise) -> int:
    headroom = 2 * HEADROOM if slot.scale else HEADROOM
    return min(MAX_SCALE, RANGE_BITS - headroom - math.ceil(math.log2(slot.greatest)))
