"""How fast a device is: maps, hashing, products of matrices, steps."""

from __future__ import annotations

from dataclasses import dataclass

from pol.arithmetic.primitives import Op
from pol.execution.device.self_test.self_test import trainings
from pol.execution.device.self_test.subjects import Subject
from pol.execution.device.self_test.tested_nodes import FULL, contraction, counted_words, primitive

_SHORT_WORDS, _SHORT_SIDE, _SIDE = 1 << 20, 256, 4096
_TIMES = 5


@dataclass(frozen=True)
class SpeedFigure:
    """One figure."""

    name: str
    value: float
    unit: str


def measure_figures(subject: Subject, short: bool) -> list[SpeedFigure]:
    """All figures; the short form works on a megaword and on matrices of 256 by 256."""
    words, side = (_SHORT_WORDS, _SHORT_SIDE) if short else (FULL, _SIDE)
    times = 1 if short else _TIMES
    moved = 3 * 4 * words / subject.node_seconds(primitive(Op.FADD, words), times)
    hashed = 4 * words / subject.tree_seconds(counted_words(0, words), times)
    found = [SpeedFigure("map of two operands", moved / 1e9, "GB/s"), SpeedFigure("keccak trees", hashed / 1e9, "GB/s")]
    for integers in (False, True):
        seconds = subject.node_seconds(contraction(side, side, side, integers), times)
        name = f"product of {'integer ' if integers else ''}matrices, {side} by {side}"
        found.append(SpeedFigure(name, 2 * side**3 / seconds / 1e9, "GOP/s" if integers else "GFLOP/s"))
    for training in trainings():
        about = training.program, training.constants, training.state
        found.append(SpeedFigure(f"step of {training.name}", 1e3 * subject.step_seconds(*about, times), "ms"))
    return found
