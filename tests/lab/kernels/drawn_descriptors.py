"""Node descriptors drawn without any plan: small shapes, or long in one dimension so that blocks and tails occur."""

import random

import numpy as np

from lab.arithmetic.adversarial_words import SPECIALS
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

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
