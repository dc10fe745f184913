"""Attacks on the protocol instead of the training: documents, evidence and the draw."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from lab.attacks.attack_target import Floats, State
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import FOLKLORE, skipped
from pol.claims.sample_size import detection_probability
from pol.claims.segment_draw import MAX_DRAWS, draw
from pol.commitments.keccak import keccak256
from pol.graph.step_program import Component

MAX_TRIES = 1000
GRINDING = "grinding, known from proof of stake"


def withheld(workshop: Workshop) -> Forgery:
    """Skips a tenth of the segments and withholds the checkpoints that would show it."""
    where = workshop.chosen(0.1)
    states = _skipping(workshop, where)
    return Forgery(states, withheld=frozenset(segment + 1 for segment in where))


def two_faced(workshop: Workshop) -> Forgery:
    """Skips a tenth of the segments; the log commits to one state, the file holds another."""
    where = workshop.chosen(0.1)
    return Forgery(_skipping(workshop, where), swapped={segment + 1: segment for segment in where})


def left_out(workshop: Workshop) -> Forgery:
    """A checkpoint isn't listed, so that the segment around it is never drawn."""
    states = _skipping(workshop, workshop.chosen(0.1))
    return Forgery([*states[:1], *states[2:]])


def longer_interval(workshop: Workshop) -> Forgery:
    """Checkpoints half as often as the task asks for: fewer segments to hide a skipped step in."""
    states = _skipping(workshop, workshop.chosen(0.1))
    return Forgery(states[::2], interval=2 * workshop.target.interval)


def ground(workshop: Workshop) -> Forgery:
    """Tries variants of a proof with skipped steps until a draw would miss them.

    A draw reads the beacon's seed of a round after the commitment, and nothing that the solver publishes. ``damage``
    says how many different draws the variants gave, and how many tries would do against a draw that finds the cheating
    with 99 % if their hash were the seed.
    """
    target = workshop.target
    forgery = skipped(workshop, share=100)
    cheated = {segment for segment in range(target.segments) if (segment + 1) * target.interval % 100 < target.interval}
    draws = _draws(target.segments, len(cheated))
    beacon = keccak256(b"the beacon's value, known only after the commitment")
    variants = [keccak256(b"variant %d" % number) for number in range(MAX_TRIES)]
    drawn = {tuple(draw(beacon, target.segments, draws)) for _ in variants}
    tries = next(
        (i for i, seed in enumerate(variants, 1) if not cheated & set(draw(seed, target.segments, draws))), MAX_TRIES
    )
    damage = {"different draws of 1000 variants": float(len(drawn)), "tries if its hash were the seed": float(tries)}
    return replace(forgery, damage=damage)


def _draws(segments: int, cheated: int) -> int:
    """As many as find it with 99 %, or all but one: a draw of everything has no seed to grind."""
    enough = (n for n in range(segments) if detection_probability(segments, cheated, n) >= Fraction(99, 100))
    return min(next(enough, segments), segments - 1, MAX_DRAWS)


def _skipping(workshop: Workshop, where: list[int]) -> list[State]:
    """Some segments end near where they began, in a state that no other checkpoint has."""

    def near(_place: int, values: Floats) -> Floats:
        return values + np.float32(1e-3) * workshop.random.standard_normal(values.shape).astype(np.float32)

    states = [workshop.start]
    for segment in range(workshop.target.segments):
        if segment in where:
            states.append(workshop.ticked(workshop.with_numbers(states[-1], near, [Component.PARAMETER])))
        else:
            states.append(workshop.segment(states[-1], segment))
    return states


ATTACKS = (
    Attack("withheld", "10 % of the segments skipped, their ends withheld", withheld, FOLKLORE),
    Attack("two-faced", "10 % of the segments skipped; files other than the log says", two_faced, FOLKLORE),
    Attack("left-out", "a checkpoint isn't listed", left_out, FOLKLORE),
    Attack("longer-interval", "checkpoints half as often", longer_interval, FOLKLORE),
    Attack("grinding", "1 % of the steps skipped, variants tried for a good draw", ground, GRINDING),
)
