"""Cheating where a second look is due: the solver reruns its own segments, and knows what a look will excuse.

Or it makes one due, by a ladder of kinks: each checkpoint is nudged so that the next segment begins with an input of a
ReLU at zero. Honest reruns of that segment take both branches, so its second look allows what parts them, and a
multiple of it. Lower precision fits in, and so does the nudge to the next kink. No jump is needed: the first rung is a
kink that is near.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from lab.attacks.attack_loop import AttackLoop, RoundedProducts
from lab.attacks.attack_target import State, Target, has_hidden_units, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.hidden_drift import ALONG
from lab.attacks.pushes import Vector, added, difference, distance, harm, length, mixed, noise, scaled, towards
from lab.attacks.within_tolerance import PART, allowance
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component
from pol.verification.verdict.rerun_span import CUT, are_too_many
from pol.verification.verdict.second_look import CAP_BITS, LOOK_MARGIN, look_programs

BETA = 0.9
"""Of the momentum: what one gradient does to the weights grows with it, what it does to the momentum fades."""
SIDE = 1e-5
"""A shift of a bias that takes an input off its kink."""
ROOM = 0.8
"""Of what a look is expected to allow is used."""
LOSS = 0.8
"""What a backward pass with products of b bits adds to a segment: so many times 2^-b of its way, at most."""
HIDDEN = ("hidden.weight", "hidden.bias")


@dataclass(frozen=True)
class Kink:
    """A hidden unit whose input is zero for a sample of the next batch once the state is moved by ``nudge``."""

    unit: int
    nudge: Vector


def ladder(workshop: Workshop, bits: int, unmarked: bool = False) -> Forgery:
    """Backward passes in lower precision wherever a kink excuses it, canonical segments elsewhere.

    ``unmarked`` keeps nudge and loss within what no span of reruns has to explain.
    """
    target = workshop.target
    loop = AttackLoop(target, behind=lambda: RoundedProducts(bits))
    states, rough = [workshop.start], 0
    kink: Kink | None = None
    for segment in range(target.segments):
        start, first = states[-1], segment * target.interval
        room = expected(workshop, start, first, kink.unit) if kink else (0.0, 0.0)
        end = loop.train(start, first, target.interval)
        ways = [distance(target, difference(target, start, end, c)) for c in (Component.PARAMETER, Component.OPTIMIZER)]
        lost = [LOSS * 2.0**-bits * way for way in ways]
        allowed = [ROOM * min(each, 2.0 ** -(CAP_BITS // 2) * way) for each, way in zip(room, ways, strict=True)]
        tolerated = allowance(target, start, end, Component.PARAMETER)
        if all(most > loss for most, loss in zip(allowed, lost, strict=True)):
            rough += 1
        else:
            # Nothing excuses it here. A solver knows that before it trains: by the steps on both sides of the kink.
            end, lost = workshop.segment(start, segment), [0.0, 0.0]
            workshop.steps -= target.interval
        workshop.steps += target.interval
        whole = max(PART * tolerated, min(allowed[0], ROOM * CUT * tolerated) if unmarked else allowed[0])
        budget = max(0.0, whole**2 - lost[0] ** 2) ** 0.5
        kink = None if segment == target.segments - 1 else best(target, end, first + target.interval, budget)
        states.append(added(end, kink.nudge) if kink else end)
    return Forgery(states, damage={"segments in lower precision": rough / target.segments, **harm(target, states)})


def expected(workshop: Workshop, start: State, first: int, unit: int) -> tuple[float, float]:
    """How far weights and averages may be off after a segment that starts at a kink: by one step on each side of it."""
    target = workshop.target
    place = target.task.names.slots.index("hidden.bias")
    updates = []
    for side in (SIDE, -SIDE):
        shift = np.zeros(start[place].shape)
        shift[unit] = side
        aside = added(start, {place: shift})
        after = workshop.train(aside, first, 1)
        updates.append(
            {
                component: difference(target, aside, after, component)
                for component in (Component.PARAMETER, Component.OPTIMIZER)
            }
        )
    one, other = updates
    weights, averages = (
        distance(target, {i: part - other[component][i] for i, part in vector.items()})
        for component, vector in one.items()
    )
    grown, faded = (1 - BETA**target.interval) / (1 - BETA), BETA ** (target.interval - 1)
    return LOOK_MARGIN * grown * weights, LOOK_MARGIN * faded * averages


def best(target: Target, state: State, step: int, budget: float) -> Kink | None:
    """Of the kinks of a step that a nudge within the budget reaches, one that matters to the gradient and is near."""
    names = target.task.names.slots
    weight, bias, output, last = (
        torch.from_numpy(numbers(state[names.index(name)]).astype(np.float64))
        for name in (*HIDDEN, "output.weight", "output.bias")
    )
    images, labels = target.batch(step)
    images = images.double()
    inputs = images @ weight.T + bias
    scores = torch.relu(inputs) @ output.T + last
    errors = torch.softmax(scores, 1) - torch.nn.functional.one_hot(labels, scores.shape[1])
    lengths = (images.square().sum(1, keepdim=True) + 1).sqrt()
    effects = (errors @ output).abs() * lengths
    nudges = inputs.abs() / lengths
    # A kink of little effect leads nowhere, and a long nudge uses up what the next one needs.
    effects = torch.where(nudges <= budget, effects / (budget + nudges), 0.0)
    sample, unit = divmod(int(effects.argmax()), effects.shape[1])
    if effects[sample, unit] == 0:
        return None
    factor = float(-inputs[sample, unit] / lengths[sample, 0] ** 2)
    rows, biases = np.zeros(weight.shape), np.zeros(bias.shape)
    rows[unit], biases[unit] = factor * images[sample].numpy(), factor
    return Kink(unit, dict(zip((names.index(name) for name in HIDDEN), (rows, biases), strict=True)))


_attack = partial(Attack, hides=True, applies=has_hidden_units)
LADDERS = (
    _attack("kink-ladder-tf32", "nudged to kinks, which excuse backward passes of 11 bits", partial(ladder, bits=11)),
    _attack(
        "kink-ladder-13",
        "the same with 13 bits: within what no span has to explain",
        partial(ladder, bits=13, unmarked=True),
    ),
)


OWN_LOOKS = 4
"""Reruns that the solver makes of each segment; a verifier makes 16, which allow as much or more."""
MOVING = (Component.PARAMETER, Component.OPTIMIZER)

Act = Callable[[int, State, State, Sequence[State]], State | None]
"""From a segment, its start, its canonical end and the ends of reruns: what is published instead; None: the end."""


def where_looked(workshop: Workshop, act: Act, most: int | None = None) -> Forgery:
    """The training, in which up to ``most`` segments are changed that reruns part in by more than the thresholds."""
    target = workshop.target
    programs = look_programs(target.task.program, OWN_LOOKS)
    states, changed = [workshop.start], 0
    for segment in range(target.segments):
        start = states[-1]
        end = workshop.segment(start, segment)
        reruns = [workshop.segment(start, segment, CpuExecutor(other, target.task.constants)) for other in programs]
        found = act(segment, start, end, reruns) if _part(target, start, end, reruns) and changed != most else None
        changed += found is not None
        states.append(end if found is None else found)
    return Forgery(states, damage={"changed segments": changed / target.segments, **harm(target, states)})


def low_precision(workshop: Workshop, bits: int = 11, unmarked: bool = False) -> Forgery:
    """Backward passes in lower precision where reruns part at least as far.

    ``unmarked`` stops before so many segments are outside of the span of their reruns that the training is rejected.
    """
    target = workshop.target
    loop = AttackLoop(target, behind=lambda: RoundedProducts(bits))

    def act(segment: int, start: State, end: State, reruns: Sequence[State]) -> State | None:
        rough = loop.train(start, segment * target.interval, target.interval)
        workshop.steps += target.interval
        excused = (
            distance(target, difference(target, end, rough, component))
            <= _allowed(target, start, end, reruns, component)
            for component in MOVING
        )
        return rough if all(excused) else None

    return where_looked(workshop, act, bearable(target.segments) if unmarked else None)


def along_reruns(workshop: Workshop) -> Forgery:
    """Weights are pushed by the difference of a rerun, as far as a look allows: it lies in the span of the reruns."""
    target = workshop.target

    def act(_segment: int, start: State, end: State, reruns: Sequence[State]) -> State:
        goal = towards(target, end, target.poisoned)
        ways = [difference(target, end, rerun) for rerun in reruns]
        # Of the branches that honest machines take, the one that leads furthest towards the goal, or away from it.
        aimed = max(ways, key=lambda way: abs(_dot(way, goal)))
        sign = 1.0 if _dot(aimed, goal) > 0 else -1.0
        whole = _allowed(target, start, end, reruns, Component.PARAMETER)
        return added(end, scaled(aimed, sign * whole / length(aimed)))

    return where_looked(workshop, act)


def outside_of_reruns(workshop: Workshop) -> Forgery:
    """Weights are pushed towards a goal, in noise, by eight thresholds: that much no span has to explain."""
    target = workshop.target

    def act(_segment: int, start: State, end: State, reruns: Sequence[State]) -> State:
        whole = _allowed(target, start, end, reruns, Component.PARAMETER)
        most = PART * CUT * allowance(target, start, end, Component.PARAMETER)
        goal = towards(target, end, target.poisoned)
        return added(end, mixed(goal, ALONG, noise(workshop)), min(whole, most))

    return where_looked(workshop, act)


def bearable(segments: int) -> int:
    """The most marked segments with which a training is accepted."""
    return next(count for count in range(segments) if are_too_many(count + 1, segments))


def _part(target: Target, start: State, end: State, reruns: Sequence[State]) -> bool:
    """Whether reruns part by more than the thresholds in the weights, so that a look allows more than they do."""
    furthest = max(distance(target, difference(target, end, rerun)) for rerun in reruns)
    return furthest > allowance(target, start, end, Component.PARAMETER)


def _allowed(target: Target, start: State, end: State, reruns: Sequence[State], component: Component) -> float:
    furthest = max(distance(target, difference(target, end, rerun, component)) for rerun in reruns)
    way = distance(target, difference(target, start, end, component))
    return PART * max(
        allowance(target, start, end, component), min(LOOK_MARGIN * furthest, 2.0 ** -(CAP_BITS // 2) * way)
    )


def _dot(one: Vector, other: Vector) -> float:
    return sum(float((part * other[i]).sum()) for i, part in one.items())


ATTACKS = (
    _attack("tf32-where-looked", "backward passes of 11 bits where reruns part as far", low_precision),
    _attack(
        "tf32-within-marks", "the same in as many segments as marks are borne", partial(low_precision, unmarked=True)
    ),
    _attack(
        "13-bits-where-looked",
        "backward passes of 13 bits, below what no span explains",
        partial(low_precision, bits=13),
    ),
    _attack("along-reruns", "pushed along honest branches, by what a look allows", along_reruns),
    _attack("outside-reruns", "pushed by the eight thresholds that no span explains", outside_of_reruns),
)
