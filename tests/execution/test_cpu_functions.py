"""Functions run as compiled loops and NaNs are made canonical late: the bits stay those of the reference."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from lab.arithmetic.adversarial_words import SPECIALS, cases
from lab.kernels.generate import COMMAND, DIRECTORY, generate, operations
from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.interpreter import run
from pol.arithmetic.philox import GENERATORS
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.execution import _kernels
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

LANES = 3_000
CARRIERS = [Op.SELECT, Op.MOV]
FLOATS = [op for op in Op if op <= Op.FRINT]


@pytest.fixture(params=_kernels.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _kernels.isa()
    _kernels.set_isa(request.param)
    yield request.param
    _kernels.set_isa(before)


def execute(body: ScalarProgram, inputs: list[Words]) -> Words:
    """A map with this body over the lanes of the inputs."""
    type_ = TensorType(DType.F32, (len(inputs[0]),))
    operands = tuple(Operand(Source.CONSTANT, i, type_, Affine(0, (0, 1)), 0) for i in range(body.inputs))
    reads = tuple(Input(InputKind.OPERAND, i) for i in range(body.inputs))
    out = np.empty(type_.shape, np.uint32)
    _kernels.Node(Node(type_, operands, reads, body).encode()).run(3, out, inputs[: body.inputs])
    return out


def check(body: ScalarProgram, inputs: list[Words]) -> None:
    found, expected = execute(body, inputs), run(body, inputs[: body.inputs])
    wrong = np.flatnonzero(found != expected)
    assert wrong.size == 0, [hex(int(x[wrong[0]])) for x in (*inputs, found, expected)]


def test_generated_code_is_that_of_the_programs() -> None:
    for name, content in generate().items():
        assert (DIRECTORY / name).read_text() == content, f"{name}: run {COMMAND}"


COMPILED = {name: function() for name, function in {**CATALOGUE, **GENERATORS}.items()} | operations()


@pytest.mark.parametrize("name", sorted(COMPILED))
def test_function_has_the_reference_bits(isa: str, name: str) -> None:
    program = COMPILED[name]
    inputs = [*cases(Op.FFMA, LANES, 5), *cases(Op.FFMA, LANES, 6)]
    check(program, inputs)
    near_one = [(x & 0x807FFFFF) | (0x3D000000 + (x >> 5 & 0x7) * 0x00800000) for x in inputs]
    check(program, [x.astype(np.uint32) for x in near_one])


@pytest.mark.parametrize("seed", range(40))
def test_bodies_that_call_functions(isa: str, seed: int) -> None:
    """Results of functions go through float, integer and moving primitives, and share parts with other code."""
    draw = random.Random(seed)
    callable_ = [f() for f in CATALOGUE.values() if len(f().instructions) <= 40 and f().inputs <= 2]
    b = Builder(3)
    registers = [b.input(0), b.input(1), b.input(2), b.const(0x7FC12345), b.const(0x3F800000)]
    for _ in range(draw.randrange(1, 4)):
        program = draw.choice(callable_)
        registers.append(b.call(program, *draw.choices(registers, k=program.inputs)))
        for _ in range(draw.randrange(5)):
            op = draw.choice(list(Op))
            registers.append(b.emit(op, *draw.choices(registers, k=ARITY[op])))
    check(b.build(registers[-1]), list(cases(Op.FFMA, LANES, seed)))


@pytest.mark.parametrize("seed", range(60))
def test_no_other_nan_escapes(isa: str, seed: int) -> None:
    """Chains of float primitives on NaNs of all payloads and signs, now and then looked at by integer primitives."""
    draw = random.Random(seed)
    b = Builder(3)
    registers = [b.input(0), b.input(1), b.input(2), b.const(0xFFA54321)]
    for _ in range(draw.randrange(1, 25)):
        op = draw.choice(FLOATS * 2 + CARRIERS * 8 + list(Op))
        registers.append(b.emit(op, *draw.choices(registers[-6:], k=ARITY[op])))
    words = np.random.default_rng(seed)
    check(b.build(registers[-1]), [words.choice(SPECIALS, LANES).astype(np.uint32) for _ in range(3)])
