"""The best strategy of one party against chance, while everybody else does its duty.

States are any hashable values. Games may have cycles: they are solved exactly by policy iteration, which begins with
duty and leaves it only for something better. Source: R. Howard, Dynamic programming and Markov processes, 1960.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pol.errors import ProtocolError, UnsupportedError

BETTER = 1e-9
"""A deviation has to be better than duty by this part of the largest amount."""
ROUNDS = 100
"""Most rounds of improvement; each is strictly better than the last."""

State: TypeAlias = Hashable


@dataclass(frozen=True)
class GameMove:
    """A move in a state: its name, its immediate gain, and the chances of the next states."""

    name: str
    gain: float
    chances: tuple[tuple[float, State], ...] = ()
    """Probabilities and states; the remaining probability ends the game."""


@dataclass(frozen=True)
class Solution:
    """Values of the first state, and the best strategy from it."""

    duty: float
    """Value of duty: the first move everywhere."""
    best: float
    strategy: Mapping[State, str]
    """Moves of the best strategy in reached states with a choice, in the order of the game."""
    deviations: Mapping[State, str]
    """Those of them that aren't duty."""


def solve(start: State, moves: Callable[[State], Sequence[GameMove]]) -> Solution:
    """The strategy with the highest expected value; the first move of a state is duty.

    Raises:
        ProtocolError: a state has no moves, or a strategy never ends, so its value is unbounded.
    """
    states, known = [start], {start: 0}
    options: list[Sequence[GameMove]] = []
    for state in states:
        found = moves(state)
        if not found:
            raise ProtocolError(f"state {state!r} has no moves")
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


def _worth(known: Mapping[State, int], values: np.ndarray, move: GameMove) -> float:
    return move.gain + sum(part * float(values[known[after]]) for part, after in move.chances)


def _values(known: Mapping[State, int], options: Sequence[Sequence[GameMove]], chosen: Sequence[int]) -> np.ndarray:
    """The value of each state under a strategy: V = gain + P V."""
    try:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu
    except ModuleNotFoundError as error:
        raise UnsupportedError("this search needs SciPy: set up the tests with `.ci/setup --dev`") from error
    size = len(options)
    rows, columns, parts, gains = list(range(size)), list(range(size)), [1.0] * size, np.zeros(size)
    for number, found in enumerate(options):
        move = found[chosen[number]]
        gains[number] = move.gain
        for part, after in move.chances:
            rows.append(number)
            columns.append(known[after])
            parts.append(-part)
    try:
        values = splu(csc_array((parts, (rows, columns)), shape=(size, size))).solve(gains)
    except RuntimeError as error:
        raise ProtocolError("a strategy never ends: its value is unbounded") from error
    return np.asarray(values)


def _reached(known: Mapping[State, int], options: Sequence[Sequence[GameMove]], chosen: Sequence[int]) -> list[int]:
    order, seen = [0], {0}
    for number in order:
        for part, after in options[number][chosen[number]].chances:
            if part > 0 and known[after] not in seen:
                seen.add(known[after])
                order.append(known[after])
    return order
