"""A check of one step's trace that multiplies no matrices: products by random projection, the rest bit for bit.

What it finds, with which probability, and what it can't find: docs/spec/freivalds.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lab.verification.matrix_products import Matrices, Product, find_product
from pol.arithmetic.primitives import Words
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.execution.cpu import CpuNode
from pol.execution.operand_sources import Sources, check_tensors
from pol.graph.step_program import StepProgram

PROJECTIONS = 20
LEAST = 300
"""Products with a smaller `Product.gain` are recomputed: there is nothing to save (docs/spec/freivalds.md, "Cost")."""
MAX_BLOCK = 1 << 16
"""Most columns that are projected together: our own rounding stays small beside that of the fold."""
DOMAIN = b"pol/freivalds/1"
ROUNDOFF = 2.0**-24
"""Half of the distance of two neighbouring binary32 numbers, relative."""
TINY = 2.0**-149
"""The smallest binary32; half of it is the most that a result below the normal numbers is off."""
_EXACT = 2.0**24
_LARGE = 2.0**126
_SLACK = 1 + 2.0**-20
"""Covers the rounding of the bounds themselves, which are computed in binary64 from at most 2^26 numbers each."""

Numbers = NDArray[np.float64]


class Method(StrEnum):
    """How a node was checked."""

    RECOMPUTED = "recomputed"
    PROJECTED = "projected"
    EXACT = "exact"


@dataclass(frozen=True)
class Report:
    """How each node was checked, and which nodes are wrong for certain; none of an honest trace ever is."""

    methods: tuple[Method, ...]
    wrong: tuple[int, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing wrong was found."""
        return not self.wrong


@dataclass(frozen=True)
class Projection:
    """Projected results, (pairs, rows, blocks, projections), and what they may be off, (pairs, rows, blocks)."""

    residuals: Numbers
    bounds: Numbers
    exact: bool

    @property
    def is_conclusive(self) -> bool:
        """Whether the bound holds: operands are finite, and no partial sum can have overflowed."""
        return bool((self.bounds * (1 / ROUNDOFF) < _LARGE).all())

    @property
    def passed(self) -> bool:
        """Whether every projection is within its bound."""
        return bool((np.abs(self.residuals) <= self.bounds[..., None]).all())


class StepCheck:
    """Checks claimed outputs of all nodes of a step program, one step at a time.

    Raises ProtocolError if the program is invalid or the constants are not of its types, OperationalError if this
    machine's arithmetic is not that of docs/spec/arithmetic.md.
    """

    def __init__(
        self, program: StepProgram, constants: Sequence[Words], threads: int = 1, least: float = LEAST
    ) -> None:
        program.validate()
        check_tensors("constant", program.constants, constants)
        self._program = program
        self._constants = list(constants)
        self._kernels = [CpuNode(node, threads) for node in program.nodes]
        self._products = [find_product(node) for node in program.nodes]
        self._least = least

    def check(
        self,
        state: Sequence[Words],
        step: int,
        outputs: Sequence[Words],
        entropy: bytes,
        projections: int = PROJECTIONS,
        block: int | None = None,
    ) -> Report:
        """Check the outputs of all nodes at a step; every node against the claimed outputs of those before it.

        ``entropy`` are 32 bytes that nobody knew before the outputs were committed to. With ``block``, at most this
        many columns are projected together: bounds are as much smaller, the check costs as much more.

        Raises:
            ProtocolError: tensors, entropy or numbers that do not fit.
        """
        if len(entropy) != 32 or projections < 1 or (block is not None and block < 1):
            raise ProtocolError("a check needs 32 bytes of entropy, one projection and blocks of one column at least")
        check_tensors("state slot", [slot.type for slot in self._program.slots], state)
        check_tensors("node output", [node.type for node in self._program.nodes], outputs)
        methods, wrong = [], []
        sources = Sources(state, self._constants, outputs)
        for index, (kernel, product) in enumerate(zip(self._kernels, self._products, strict=True)):
            method, passed = Method.RECOMPUTED, False
            if product is not None and product.gain >= self._least:
                width = min(product.rows, product.columns, block or MAX_BLOCK, MAX_BLOCK)
                signs = draw_signs(entropy, index, width, projections)
                projection = project(product, step, sources, outputs[index], signs)
                if projection.is_conclusive and np.isfinite(projection.residuals).all():
                    method = Method.EXACT if projection.exact else Method.PROJECTED
                    passed = projection.passed
            if method is Method.RECOMPUTED:
                passed = bool(np.array_equal(kernel.run(step, sources), outputs[index]))
            methods.append(method)
            if not passed:
                wrong.append(index)
        return Report(tuple(methods), tuple(wrong))


def draw_signs(entropy: bytes, node: int, width: int, projections: int) -> Numbers:
    """Independent signs +1 and -1, (width, projections), for one node: the bits of a chain of hashes over a counter."""
    prefix = DOMAIN + entropy + node.to_bytes(4, "big")
    count = -(-width * projections // 256)
    stream = b"".join(keccak256(prefix + counter.to_bytes(4, "big")) for counter in range(count))
    bits = np.unpackbits(np.frombuffer(stream, np.uint8))[: width * projections]
    signs: Numbers = (1.0 - 2.0 * bits).reshape(projections, width).T.astype(np.float64)
    return signs


def project(product: Product, step: int, sources: Sources, output: Words, signs: Numbers) -> Projection:
    """Both sides of `result = left * right`, multiplied by the signs (columns, projections) a block at a time."""
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = (product.matrices(which, step, sources) for which in range(2))
        result = product.result(output)
        if product.columns > product.rows:
            left, right, result = right, left, result.transpose(0, 2, 1)
        return _projected(left, right, result, signs)


def _projected(left: Matrices, right: Matrices, result: Matrices, signs: Numbers) -> Projection:
    width, terms = len(signs), left.shape[2]
    weights = rounding_bounds(terms)
    magnitude = np.abs(left)
    residuals, bounds = [], []
    for begin in range(0, right.shape[1], width):
        columns = right[:, begin : begin + width]
        claimed = result[:, :, begin : begin + width]
        here = signs[: columns.shape[1]]
        projected = columns.transpose(0, 2, 1) @ here
        residuals.append(claimed @ here - left @ projected)
        rounded = magnitude @ (np.abs(columns).sum(axis=1) * weights)[..., None]
        bounds.append(_bound(rounded[..., 0], np.abs(claimed).sum(axis=2), terms, columns.shape[1]))
    joined, bound = np.stack(residuals, axis=2), np.stack(bounds, axis=2)
    unit = _common_unit(left, right, float(bound.max()) / ROUNDOFF)
    if unit is None:
        return Projection(joined, bound, False)
    # Nothing rounds, neither in the fold nor here, if what is claimed are multiples of the unit of a moderate size.
    possible = (np.abs(result) <= _EXACT * unit) & (np.rint(result / unit) * unit == result)
    return Projection(np.where(possible.all(), joined, np.inf), np.zeros_like(bound), True)


def rounding_bounds(terms: int) -> Numbers:
    """How much of each term of a fold rounding can change, relative: term l passes through terms - l + 1 roundings."""
    passed = np.arange(terms, 0, -1) * ROUNDOFF
    bounds: Numbers = passed / (1 - passed)
    return bounds


def _bound(rounded: Numbers, claimed: Numbers, terms: int, columns: int) -> Numbers:
    """What a projection of a block may be off: rounding of the fold, of numbers below the normal ones, and our own."""
    unit = 2.0**-53
    own = (terms + columns) * unit
    return (rounded * (1 + 2 * own / ROUNDOFF) + 2 * terms * columns * TINY + 2 * columns * unit * claimed) * _SLACK


def _common_unit(left: Matrices, right: Matrices, most: float) -> float | None:
    """The power of two of which all products are multiples, if every partial sum of every fold is exact then."""
    units = []
    for operand in (left, right):
        # A few numbers tell nearly always that there is no such unit; all are looked at only if they do not.
        for some in (operand[0, 0], operand):
            lowest = _lowest_bit(some)
            if lowest is None or np.abs(some).max() > _EXACT * lowest:
                return None
            units.append(lowest)
    unit = units[1] * units[3]
    return unit if unit >= TINY and most <= min(_EXACT * unit, _LARGE) else None


def _lowest_bit(numbers: Numbers) -> float | None:
    """The greatest power of two that divides all numbers; None if one is not finite, 1 if all are zero."""
    nonzero = np.abs(numbers[numbers != 0])
    if not np.isfinite(nonzero).all():
        return None
    if not nonzero.size:
        return 1.0
    mantissa, exponent = np.frexp(nonzero)
    digits = (mantissa * 2.0**24).astype(np.int64)
    return float(np.ldexp(digits & -digits, exponent - 24).min())
