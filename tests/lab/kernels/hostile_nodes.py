"""Nodes at the limits of what validation admits, drawn from a seed: what strangers could send to lead kernels astray.

A node that some kernel is made for is drawn first, and then details of it are made extreme as long as it stays valid:
far bases, strides up to the end of 64 bits, bounds with any limit, indices and fills of any word, repeated inputs.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lab.arithmetic.adversarial_words import SPECIALS
from lab.kernels.drawn_forms import MAPS, SUMS, DescriptorDraw, FormDraw
from lab.kernels.operation_nodes import FFMA, matmul, table_gradient
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.errors import ProtocolError
from pol.graph.node import (
    I64_MAX,
    MAX_BOUNDS,
    MAX_FOLD_RANK,
    MAX_INDEX,
    MAX_OPERANDS,
    MAX_STEP,
    Affine,
    Bound,
    Gather,
    Input,
    InputKind,
    Node,
    Operand,
    Source,
)
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

I64_MIN = -(2**63)
MOST_CHANGES = 4
MAX_RANK = 8
STEPS = [0, 1, 3, 2**31 - 1, 2**31, MAX_STEP]
LIMITS = [I64_MIN, -1, 0, 1, 2, 5, 2**29, 2**30 - 1, 2**30, 2**31, 2**32, 2**62, I64_MAX]
FAR = [1, 2, 15, 16, 33, 511, 513, 2**20, 2**28, 2**29, 2**30 - 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, I64_MAX]


class Hostile:
    """Everything that follows from a seed."""

    def __init__(self, seed: int) -> None:
        self.nodes = DescriptorDraw(seed)
        self.folds = FormDraw(seed)
        self.random = self.nodes.random
        self.numbers = self.nodes.numbers

    # Nodes to begin with.

    def convolution(self) -> Node:
        """A convolution with any kernel, distance, padding and order of dimensions; its lanes are output channels."""
        choose = self.random.choice
        batch, channels, lanes = choose([1, 2]), choose([1, 2, 3, 5]), choose([8, 9, 16, 17, 24, 33])
        size, kernel = (choose([1, 4, 7, 11]), choose([2, 5, 8])), (choose([1, 2, 3, 5]), choose([1, 3]))
        pad, apart, dilation = choose([0, 1, 2, 4]), choose([1, 1, 2, 3]), choose([1, 1, 2])
        out = tuple(
            max((n + 2 * pad - dilation * (k - 1) - 1) // apart + 1, 1) for n, k in zip(size, kernel, strict=True)
        )
        height, width = size
        plane = height * width
        x = Operand(
            Source.CONSTANT,
            0,
            TensorType(DType.F32, (batch, channels, height, width)),
            Affine(
                -pad * (width + 1), (0, channels * plane, 0, apart * width, apart, plane, dilation * width, dilation)
            ),
            choose([0, 0, 0, 0x80000000, 0x7F800000]),
            (
                Bound(Affine(-pad, (0, 0, 0, apart, 0, 0, dilation, 0)), height),
                Bound(Affine(-pad, (0, 0, 0, 0, apart, 0, 0, dilation)), width),
            ),
        )
        taps = math.prod(kernel)
        w_strides = (
            (channels * taps, taps, kernel[1], 1)
            if choose([True, False])
            else (1, taps * lanes, kernel[1] * lanes, lanes)
        )
        w = Operand(
            Source.CONSTANT,
            1,
            TensorType(DType.F32, (lanes, channels, *kernel)),
            Affine(0, (0, 0, w_strides[0], 0, 0, *w_strides[1:])),
        )
        inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), Input(InputKind.ACCUMULATOR))
        return Node(TensorType(DType.F32, (batch, lanes, *out)), (x, w), inputs, FFMA, (channels, *kernel))

    def lanes(self) -> Node:
        """Rows folded in lanes, the last round cut off by a bound."""
        width, rows, rounds = (
            self.random.choice([8, 16, 32]),
            self.random.choice([1, 3, 17]),
            self.random.choice([1, 3, 20]),
        )
        count = max(width * rounds - self.random.choice([0, 1, 7]), 1)
        bounds = (Bound(Affine(0, (0, 1, 0, width)), count),)
        x = Operand(
            Source.CONSTANT, 0, TensorType(DType.F32, (rows, count)), Affine(0, (0, 1, count, width)), 0, bounds
        )
        y = (
            replace(x, index=1)
            if self.random.random() < 0.5
            else Operand(Source.CONSTANT, 1, TensorType(DType.F32, (count,)), Affine(0, (0, 1, 0, width)), 0, bounds)
        )
        inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
        return Node(TensorType(DType.F32, (width, rows)), (x, y), inputs, self.random.choice(SUMS), (rounds,))

    def turned(self) -> Node:
        """A map that reads a matrix along its columns."""
        rows, columns = (self.random.choice([1, 7, 8, 15, 16, 17, 40]) for _ in range(2))
        batch = self.random.choice([1, 3])
        type_ = TensorType(DType.F32, (batch, rows, columns))
        strides = [(0, rows * columns, 1, rows), (0, rows * columns, columns, 1), (0, 0, 1, 0), (0, 0, 0, 1)]
        operands = tuple(
            Operand(
                Source.CONSTANT,
                i,
                TensorType(DType.F32, (batch * rows * columns,)),
                Affine(0, strides[0 if i == 0 else self.random.randrange(4)]),
            )
            for i in range(2)
        )
        inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
        bodies = [*MAPS, ScalarProgram(2, (5,), (Instruction(Op.FADD, 0, 1), Instruction(Op.MOV, 3)))]
        return Node(
            type_, operands, inputs, self.random.choice([*bodies, ScalarProgram(2, (5,), (Instruction(Op.MOV, 2),))])
        )

    def gradient(self) -> Node:
        fold = self.random.choice([(1,), (9,), (4, 5)])
        order = self.random.choice(["plain", "ignored", "inverted"])
        return table_gradient(self.nodes, self.random.choice([1, 5]), self.random.choice([1, 3, 600]), fold, order)

    def product(self) -> Node:
        choose = self.random.choice
        batch, rows, columns, terms = (
            choose([1, 2]),
            choose([1, 5, 7, 33]),
            choose([1, 4, 15, 17, 70]),
            choose([1, 3, 9, 257]),
        )
        left, right = choose([("bmk", "bkn"), ("bmk", "bnk"), ("kbm", "kn"), ("mk", "nkb")])
        return matmul(batch, rows, columns, terms, left, right)

    # What makes them hostile.

    def sign(self, value: int) -> int:
        return value if self.random.random() < 0.5 else -value

    def room(self, node: Node, affine: Affine, reach: int = 0) -> int:
        """How much further the form could reach."""
        used = abs(affine.base) + sum(abs(s) * (n - 1) for s, n in zip(affine.strides, node.extents, strict=True))
        return I64_MAX - used - reach

    def far(self, room: int) -> int:
        return self.sign(self.random.choice([d for d in (*FAR, room, room - 1) if d <= room] or [0]))

    def affine(self, node: Node, affine: Affine, reach: int = 0) -> Affine:
        """With one number changed, perhaps to the last that is valid."""
        if self.random.random() < 0.3:
            return replace(affine, base=self.far(self.room(node, replace(affine, base=0), reach)))
        if self.random.random() < 0.3:
            return replace(affine, base=affine.base + self.sign(self.random.choice([1, 2, 5, 16, 100])))
        i = self.random.randrange(len(affine.strides))
        strides = list(affine.strides)
        strides[i] = 0
        extent = node.extents[i]
        if extent == 1:
            strides[i] = self.random.choice([I64_MIN, I64_MAX, -1, 1])
        elif self.random.random() < 0.5:
            strides[i] = affine.strides[i] * self.random.choice([-1, 2, 3]) + self.random.choice([0, 0, 1])
        else:
            strides[i] = self.far(self.room(node, Affine(affine.base, tuple(strides)), reach) // (extent - 1))
        return Affine(affine.base, tuple(strides))

    def bound(self, node: Node, operand: Operand) -> Operand:
        bounds = list(operand.bounds)
        if bounds and self.random.random() < 0.7:
            i = self.random.randrange(len(bounds))
            if self.random.random() < 0.5:
                bounds[i] = replace(
                    bounds[i], limit=self.random.choice([*LIMITS, bounds[i].limit + 1, bounds[i].limit * 2])
                )
            else:
                bounds[i] = replace(bounds[i], affine=self.affine(node, bounds[i].affine))
        elif len(bounds) < MAX_BOUNDS:
            form = operand.address if self.random.random() < 0.5 else Affine(0, (0,) * len(node.extents))
            bounds.append(Bound(self.affine(node, form), self.random.choice(LIMITS)))
        return replace(operand, bounds=tuple(bounds))

    def gather(self, node: Node, position: int) -> Operand:
        operand = node.operands[position]
        plain = [i for i in range(position) if node.operands[i].gather is None]
        if not plain or any(other.gather and other.gather.operand == position for other in node.operands):
            return operand
        limit = self.random.choice(LIMITS)
        reach = min(max(limit - 1, 0), MAX_INDEX)
        stride = self.far(self.room(node, operand.address) // reach if reach else I64_MAX)
        return replace(operand, gather=Gather(self.random.choice(plain), stride, limit))

    def reach(self, operand: Operand) -> int:
        gather = operand.gather
        return abs(gather.stride) * min(max(gather.limit - 1, 0), MAX_INDEX) if gather else 0

    def change_operand(self, node: Node) -> Node:
        if not node.operands:
            return node
        position = self.random.randrange(len(node.operands))
        operand = node.operands[position]
        kind = self.random.randrange(6)
        if kind in (0, 1):
            operand = replace(operand, address=self.affine(node, operand.address, self.reach(operand)))
        elif kind in (2, 3):
            operand = self.bound(node, operand)
        elif kind == 4:
            operand = self.gather(node, position)
        else:
            numel = operand.type.numel
            size = self.random.choice([1, numel + 1, max(numel - 1, 1), max(numel // 2, 1)])
            operand = replace(
                operand, type=TensorType(operand.type.dtype, (size,)), fill=int(self.numbers.choice(SPECIALS))
            )
        return replace(node, operands=(*node.operands[:position], operand, *node.operands[position + 1 :]))

    def add_dimension(self, node: Node) -> Node:
        """A dimension of size 1 with any stride, of the output or of the fold."""
        rank, fold_rank = len(node.type.shape), len(node.fold)
        to_fold = bool(node.fold) and self.random.random() < 0.5
        if (fold_rank >= MAX_FOLD_RANK) if to_fold else (rank >= MAX_RANK):
            return node
        at = self.random.randrange(fold_rank + 1) if to_fold else self.random.randrange(rank + 1)
        place = 1 + at + (rank if to_fold else 0)

        def widened(affine: Affine) -> Affine:
            stride = self.random.choice([0, 0, 1, I64_MIN, I64_MAX])
            return replace(affine, strides=(*affine.strides[:place], stride, *affine.strides[place:]))

        operands = tuple(
            replace(o, address=widened(o.address), bounds=tuple(replace(b, affine=widened(b.affine)) for b in o.bounds))
            for o in node.operands
        )
        inputs = tuple(
            replace(entry, index=entry.index + 1)
            if entry.kind == InputKind.COORDINATE and entry.index >= place
            else entry
            for entry in node.inputs
        )
        shape, fold = list(node.type.shape), list(node.fold)
        (fold if to_fold else shape).insert(at, 1)
        return replace(
            node, type=TensorType(node.type.dtype, tuple(shape)), fold=tuple(fold), operands=operands, inputs=inputs
        )

    def add_operand(self, node: Node) -> Node:
        """One more of those it has, perhaps read by nobody."""
        if not node.operands or len(node.operands) >= MAX_OPERANDS:
            return node
        copies = self.random.choice([1, 1, MAX_OPERANDS - len(node.operands)])
        operands = tuple(self.random.choice(node.operands) for _ in range(copies))
        return replace(node, operands=(*node.operands, *operands))

    def repeat_inputs(self, node: Node) -> Node:
        """The same program with more inputs than there are operands and coordinates."""
        body = node.body
        room = 256 - body.inputs - len(body.constants) - len(body.instructions)
        more = min(self.random.choice([1, 30, room]), room)
        extra = [Input(InputKind.COORDINATE, self.random.randrange(len(node.extents)))] * more
        if node.operands and self.random.random() < 0.7:
            extra = [Input(InputKind.OPERAND, self.random.randrange(len(node.operands))) for _ in range(more)]

        def moved(register: int) -> int:
            return register + more if register >= body.inputs else register

        instructions = tuple(
            Instruction(i.op, *(moved(r) if k < ARITY[i.op] else 0 for k, r in enumerate((i.a, i.b, i.c))))
            for i in body.instructions
        )
        return replace(
            node, inputs=(*node.inputs, *extra), body=ScalarProgram(body.inputs + more, body.constants, instructions)
        )

    def other_body(self, node: Node) -> Node:
        return replace(node, body=self.nodes.body(len(node.inputs)))

    def node(self) -> Node:
        """A node with up to four changes."""
        draws: list[Callable[[], Node]] = [
            self.nodes.node,
            lambda: self.folds.node("product"),
            lambda: self.folds.node("sum"),
            lambda: self.folds.node("map"),
            self.convolution,
            self.convolution,
            self.lanes,
            self.turned,
            self.gradient,
            self.product,
        ]
        node = self.random.choice(draws)()
        while math.prod(node.type.shape) * node.terms > 60_000 or node.terms > 300:
            node = self.random.choice(draws)()
        changes = [
            *[self.change_operand] * 6,
            self.add_dimension,
            self.add_operand,
            self.repeat_inputs,
            self.other_body,
        ]
        for _ in range(self.random.randrange(MOST_CHANGES + 1)):
            try:
                node = self.random.choice(changes)(node)
            except ProtocolError:
                continue  # one step too far
        return node

    def tensor(self, type_: TensorType) -> Words:
        """Of finite numbers only, which kernels may treat apart, or with any word."""
        if self.random.random() < 0.5:
            return self.folds.tensor(type_.numel).reshape(type_.shape)
        return self.nodes.tensor(type_).astype(np.uint32)

    def program(self) -> tuple[StepProgram, list[Words], list[Words]]:
        """A few nodes, some reading what earlier ones yield, with state and constants."""
        placed: list[Node] = []
        types: list[TensorType] = []
        for _ in range(self.random.choice([1, 1, 3])):
            node = self.node()
            operands = []
            for read in node.operands:
                operand = read
                if placed and self.random.random() < 0.6:
                    index = self.random.choice([len(placed) - 1, self.random.randrange(len(placed))])
                    source = placed[index].type
                    same = source.shape == node.type.shape and self.random.random() < 0.7
                    address = operand.address
                    if same and operand.gather is None:
                        dense = [math.prod(source.shape[i + 1 :]) for i in range(len(source.shape))]
                        address = Affine(0, (0, *dense, *[0] * len(node.fold)))
                    operand = replace(operand, source=Source.NODE, index=index, type=source, address=address)
                else:
                    operand = replace(operand, source=Source.CONSTANT, index=len(types))
                    types.append(operand.type)
                operands.append(operand)
            placed.append(replace(node, operands=tuple(operands)))
            if self.random.random() < 0.5:  # a map of the same shape may replace what it reads
                placed.append(self.after(placed))
        types = types or [TensorType(DType.F32, (1,))]
        slot = Slot(Component.BUFFER, placed[-1].type, len(placed) - 1)
        program = StepProgram((slot,), tuple(types), tuple(placed))
        program.validate()
        return program, [self.tensor(slot.type)], [self.tensor(type_) for type_ in types]

    def after(self, placed: list[Node]) -> Node:
        type_ = placed[-1].type
        dense = tuple(math.prod(type_.shape[i + 1 :]) for i in range(len(type_.shape)))
        operands = tuple(
            Operand(
                Source.NODE,
                self.random.choice([len(placed) - 1, self.random.randrange(len(placed))]),
                type_,
                Affine(0, (0, *dense)),
            )
            for _ in range(2)
        )
        operands = tuple(o if placed[o.index].type == type_ else replace(o, index=len(placed) - 1) for o in operands)
        inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
        return Node(type_, operands, inputs, self.random.choice(MAPS))
