"""Node descriptors drawn without any plan, and folds and maps drawn in the forms that have kernels of their own.

The former are small shapes, or long in one dimension so that blocks and tails occur. The latter look like products,
convolutions, row sums and their gradients: operands share dimensions or not, windows overlap, tails are cut off by
bounds that mix dimensions of the output and of the fold. Every detail is drawn, and so is the data.
"""

import math
import random
from dataclasses import dataclass

import numpy as np

from lab.arithmetic.adversarial_words import SPECIALS
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

MOST_TERMS, MOST_ELEMENTS, MOST_PRODUCTS = 900, 6_000, 200_000
ONE, INFINITY, NEGATIVE_ZERO, NAN = 0x3F800000, 0x7F800000, 0x80000000, 0x7FC12345

# By input: accumulator, x, y. The first two are contractions, the others rows and blocks of elements.
PRODUCTS = [ScalarProgram(3, (), (Instruction(Op.FFMA, *order, 0),)) for order in ((1, 2), (2, 1))]
SUMS = [
    *(ScalarProgram(3, (), (Instruction(op, 0, 1),)) for op in (Op.FADD, Op.FMAX, Op.FMIN, Op.FMUL)),
    *(ScalarProgram(3, (), (Instruction(op, 1, 0),)) for op in (Op.ADD, Op.MUL, Op.AND, Op.OR)),
    *(ScalarProgram(3, (), (Instruction(Op.LTS, *pair), Instruction(Op.SELECT, 3, 1, 0))) for pair in ((0, 1), (1, 0))),
    ScalarProgram(3, (), (Instruction(Op.XOR, 1, 2), Instruction(Op.LTS, 3, 0), Instruction(Op.SELECT, 4, 0, 3))),
    ScalarProgram(3, (), (Instruction(Op.FADD, 1, 2), Instruction(Op.OR, 0, 3))),
    ScalarProgram(3, (), (Instruction(Op.LTS, 1, 2), Instruction(Op.SELECT, 3, 1, 0))),
    ScalarProgram(3, (), (Instruction(Op.FADD, 1, 0),)),
    ScalarProgram(3, (), (Instruction(Op.FFMA, 1, 1, 0),)),
    ScalarProgram(3, (), (Instruction(Op.FFMA, 1, 2, 0),)),
    ScalarProgram(3, (), (Instruction(Op.FMUL, 1, 2), Instruction(Op.FADD, 0, 3))),
    ScalarProgram(3, (), (Instruction(Op.FSUB, 1, 2), Instruction(Op.FFMA, 3, 3, 0))),
    ScalarProgram(3, (), (Instruction(Op.FABS, 1), Instruction(Op.FMAX, 3, 0))),
]
# With the word that joins without effect; inputs: accumulator, x.
SCANS = [
    *(
        (ScalarProgram(2, (), (Instruction(op, 0, 1),)), neutral)
        for op, neutral in (
            *((Op.FADD, 0), (Op.FADD, NEGATIVE_ZERO), (Op.FMUL, ONE), (Op.FMAX, INFINITY | NEGATIVE_ZERO)),
            *((Op.FMIN, INFINITY), (Op.ADD, 0), (Op.MUL, 1), (Op.AND, 0xFFFFFFFF), (Op.OR, 0)),
        )
    ),
    (ScalarProgram(2, (), (Instruction(Op.LTS, 0, 1), Instruction(Op.SELECT, 2, 1, 0))), 0x80000000),
    (ScalarProgram(2, (), (Instruction(Op.LTS, 1, 0), Instruction(Op.SELECT, 2, 1, 0))), 0x7FFFFFFF),
]
MAPS = [
    ScalarProgram(2, (), (Instruction(Op.FADD, 0, 1),)),
    ScalarProgram(2, (), (Instruction(Op.FFMA, 0, 1, 0),)),
    ScalarProgram(2, (), (Instruction(Op.FLT, 0, 1), Instruction(Op.SELECT, 2, 0, 1), Instruction(Op.FMAX, 3, 1))),
    ScalarProgram(2, (), (Instruction(Op.MOV, 0),)),
]  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A node and the tensors that it reads."""

    node: Node
    tensors: list[Words]


class FormDraw:
    """Everything that follows from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def sizes(self, rank: int, most: int, long: list[int]) -> tuple[int, ...]:
        """Small dimensions, perhaps a long one."""
        sizes = [self.random.choice([1, 2, 3, 4, 5, 7, 8]) for _ in range(rank)]
        for _ in range(self.random.choice([0, 1, 1, 2])):
            if rank:
                sizes[self.random.randrange(rank)] = self.random.choice(long)
        while math.prod(sizes) > most:
            sizes[sizes.index(max(sizes))] //= 2
        return tuple(sizes)

    def address(self, sizes: tuple[int, ...], used: list[int]) -> list[int]:
        """Strides: the used dimensions dense in some order; some shared, as by windows, some reversed or wrong."""
        strides, stride = [0] * len(sizes), self.random.choice([1, 1, 1, 1, 2])
        order = used[:] if self.random.random() < 0.4 else self.random.sample(used, len(used))
        for i in reversed(order):
            strides[i] = stride
            stride *= sizes[i]
        if len(used) > 1 and self.random.random() < 0.4:
            one, other = self.random.sample(used, 2)
            strides[one] = strides[other] * self.random.choice([1, 1, 1, 2, -1])
        for i in used:
            if self.random.random() < 0.08:
                strides[i] = self.random.choice([-strides[i], -1, 1, 3, 0, 40])
        return strides

    def bound(self, sizes: tuple[int, ...], strides: list[int]) -> Bound:
        """Of one or two dimensions, mostly a part of the address; near to what the sum of them spans."""
        chosen = self.random.sample(range(len(sizes)), min(self.random.choice([1, 2, 2, 2, 3]), len(sizes)))
        parts = [0] * len(sizes)
        unit = min((abs(strides[i]) for i in chosen if strides[i]), default=1)
        for i in chosen:
            parts[i] = strides[i] // unit if self.random.random() < 0.75 else self.random.choice([1, -1, 2, sizes[-1]])
        low = sum(part * (size - 1) for part, size in zip(parts, sizes, strict=True) if part < 0)
        high = sum(part * (size - 1) for part, size in zip(parts, sizes, strict=True) if part > 0)
        base = -low + self.random.choice([0, 0, 0, -1, -1, -2, 1])
        return Bound(Affine(base, (0, *parts)), high - low + self.random.choice([1, 1, 0, -1, -2, -5, 2]))

    def operand(self, index: int, sizes: tuple[int, ...], used: list[int]) -> Operand:
        strides = self.address(sizes, used)
        bounds = tuple(self.bound(sizes, strides) for _ in range(self.random.choice([0, 0, 1, 1, 2])))
        low = sum(stride * (size - 1) for stride, size in zip(strides, sizes, strict=True) if stride < 0)
        high = sum(stride * (size - 1) for stride, size in zip(strides, sizes, strict=True) if stride > 0)
        base = -low + self.random.choice([0, 0, 0, 0, 2, -1, -6])
        # Exactly what is read, or less: bounds then often keep reads inside, and sometimes the address alone decides.
        numel = max(base + high + 1 + self.random.choice([0, 0, 0, 5, -1, -4, -high // 5]), 1)
        fill = self.random.choice([0, 0, 0, 0, NEGATIVE_ZERO, ONE, INFINITY, NAN])
        step = self.random.choice([0, 0, 0, 0, 1, -2])
        address = Affine(base - 3 * step, (step, *strides))
        return Operand(Source.CONSTANT, index, TensorType(DType.F32, (numel,)), address, fill, bounds)

    def operands(self, shape: tuple[int, ...], fold: tuple[int, ...], products: bool) -> tuple[Operand, ...]:
        """Two; most dimensions of a product belong to one of them only, and those of a fold to both."""
        sizes = shape + fold
        used: tuple[list[int], list[int]] = ([], [])
        for i in range(len(sizes)):
            weights = [1, 4, 4, 1] if products and i < len(shape) else [12, 2, 2, 1]
            kind = self.random.choices(range(4), weights)[0]
            if kind in (0, 1):
                used[0].append(i)
            if kind in (0, 2):
                used[1].append(i)
        first, second = (self.operand(i, sizes, dims) for i, dims in enumerate(used))
        if self.random.random() < 0.2:  # the same bounds on both, as of a tail
            second = Operand(second.source, 1, second.type, second.address, second.fill, first.bounds)
        return first, second

    def node(self, kind: str) -> Node:
        shape = self.sizes(self.random.randrange(1, 5), MOST_ELEMENTS, [9, 16, 17, 32, 33, 70, 130, 260, 600])
        folds = self.sizes(self.random.randrange(1, 4), MOST_TERMS, [9, 16, 33, 64, 130, 300, 800])
        fold = () if kind == "map" else folds
        while math.prod(shape) * math.prod(fold) > MOST_PRODUCTS:
            shape = tuple(max(size // 2, 1) for size in shape)
        operands = self.operands(shape, fold, kind == "product")
        bodies = {"map": MAPS, "product": PRODUCTS, "sum": SUMS}
        body = self.random.choice(bodies[kind])
        inputs = tuple(Input(InputKind.OPERAND, i) for i in range(2))
        init = 0
        if fold:
            inputs = (Input(InputKind.ACCUMULATOR), *inputs)
            init = self.random.choice([0, 0, 0, NEGATIVE_ZERO, ONE, INFINITY | NEGATIVE_ZERO, NAN])
        return Node(TensorType(DType.F32, shape), operands, inputs, body, fold, init)

    def scan(self) -> Drawn:
        """Element i along one dimension joins the terms 0 .. i, or almost; the others read a fill."""
        count = self.random.choice([1, 2, 5, 16, 64, 70])
        shape = list(self.sizes(self.random.randrange(3), 300, [9, 16, 33]))
        axis = self.random.choice([len(shape), len(shape), self.random.randrange(len(shape) + 1)])
        shape.insert(axis, count)
        sizes = (*shape, count)
        used = [i for i in range(len(sizes)) if i != axis]
        read = self.operand(0, sizes, used)
        parts = [0] * len(sizes)
        parts[axis], parts[-1] = 1, -1
        base, limit = self.random.choice([0] * 8 + [1]), count + self.random.choice([0] * 8 + [3, -1])
        bounds = [Bound(Affine(base, (0, *parts)), limit)]
        if self.random.random() < 0.4:
            cut = [0] * len(sizes)
            cut[-1], cut[self.random.choice(used)] = 1, self.random.choice([1, 3])
            bounds.insert(self.random.randrange(2), Bound(Affine(self.random.choice([0, -2]), (0, *cut)), count))
        body, neutral = self.random.choice(SCANS)
        fill, init = (self.random.choice([neutral] * 6 + [0, NEGATIVE_ZERO, ONE, NAN]) for _ in range(2))
        operand = Operand(read.source, 0, read.type, read.address, fill, tuple(bounds))
        inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0))
        node = Node(TensorType(DType.F32, tuple(shape)), (operand,), inputs, body, (count,), init)
        return Drawn(node, [self.tensor(read.type.shape[0])])

    def tensor(self, size: int) -> Words:
        """Ordinary numbers, none, few or many of them replaced by special words; or such that products underflow."""
        words = self.numbers.standard_normal(size).astype(np.float32)
        if self.random.random() < 0.15:
            words *= np.float32(1e-23)
        strange = self.numbers.random(size) < self.random.choice([0, 0, 0.003, 0.3])
        return np.where(strange, self.numbers.choice(SPECIALS, size), words.view(np.uint32)).astype(np.uint32)

    def drawn(self, kind: str) -> Drawn:
        node = self.node(kind)
        return Drawn(node, [self.tensor(operand.type.shape[0]) for operand in node.operands])


F32, I32 = DType.F32, DType.I32
ACCUMULATE = Input(InputKind.ACCUMULATOR)


class DescriptorDraw:
    """Nodes and tensors from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def shape(self, rank: int, most: int) -> tuple[int, ...]:
        shape = [self.random.choice([1, 2, 3, 4, 5, 8]) for _ in range(rank)]
        if rank and self.random.random() < 0.4:
            shape[self.random.randrange(rank)] = self.random.choice([17, 63, 64, 65, 130, 300, 700])
        while np.prod(shape, dtype=np.int64) > most:
            shape[shape.index(max(shape))] //= 2
        return tuple(shape)

    def stride(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if self.random.random() < 0.5:  # dense over some of the coordinates, in some order
            strides = [0] * len(sizes)
            stride = self.random.choice([1, 1, 2])
            for i in self.random.sample(range(len(sizes)), self.random.randrange(len(sizes) + 1)):
                strides[i] = stride * self.random.choice([1, 1, 1, -1])
                stride *= sizes[i]
            return tuple(strides)
        return tuple(self.random.choice([0, 0, 1, 1, -1, 2, -3, 7]) for _ in sizes)

    def affine(self, sizes: tuple[int, ...]) -> Affine:
        strides = self.stride(sizes)
        low = sum(stride * (size - 1) for stride, size in zip(strides, sizes, strict=True) if stride < 0)
        base = -low + self.random.choice([0, 0, 0, 1, -1, 5, -9])
        return Affine(base, (self.random.choice([0, 0, 0, 1, -2]), *strides))

    def operand(self, position: int, sizes: tuple[int, ...], earlier: list[Operand]) -> Operand:
        address = self.affine(sizes)
        reach = address.base + sum(s * (n - 1) for s, n in zip(address.strides[1:], sizes, strict=True) if s > 0)
        numel = min(max(reach + self.random.choice([1, 1, 1, 2, 40, -3]), 1), 5_000)
        bounds = tuple(
            Bound(self.affine(sizes), self.random.choice([0, 1, 3, 10, 100, 2**62, -1]))
            for _ in range(self.random.choice([0, 0, 0, 1, 2, 4]))
        )
        plain = [i for i, operand in enumerate(earlier) if operand.gather is None]
        gather = None
        if plain and self.random.random() < 0.35:
            limit = self.random.choice([1, 5, 20, 2**40])
            gather = Gather(self.random.choice(plain), self.random.choice([1, 1, 3, -1, 64]), limit)
        type_ = TensorType(self.random.choice([F32, I32]), (numel,))
        return Operand(Source.CONSTANT, position, type_, address, int(self.numbers.choice(SPECIALS)), bounds, gather)

    def body(self, inputs: int) -> ScalarProgram:
        constants = tuple(int(word) for word in self.numbers.choice(SPECIALS, self.random.randrange(3)))
        if inputs + len(constants) == 0:
            constants = (0x3F800000,)
        instructions = []
        for i in range(self.random.choice([1, 1, 2, 5, 12])):
            op = self.random.choice(list(Op))
            registers = [self.random.randrange(inputs + len(constants) + i) for _ in range(ARITY[op])]
            instructions.append(Instruction(op, *registers))
        return ScalarProgram(inputs, constants, tuple(instructions))

    def node(self) -> Node:
        shape = self.shape(self.random.randrange(5), 3_000)
        fold = self.shape(self.random.choice([0, 0, 1, 1, 2]), 70)
        operands: list[Operand] = []
        for position in range(self.random.choice([0, 1, 2, 2, 3, 5])):
            operands.append(self.operand(position, shape + fold, operands))
        inputs = [Input(InputKind.OPERAND, i) for i in range(len(operands)) if self.random.random() < 0.9]
        inputs += [Input(InputKind.COORDINATE, i) for i in range(1 + len(shape + fold)) if self.random.random() < 0.25]
        if fold and self.random.random() < 0.9:
            inputs.append(ACCUMULATE)
        self.random.shuffle(inputs)
        init = int(self.numbers.choice(SPECIALS)) if fold else 0
        return Node(TensorType(F32, shape), tuple(operands), tuple(inputs), self.body(len(inputs)), fold, init)

    def tensor(self, type_: TensorType) -> Words:
        """Special words, ordinary numbers and small integers mixed: an index must often be in range."""
        choice = self.numbers.integers(0, 3, type_.shape)
        number = self.numbers.standard_normal(type_.shape).astype(np.float32).view(np.uint32)
        small = self.numbers.integers(-2, 25, type_.shape).astype(np.int32).view(np.uint32)
        return np.select([choice == 0, choice == 1], [number, small], self.numbers.choice(SPECIALS, type_.shape))
