"""Sweeps over all 2^32 words: greatest error, order and symmetry of functions of one number, by the kernels."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pol.arithmetic.primitives import MAGNITUDE, NAN, SIGN, Words, is_nan
from pol.arithmetic.scalar_program import ScalarProgram
from pol.execution.cpu import CpuNode
from pol.execution.operand_sources import Sources
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

PARTS = 64
"""Pieces of a sweep, for progress and for several threads."""
Doubles = npt.NDArray[np.float64]
_MAGNITUDES = 1 << 31
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Sweep:
    """What a sweep found: the greatest error in units in the last place and the first word that has it.

    Neighbouring arguments at which the function steps against its direction and the longest such step in units in the
    last place (0 without a direction); pairs x, -x at which it is not odd or not even; results that are a NaN but not
    the one NaN.
    """

    error: float
    worst: int
    steps_back: int = 0
    furthest_back: int = 0
    odd_breaks: int = 0
    even_breaks: int = 0
    foreign_nans: int = 0

    def with_(self, other: "Sweep") -> "Sweep":
        """What both found together; of equal errors the first counts."""
        first = self if self.error >= other.error else other
        return Sweep(
            first.error,
            first.worst,
            self.steps_back + other.steps_back,
            max(self.furthest_back, other.furthest_back),
            self.odd_breaks + other.odd_breaks,
            self.even_breaks + other.even_breaks,
            self.foreign_nans + other.foreign_nans,
        )


class Sweeper:
    """Sweeps a program of one input, of which ``exact`` gives the values in binary64.

    Args:
        direction: 1 or -1 where the exact function rises or falls on all of its domain, on each side of 0.
    """

    def __init__(self, program: ScalarProgram, exact: Callable[[Doubles], Doubles], direction: int = 0) -> None:
        self._program, self._exact, self._direction = program, exact, direction

    def results(self, words: Words) -> Words:
        """What the kernels give."""
        type_ = TensorType(DType.F32, words.shape)
        operand = Operand(Source.STATE, 0, type_, Affine(0, (0, 1)))
        node = Node(type_, (operand,), (Input(InputKind.OPERAND, 0),), self._program)
        return CpuNode(node).run(0, Sources([words], [], []))

    def sweep(self, jobs: int = 0, advance: Callable[[], None] = lambda: None) -> Sweep:
        """Goes over all words with ``jobs`` threads (0: one per processor); calls ``advance`` `PARTS` times."""
        size, found = _MAGNITUDES // PARTS, Sweep(-1.0, 0)
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            # A part starts with the last word of the one before, so that no step between neighbours is left out.
            for part in pool.map(lambda i: self.part(max(i * size - 1, 0), (i + 1) * size), range(PARTS)):
                found = found.with_(part)
                advance()
        return found

    def part(self, first: int, last: int) -> Sweep:
        """Goes over the words first .. last-1, at most 2^31, and their negatives."""
        found, before = Sweep(-1.0, 0), dict[int, Words]()
        for start in range(first, last, _CHUNK):
            sides = []
            for sign in (0, int(SIGN)):
                words = np.arange(start, min(start + _CHUNK, last), dtype=np.uint32) | np.uint32(sign)
                result = self.results(words)
                sides.append(result)
                found = found.with_(self._side(words, result))
                order = np.concatenate((before.get(sign, result[:1]), result))
                found = found.with_(_steps(order, -self._direction if sign else self._direction))
                before[sign] = result[-1:]
            plus, minus = sides
            odd = ((plus ^ SIGN) != minus) & ~(is_nan(plus) & (plus == minus))
            breaks = int(np.count_nonzero(odd)), int(np.count_nonzero(plus != minus))
            found = found.with_(Sweep(-1.0, 0, 0, 0, *breaks))
        return found

    def _side(self, words: Words, result: Words) -> Sweep:
        """The greatest error, and NaNs that aren't the one."""
        with np.errstate(all="ignore"):
            found = errors(result, self._exact(words.view(np.float32).astype(np.float64)))
        index = int(np.argmax(found))
        foreign = int(np.count_nonzero(is_nan(result) & (result != NAN)))
        return Sweep(float(found[index]), int(words[index]), foreign_nans=foreign)


def errors(result: Words, exact: Doubles) -> Doubles:
    """Distance of each result from the exact value in units in the last place of binary32 at the exact value.

    Infinite where one is NaN and the other is not, or where a result is infinite that should round to a finite number.
    """
    with np.errstate(all="ignore"):
        value = result.view(np.float32).astype(np.float64)
        finite = np.where(np.isfinite(exact), exact, 0.0)
        exponent = np.clip(np.frexp(finite)[1] - 1, -126, 127)
        distance = np.abs(value - exact) / np.ldexp(1.0, exponent - 23)
        overflow = np.isinf(value) & (np.abs(exact) >= 2.0**128 - 2.0**103) & (np.sign(value) == np.sign(exact))
        right = overflow | (value == exact) | (np.isnan(value) & np.isnan(exact))
    return np.where(right, 0.0, np.where(np.isnan(distance), np.inf, distance))


def _steps(results: Words, towards: int) -> Sweep:
    """How often, and how far, neighbours step against a direction."""
    ranks = np.where(results & SIGN, -(results & MAGNITUDE).astype(np.int64), results.astype(np.int64))
    known = ~is_nan(results)
    back = np.where(known[1:] & known[:-1], towards * (ranks[:-1] - ranks[1:]), 0)
    return Sweep(-1.0, 0, int(np.count_nonzero(back > 0)), max(0, int(back.max(initial=0))))
