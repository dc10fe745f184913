"""A ladder of kinks: each checkpoint is nudged so that the next segment begins with an input of a ReLU at zero.

Honest reruns of that segment take both branches, so its second look allows what parts them, and a multiple of it. Lower
precision fits in, and so does the nudge to the next kink. No jump is needed: the first rung is a kink that is near.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from lab.attacks.attack_loop import AttackLoop, RoundedProducts
from lab.attacks.attack_target import State, Target, has_hidden_units, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.pushes import Vector, added, difference, distance, harm
from lab.attacks.within_tolerance import PART, allowance
from pol.graph.step_program import Component
from pol.verification.verdict.rerun_span import CUT
from pol.verification.verdict.second_look import CAP_BITS, LOOK_MARGIN

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
ATTACKS = (
    _attack("kink-ladder-tf32", "nudged to kinks, which excuse backward passes of 11 bits", partial(ladder, bits=11)),
    _attack(
        "kink-ladder-13",
        "the same with 13 bits: within what no span has to explain",
        partial(ladder, bits=13, unmarked=True),
    ),
)
