"""The contracts execute primitives and programs bit for bit as `pol.arithmetic` does, on a real node, for this gas."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from web3.contract import Contract
from web3.exceptions import ContractCustomError

from anvil_node import anvil_node
from lab.arithmetic.adversarial_words import arguments, by_hand, cases
from lab.arithmetic.vector_files import SEED
from lab.benchmarks.court_gas import arithmetic_gas
from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.interpreter import run, values
from pol.arithmetic.philox import GENERATORS
from pol.arithmetic.primitives import ARITY, Op, Words, apply
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.errors import ProtocolError
from solidity import deploy

HARNESS = "tests/forge/arithmetic/ArithmeticHarness.sol"
CASES = 120_000
PROGRAM_ROWS = 4_096
UNLIMITED = 10**12
TYPICAL_CASES = 2_000
WORST_CASES = 50_000

CEILINGS = {
    Op.FADD: (470, 1_200), Op.FSUB: (490, 1_220), Op.FMUL: (285, 1_200), Op.FDIV: (270, 1_210),
    Op.FFMA: (600, 1_400), Op.FSQRT: (235, 800), Op.FRINT: (195, 200), Op.F2I: (205, 205), Op.I2F: (460, 460),
}  # fmt: skip
"""Median over normal deviates and maximum over adversarial words, of the functions of Float32 with their call."""

CLAIMED = {"add_gas": 445, "mul_gas": 265, "div_gas": 255, "sqrt_gas": 220, "fma_gas": 570, "chunk_fma_gas": 825}
"""Means over normal deviates that docs/contracts.md states, with little room."""

DISPATCH_CEILING = 430
"""`ScalarMachine.execute` on an integer primitive: finding it costs more than running it."""

CONVERSION_CEILINGS = {
    Op.F2U: 540, Op.U2F: 750, Op.F2LHI: 620, Op.F2LLO: 625, Op.L2F: 810, Op.RBF16: 535, Op.RF16: 760,
}  # fmt: skip
"""`ScalarMachine.execute` on adversarial words, at most."""


@pytest.fixture(scope="module")
def court() -> Iterator[Contract]:
    with anvil_node("--gas-limit", str(UNLIMITED), "--no-request-size-limit") as url:
        yield deploy(url, HARNESS, "ArithmeticHarness")


def joined(columns: tuple[Words, ...]) -> bytes:
    return np.stack(columns, axis=1).astype(">u4").tobytes()


def words(data: bytes) -> Words:
    return np.frombuffer(data, ">u4").astype(np.uint32)


def call(court: Contract, name: str, *parameters: object) -> object:
    return court.functions[name](*parameters).call({"gas": UNLIMITED})


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_every_primitive_equals_the_reference(court: Contract, op: Op) -> None:
    operands = tuple(np.concatenate(pair) for pair in zip(cases(op, CASES, SEED), by_hand(op), strict=True))
    expected = apply(op, *operands[: ARITY[op]])
    actual = words(call(court, "executeBatch", int(op), joined(operands)))
    wrong = np.flatnonzero(actual != expected)
    assert len(actual) == len(operands[0]) >= CASES
    assert not len(wrong), [
        [f"{int(word):08x}" for word in (*(operand[i] for operand in operands), expected[i], actual[i])]
        for i in wrong[:8]
    ]


def test_the_comparison_notices_another_primitive(court: Contract) -> None:
    operands = cases(Op.FADD, 1_000, SEED)
    actual = words(call(court, "executeBatch", int(Op.FSUB), joined(operands)))
    assert (actual != apply(Op.FADD, *operands[:2])).any()


@pytest.mark.parametrize("name", [*CATALOGUE, *GENERATORS])
def test_functions_equal_the_interpreter(court: Contract, name: str) -> None:
    program = {**CATALOGUE, **GENERATORS}[name]()
    inputs = arguments(program.inputs, PROGRAM_ROWS, SEED)
    actual = words(call(court, "runBatch", program.encode(), joined(inputs)))
    assert len(actual) == PROGRAM_ROWS
    assert (actual == run(program, inputs)).all()


def random_program(draw: random.Random) -> ScalarProgram:
    """Up to 60 instructions on up to three inputs, in which every primitive may occur."""
    builder = Builder(draw.randint(1, 3))
    registers = [builder.input(0), *(builder.const(draw.getrandbits(32)) for _ in range(draw.randint(0, 5)))]
    for _ in range(draw.randint(1, 60)):
        op = draw.choice(list(Op))
        registers.append(builder.emit(op, *(draw.choice(registers[-8:]) for _ in range(ARITY[op]))))
    return builder.build(registers[-1])


def test_all_values_of_random_programs_equal_the_interpreter(court: Contract) -> None:
    draw = random.Random(SEED)
    for _ in range(100):
        program = random_program(draw)
        row = [draw.getrandbits(32) for _ in range(program.inputs)]
        expected = [int(value) for value in values(program, [np.array(word, np.uint32) for word in row])]
        assert call(court, "values", program.encode(), row) == expected
        assert call(court, "run", program.encode(), row) == expected[-1]


def test_a_program_is_valid_on_chain_iff_it_is_in_python(court: Contract) -> None:
    draw = random.Random(SEED)
    rejected = 0
    for _ in range(400):
        data = bytearray(random_program(draw).encode())
        if draw.random() < 0.3:
            data = data[: draw.randrange(len(data))] + bytes(draw.randrange(3))
        elif draw.random() < 0.5:
            data[draw.randrange(3)] = draw.choice([0, 1, 2, 255, draw.randrange(256)])
        else:
            data[draw.randrange(3, len(data))] = draw.randrange(256)
        try:
            inputs = ScalarProgram.decode(bytes(data)).inputs
        except ProtocolError:
            rejected += 1
            with pytest.raises(ContractCustomError):
                call(court, "run", bytes(data), [0] * (data[0] if data else 0))
        else:
            call(court, "run", bytes(data), [0] * inputs)
    assert 100 < rejected < 390


def test_codes_outside_the_table_are_refused(court: Contract) -> None:
    for code in set(range(256)) - set(Op):
        for name, parameters in (("execute", (code, 1, 2, 3)), ("arity", (code,))):
            with pytest.raises(ContractCustomError) as refused:
                call(court, name, *parameters)
            assert refused.value.data == court.w3.keccak(text="InvalidInstruction(uint8)")[:4].hex().join(
                ("0x", f"{code:064x}")
            )


def test_arity_is_that_of_the_specification(court: Contract) -> None:
    assert {op: call(court, "arity", int(op)) for op in Op} == dict(ARITY)


def test_a_program_wants_all_its_inputs(court: Contract) -> None:
    program = CATALOGUE["exp"]().encode()
    for row in ([], [0, 0]):
        with pytest.raises(ContractCustomError):
            call(court, "run", program, row)


def gas(court: Contract, function: str, op: Op, operands: tuple[Words, ...]) -> Words:
    packed = np.stack(operands, axis=1).astype(">u4").tobytes()
    used = court.functions[function](int(op), packed).call({"gas": UNLIMITED})
    return np.frombuffer(used, ">u4").astype(np.uint32)


def typical_operands(op: Op) -> tuple[Words, ...]:
    generator = np.random.default_rng(SEED)
    a, b, c = (generator.standard_normal(TYPICAL_CASES).astype(np.float32) for _ in range(3))
    if op == Op.FSQRT:
        a = np.abs(a)
    if op == Op.I2F:
        return (generator.integers(0, 1_000, TYPICAL_CASES).astype(np.uint32), b.view(np.uint32), c.view(np.uint32))
    return a.view(np.uint32), b.view(np.uint32), c.view(np.uint32)


@pytest.mark.parametrize("op", CEILINGS, ids=lambda op: op.name)
def test_float_primitives_stay_below_their_ceilings(court: Contract, op: Op) -> None:
    typical = int(np.median(gas(court, "floatGasBatch", op, typical_operands(op))))
    worst = int(gas(court, "floatGasBatch", op, cases(op, WORST_CASES, SEED)).max())
    print(op.name, typical, worst)
    assert typical <= CEILINGS[op][0]
    assert worst <= CEILINGS[op][1]


INTEGER_CEILINGS = CONVERSION_CEILINGS | dict.fromkeys([op for op in Op if op >= Op.ADD], DISPATCH_CEILING)
"""Integer primitives cost little more than their dispatch."""


@pytest.mark.parametrize("op", INTEGER_CEILINGS, ids=lambda op: op.name)
def test_conversions_and_integer_primitives_stay_below_their_ceilings(court: Contract, op: Op) -> None:
    worst = int(gas(court, "gasBatch", op, cases(op, TYPICAL_CASES, SEED)).max())
    print(op.name, worst)
    assert worst <= INTEGER_CEILINGS[op]


@pytest.mark.long
def test_operations_cost_what_is_claimed() -> None:
    gas = arithmetic_gas()
    assert {name: gas[name] for name, most in CLAIMED.items() if gas[name] > most} == {}
