"""The best strategy in a game that one party plays against chance and the duty of everybody else.

States are any hashable values. A game may come back to a state: it is solved exactly by policy iteration, which begins
with duty and leaves it only for something better. Source: R. Howard, Dynamic programming and Markov processes, 1960.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pol.errors import ProtocolError

BETTER = 1e-9
"""Part of the largest amount by which something has to be better than duty to be chosen."""
ROUNDS = 100
"""Of improvement, at most: each is strictly better than the last."""

State: TypeAlias = Hashable


@dataclass(frozen=True)
class Move:
    """Something to do in a state: its name, what it brings at once, and where chance leads from there."""

    name: str
    gain: float
    chances: tuple[tuple[float, State], ...] = ()
    """Probabilities and states; the rest up to 1 ends the game."""


@dataclass(frozen=True)
class Solution:
    """Values of a first state, and the best strategy from it."""

    duty: float
    """What it is worth to take the first move everywhere."""
    best: float
    strategy: Mapping[State, str]
    """The moves of the best strategy where there is a choice, in the order of the game; only states it reaches."""
    deviations: Mapping[State, str]
    """Of these the moves that aren't the first ones."""


def solve(start: State, moves: Callable[[State], Sequence[Move]]) -> Solution:
    """The strategy that brings most on average; the first move of a state is duty.

    Raises:
        ProtocolError: a state without moves, or a strategy without an end, so without a bound on what it brings.
    """
    states, known = [start], {start: 0}
    options: list[Sequence[Move]] = []
    for state in states:
        found = moves(state)
        if not found:
            raise ProtocolError(f"there is nothing to do in {state!r}")
        options.append(found)
        for move in found:
            for _, after in move.chances:
                if after not in known:
                    known[after] = len(states)
                    states.append(after)
    chosen = [0] * len(states)
    scale = max((abs(move.gain) for found in options for move in found), default=0.0) or 1.0
    values = duty = _values(known, options, chosen)
    for _ in range(ROUNDS):
        changed = False
        for number, found in enumerate(options):
            worth = [_worth(known, values, move) for move in found]
            best = max(range(len(found)), key=worth.__getitem__)
            if worth[best] > worth[chosen[number]] + BETTER * scale:
                chosen[number], changed = best, True
        if not changed:
            break
        values = _values(known, options, chosen)
    reached = _reached(known, options, chosen)
    strategy = {states[i]: options[i][chosen[i]].name for i in reached if len(options[i]) > 1}
    deviations = {states[i]: options[i][chosen[i]].name for i in reached if chosen[i]}
    return Solution(float(duty[0]), float(values[0]), strategy, deviations)


def _worth(known: Mapping[State, int], values: np.ndarray, move: Move) -> float:
    return move.gain + sum(part * float(values[known[after]]) for part, after in move.chances)


def _values(known: Mapping[State, int], options: Sequence[Sequence[Move]], chosen: Sequence[int]) -> np.ndarray:
    """What each state is worth under a strategy: V = gain + P V."""
    size = len(options)
    matrix, gains = np.eye(size), np.zeros(size)
    for number, found in enumerate(options):
        move = found[chosen[number]]
        gains[number] = move.gain
        for part, after in move.chances:
            matrix[number, known[after]] -= part
    try:
        return np.linalg.solve(matrix, gains)
    except np.linalg.LinAlgError as error:
        raise ProtocolError("a strategy goes on for ever: no bound on what it brings") from error


def _reached(known: Mapping[State, int], options: Sequence[Sequence[Move]], chosen: Sequence[int]) -> list[int]:
    order, seen = [0], {0}
    for number in order:
        for part, after in options[number][chosen[number]].chances:
            if part > 0 and known[after] not in seen:
                seen.add(known[after])
                order.append(known[after])
    return order
