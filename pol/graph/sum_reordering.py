"""Re-associates the sums of a program as a seed says, to measure the effect of summation order alone.

A sum over K terms becomes L partial sums, interleaved or in blocks, which are then joined one after the other or in
halves. L and both choices come from SHA-256 of the seed and the node's number, so equal seeds give equal bytes. Partial
sums are the first dimension of their node, as in `pol.graph.lowering.folds`: the kernels then treat each of them as the
product or convolution that it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import add

from pol.arithmetic.primitives import Op
from pol.arithmetic.registers import Float, program_of
from pol.graph.node import MAX_BOUNDS, Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import MAX_ELEMENTS, MAX_RANK, DType, TensorType

DOMAIN = b"pol/reorder/1"
FEWEST_TERMS = 4
MOST_LANES = 32


@dataclass(frozen=True)
class _Split:
    """Fold dimension `axis` of `size` terms cut into `lanes` partial sums of `rounds` terms."""

    axis: int
    size: int
    lanes: int
    rounds: int
    interleaved: bool
    halving: bool

    @property
    def padded(self) -> bool:
        return self.lanes * self.rounds != self.size

    def of(self, stride: int) -> tuple[int, int]:
        """Strides over (lane, round) in place of a stride over terms."""
        return (stride, stride * self.lanes) if self.interleaved else (stride * self.rounds, stride)


def reorder(program: StepProgram, seed: int) -> StepProgram:
    """A valid program with the same slots and constants whose sums have another order; `seed` is below 2^256.

    Folds that are no plain sums, or too short, stay as they are.
    """
    nodes: list[Node] = []
    moved: list[int] = []
    for number, original in enumerate(program.nodes):
        node = _renumbered(original, moved)
        split = _split(node, seed, number)
        if split is None:
            nodes.append(node)
        else:
            nodes.append(_partial_sums(node, split))
            join = _joined_by_halves if split.halving else _joined_in_sequence
            join(nodes, split.lanes)
        moved.append(len(nodes) - 1)
    slots = tuple(replace(slot, producer=moved[slot.producer]) for slot in program.slots)
    result = StepProgram(slots, program.constants, tuple(nodes))
    result.validate()
    return result


def _renumbered(node: Node, moved: Sequence[int]) -> Node:
    operands = tuple(
        replace(operand, index=moved[operand.index]) if operand.source is Source.NODE else operand
        for operand in node.operands
    )
    return replace(node, operands=operands)


def _split(node: Node, seed: int, number: int) -> _Split | None:
    """How to cut this node, or None if it stays."""
    if not _is_sum(node) or len(node.type.shape) >= MAX_RANK:
        return None
    axis = max(range(len(node.fold)), key=lambda position: node.fold[position])
    size = node.fold[axis]
    coordinate = Input(InputKind.COORDINATE, 1 + len(node.type.shape) + axis)
    if size < FEWEST_TERMS or coordinate in node.inputs:
        return None
    drawn = hashlib.sha256(DOMAIN + seed.to_bytes(32, "big") + number.to_bytes(4, "big")).digest()
    choices = range(2, min(MOST_LANES, size // 2, MAX_ELEMENTS // node.type.numel) + 1)
    lanes = [count for count in choices if size % count == 0 or _can_pad(node)]
    if not lanes:
        return None
    count = lanes[int.from_bytes(drawn[:8], "big") % len(lanes)]
    return _Split(axis, size, count, -(-size // count), bool(drawn[8] & 1), bool(drawn[9] & 1))


def _is_sum(node: Node) -> bool:
    """Whether the body ends in adding to the accumulator and uses it for nothing else."""
    accumulator = Input(InputKind.ACCUMULATOR)
    if node.type.dtype is not DType.F32 or node.init not in {0, 0x80000000} or node.inputs.count(accumulator) != 1:
        return False
    register = node.inputs.index(accumulator)
    uses = [step for step in node.body.instructions for operand in step.operands if operand == register]
    last = node.body.instructions[-1]
    if len(uses) != 1 or uses[0] is not last:
        return False
    return (last.op is Op.FADD and register in {last.a, last.b}) or (last.op is Op.FFMA and last.c == register)


def _can_pad(node: Node) -> bool:
    """Whether terms past the end add nothing: operands go straight into the sum, and their fill word is zero."""
    last = node.body.instructions[-1]
    factors = [register for register in last.operands if register < len(node.inputs)]
    direct = len(node.body.instructions) == 1 and len(factors) == len(last.operands)
    kinds = {node.inputs[register].kind for register in factors}
    plain = all(operand.fill == 0 and len(operand.bounds) < MAX_BOUNDS for operand in node.operands)
    return direct and plain and InputKind.COORDINATE not in kinds


def _partial_sums(node: Node, split: _Split) -> Node:
    place = 1 + len(node.type.shape)
    extents = (split.lanes, *node.type.shape)
    fold = tuple(split.rounds if axis == split.axis else size for axis, size in enumerate(node.fold))

    def moved(affine: Affine) -> Affine:
        step, outer, inner = affine.strides[0], affine.strides[1:place], list(affine.strides[place:])
        lane, inner[split.axis] = split.of(inner[split.axis])
        return Affine(affine.base, (step, lane, *outer, *inner))

    def limited(operand: Operand) -> Operand:
        bounds = tuple(Bound(moved(bound.affine), bound.limit) for bound in operand.bounds)
        if split.padded:
            unit = [0] * (place + len(node.fold))
            unit[place + split.axis] = 1
            bounds = (*bounds, Bound(moved(Affine(0, tuple(unit))), split.size))
        return replace(operand, address=moved(operand.address), bounds=bounds)

    inputs = tuple(
        Input(entry.kind, entry.index + 1) if entry.kind is InputKind.COORDINATE and entry.index else entry
        for entry in node.inputs
    )
    operands = tuple(limited(operand) for operand in node.operands)
    return Node(TensorType(DType.F32, extents), operands, inputs, node.body, fold, node.init)


_SUM = program_of(add, Float, Float)


def _joined_in_sequence(nodes: list[Node], lanes: int) -> None:
    """Append a fold over the lanes of the last node."""
    source = nodes[-1].type
    shape = source.shape[1:]
    lane, *inner = source.strides
    operand = Operand(Source.NODE, len(nodes) - 1, source, Affine(0, (0, *inner, lane)))
    inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0))
    nodes.append(Node(TensorType(DType.F32, shape), (operand,), inputs, _SUM, (lanes,)))


def _joined_by_halves(nodes: list[Node], lanes: int) -> None:
    """Append maps that add the upper half of the lanes to the lower one until one lane is left."""
    while lanes > 1:
        source = nodes[-1].type
        width = -(-lanes // 2)
        shape = (width, *source.shape[1:]) if width > 1 else source.shape[1:]
        strides = (0, *source.strides[-len(shape) :]) if shape else (0,)
        lower = Operand(Source.NODE, len(nodes) - 1, source, Affine(0, strides))
        # An odd number of lanes is three at least, so there is a dimension of lanes to bound.
        bound = Bound(Affine(width, (0, 1, *[0] * (len(shape) - 1))), lanes)
        half = Affine(width * source.strides[0], strides)
        upper = replace(lower, address=half, bounds=(bound,) if lanes % 2 else ())
        inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
        nodes.append(Node(TensorType(DType.F32, shape), (lower, upper), inputs, _SUM))
        lanes = width
