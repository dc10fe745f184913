"""Somebody else's work: stolen checkpoints and proofs that are made after the fact for given weights."""

import numpy as np
import torch

from lab.attacks.attack_loop import with_weights
from lab.attacks.attack_target import Floats, State, Target, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import JIA
from lab.attacks.synthetic_data import between
from pol.graph.step_program import Component

RATE, MOMENTUM = 0.05, 0.9
"""Of the SGD that `retrospective` reverses (pol.demo.digits)."""


def stolen(workshop: Workshop) -> Forgery:
    """All checkpoints of somebody's training from the same start in another order, published as one's own."""
    return Forgery(list(workshop.target.stolen))


def stolen_start(workshop: Workshop) -> Forgery:
    """The checkpoints of a training that began elsewhere, its start included."""
    start = workshop.with_numbers(workshop.start, lambda _, values: np.ascontiguousarray(values[..., ::-1]))
    workshop_of_victim = Workshop(workshop.target)
    states = [start]
    for segment in range(workshop.target.segments):
        states.append(workshop_of_victim.segment(states[-1], segment))
    return Forgery(states)


def spliced(workshop: Workshop) -> Forgery:
    """Honest, but one segment in the middle jumps to a stolen model, and training goes on from there."""
    target = workshop.target
    states = [workshop.start]
    for segment in range(target.segments):
        jump = segment == target.segments // 2
        states.append(list(target.stolen[segment + 1]) if jump else workshop.segment(states[-1], segment))
    return Forgery(states)


def retrospective(workshop: Workshop) -> Forgery:
    """Given final weights: the last segments are trained backwards, the ones before are a line to where they begin.

    A step of SGD with momentum can be undone with one gradient: the momentum says where the weights came from.
    """
    target = workshop.target
    backwards = max(1, target.segments // 20)
    end = target.stolen[-1]
    reversed_states = [end]
    state = end
    for segment in reversed(range(target.segments - backwards, target.segments)):
        for step in reversed(range(segment * target.interval, (segment + 1) * target.interval)):
            state = _undone(workshop, state, step)
        reversed_states.insert(0, state)
    line = between(workshop, workshop.start, reversed_states[0], target.segments - backwards)
    trained = frozenset(range(target.segments - backwards, target.segments))
    return Forgery([*line[:-1], *reversed_states], trained=trained)


def _undone(workshop: Workshop, state: State, step: int) -> State:
    """The state before a step."""
    target = workshop.target
    weights, momenta = target.places(Component.PARAMETER), target.places(Component.OPTIMIZER)
    before = list(state)
    for weight, momentum in zip(weights, momenta, strict=True):
        moved = numbers(state[weight]).astype(np.float64) + RATE * numbers(state[momentum]).astype(np.float64)
        before[weight] = words_of(moved)
    model = with_weights(target, before)
    inputs, labels = target.batch(step)
    with workshop.counted():
        loss = target.loss(model(inputs), labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
    by_name = dict(zip((name for name, _ in model.named_parameters()), gradients, strict=True))
    for weight, momentum in zip(weights, momenta, strict=True):
        gradient = by_name[target.task.names.slots[weight]].numpy().astype(np.float64)
        before[momentum] = words_of((numbers(state[momentum]).astype(np.float64) - gradient) / MOMENTUM)
    return before


def drip(workshop: Workshop) -> Forgery:
    """A tenth of the segments goes towards a stolen model instead, no further than honest ones go."""
    target = workshop.target
    where = workshop.chosen(0.1)
    states = [workshop.start]
    for segment in range(target.segments):
        if segment not in where:
            states.append(workshop.segment(states[-1], segment))
            continue
        now, before = states[-1], states[-2] if segment else states[-1]

        def towards(place: int, values: Floats, before: State = before) -> Floats:
            size = float(np.linalg.norm(values - numbers(before[place])))
            way = numbers(target.stolen[-1][place]) - values
            length = float(np.linalg.norm(way))
            return values + way * np.float32(min(1.0, size / length)) if length > 0.0 else values

        states.append(workshop.ticked(workshop.with_numbers(now, towards)))
    return Forgery(states)


def same_task(workshop: Workshop) -> Forgery:
    """Somebody's training of this very task: what is published is true, the thief just didn't do it."""
    return Forgery(list(workshop.target.honest))


def _is_plain_sgd(target: Target) -> bool:
    slots = target.task.names.slots
    return any(name.endswith(":momentum_buffer") for name in slots) and not target.places(Component.BUFFER)


ATTACKS = (
    Attack("stolen-run", "somebody's checkpoints of another order, as one's own", stolen, JIA),
    Attack("stolen-start", "somebody's checkpoints from another start", stolen_start, JIA),
    Attack("splice", "one jump to a stolen model, honest before and after", spliced),
    Attack("drip", "10 % of the segments go towards a stolen model, at honest lengths", drip),
    Attack(
        "retrospective",
        "given final weights: last 5 % trained backwards, a line before",
        retrospective,
        JIA,
        applies=_is_plain_sgd,
    ),
)

SAME_TASK = Attack("same-task", "somebody's checkpoints of this very task", same_task)
"""No forgery: the work was done. Kept out of the battery, see docs/attacks.md."""
