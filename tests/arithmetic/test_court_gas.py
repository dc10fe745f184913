"""What a primitive costs in the court: typical operands and the worst of many adversarial ones."""

from collections.abc import Iterator

import numpy as np
import pytest
from web3.contract import Contract

from anvil_node import anvil_node
from lab.arithmetic.adversarial_words import cases
from lab.arithmetic.vector_files import SEED
from lab.benchmarks.court_gas import arithmetic_gas
from pol.arithmetic.primitives import Op, Words
from solidity import deploy

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
        yield deploy(url, "tests/forge/arithmetic/ArithmeticHarness.sol", "ArithmeticHarness")


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


@pytest.mark.parametrize("op", CONVERSION_CEILINGS, ids=lambda op: op.name)
def test_conversions_stay_below_their_ceilings(court: Contract, op: Op) -> None:
    worst = int(gas(court, "gasBatch", op, cases(op, TYPICAL_CASES, SEED)).max())
    print(op.name, worst)
    assert worst <= CONVERSION_CEILINGS[op]


@pytest.mark.parametrize("op", [op for op in Op if op >= Op.ADD], ids=lambda op: op.name)
def test_integer_primitives_cost_little_more_than_their_dispatch(court: Contract, op: Op) -> None:
    worst = int(gas(court, "gasBatch", op, cases(op, TYPICAL_CASES, SEED)).max())
    print(op.name, worst)
    assert worst <= DISPATCH_CEILING


def test_operations_cost_what_is_claimed() -> None:
    gas = arithmetic_gas()
    assert {name: gas[name] for name, most in CLAIMED.items() if gas[name] > most} == {}
