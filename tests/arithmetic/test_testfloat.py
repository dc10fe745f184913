"""Every implementation of the primitives, and the processor's own instructions, on cases of TestFloat's coverage.

The whole of level 1 for one and two operands and a sample of it for FFMA; all of that, level 2 and ten million random
cases for each primitive are slow: `pytest -m slow -n 2 tests/arithmetic/test_testfloat.py`.
"""

import ctypes
import ctypes.util
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
import torch
from testfloat import ONE_OPERAND, PRIMITIVES, TESTFLOAT_CASES, TWO_OPERANDS, Numbers, cases, count, plain
from web3.contract import Contract

import instruction_sets
from anvil_node import anvil_node
from kernel_primitives import program_values
from lab.arithmetic.adversarial_words import cases as adversarial
from lab.arithmetic.vector_files import SEED
from pol.arithmetic.primitives import ARITY, MAGNITUDE, NAN, Op, Words, apply, is_nan
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution import _kernels
from solidity import deploy

Operands = tuple[Words, Words, Words]

UNLIMITED = 10**12
SAMPLE = 200_000
BLOCK = 500_000
CALL = 100_000
RANDOM = 10_000_000


@pytest.fixture(scope="module")
def court() -> Iterator[Contract]:
    with anvil_node("--gas-limit", str(UNLIMITED), "--no-request-size-limit") as url:
        yield deploy(url, "tests/forge/arithmetic/ArithmeticHarness.sol", "ArithmeticHarness")


def on_chain(court: Contract, op: Op, operands: Operands) -> Words:
    packed = np.stack(operands, axis=1).astype(">u4")
    parts = [
        court.functions["executeBatch"](int(op), packed[i : i + CALL].tobytes()).call({"gas": UNLIMITED})
        for i in range(0, len(packed), CALL)
    ]
    return np.frombuffer(b"".join(parts), ">u4").astype(np.uint32)


def native(op: Op, operands: Operands) -> Words:
    return program_values(ScalarProgram(3, (), (Instruction(op, *range(ARITY[op])),)), operands)[0]


def natively(op: Op, operands: Operands, isa: str) -> Words:
    with instruction_sets.held(isa):
        return native(op, operands)


def check(op: Op, operands: Operands, actual: Words, who: str) -> None:
    expected = apply(op, *operands[: ARITY[op]])
    assert len(actual) == len(expected)
    wrong = np.flatnonzero(actual != expected)
    assert not len(wrong), (
        who,
        len(wrong),
        [[f"{int(word):08x}" for word in (*(x[i] for x in operands), expected[i], actual[i])] for i in wrong[:8]],
    )


def level_one(op: Op) -> Operands:
    """All of level 1, or for three operands a sample."""
    if ARITY[op] < 3:
        return cases(op, 1, np.arange(count(op, 1)))
    return cases(op, 1, np.random.default_rng(SEED).integers(0, count(op, 1), SAMPLE))


def unchanged(function: Callable[..., npt.NDArray[np.float32]]) -> Callable[..., Words]:
    """The words of a function of floats, NaN being the canonical one."""

    def words(*operands: Words) -> Words:
        result = np.asarray(function(*(x.view(np.float32) for x in operands))).view(np.uint32)
        return np.where(is_nan(result), NAN, result)

    return words


def extreme(function: Callable[..., npt.NDArray[np.float32]], zero: np.ufunc) -> Callable[[Words, Words], Words]:
    """Processors do not order zeros."""

    def words(a: Words, b: Words) -> Words:
        zeros = (a | b) & MAGNITUDE == 0
        return np.where(zeros, zero(a, b), unchanged(function)(a, b))

    return words


def truncation(integer: type[np.signedinteger] | type[np.unsignedinteger]) -> Callable[[Words], npt.NDArray[np.uint64]]:
    """The conversion that the processor has, for what it converts; else the limits, of which it has its own."""
    limits = np.iinfo(integer)

    def words(a: Words) -> npt.NDArray[np.uint64]:
        x = a.view(np.float32)
        inside = (x > np.float32(limits.min) - 1) & (x < np.float32(limits.max)) | (x == np.float32(limits.min))
        converted = np.where(inside, x, np.float32(0)).astype(integer).astype(np.uint64)
        limit = np.where(x > 0, np.uint64(limits.max), np.int64(limits.min).astype(np.uint64))
        return np.where(inside, converted, np.where(is_nan(a), np.uint64(0), limit))

    return words


def shorter(dtype: torch.dtype) -> Callable[[Words], Words]:
    return unchanged(lambda x: torch.from_numpy(np.ascontiguousarray(x)).to(dtype).float().numpy())


def fused(a: Words, b: Words, c: Words) -> Words:
    """The C library's, which is the processor's instruction where there is one."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.fmaf.argtypes, library.fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float
    columns = [x.view(np.float32).tolist() for x in (a, b, c)]
    result = np.array([library.fmaf(*row) for row in zip(*columns, strict=True)], np.float64).astype(np.float32)
    return unchanged(lambda x: x)(result.view(np.uint32))


def flags(function: np.ufunc) -> Callable[[Words, Words], Words]:
    return lambda a, b: function(a.view(np.float32), b.view(np.float32)).astype(np.uint32)


HARDWARE: dict[Op, Callable[..., npt.NDArray[np.integer]]] = {
    Op.FADD: unchanged(np.add),
    Op.FSUB: unchanged(np.subtract),
    Op.FMUL: unchanged(np.multiply),
    Op.FDIV: unchanged(np.divide),
    Op.FFMA: fused,
    Op.FSQRT: unchanged(np.sqrt),
    Op.FMIN: extreme(np.minimum, np.bitwise_or),
    Op.FMAX: extreme(np.maximum, np.bitwise_and),
    Op.FEQ: flags(np.equal),
    Op.FLT: flags(np.less),
    Op.FLE: flags(np.less_equal),
    Op.FNEG: unchanged(np.negative),
    Op.FABS: unchanged(np.abs),
    Op.FRINT: unchanged(np.rint),
    Op.F2I: lambda a: truncation(np.int32)(a).astype(np.uint32),
    Op.F2U: lambda a: truncation(np.uint32)(a).astype(np.uint32),
    Op.F2LHI: lambda a: (truncation(np.int64)(a) >> np.uint64(32)).astype(np.uint32),
    Op.F2LLO: lambda a: truncation(np.int64)(a).astype(np.uint32),
    Op.I2F: lambda a: a.view(np.int32).astype(np.float32).view(np.uint32),
    Op.U2F: lambda a: a.astype(np.float32).view(np.uint32),
    Op.L2F: lambda a, b: (a.view(np.int32).astype(np.int64) << 32 | b).astype(np.float32).view(np.uint32),
    Op.RBF16: shorter(torch.bfloat16),
    Op.RF16: shorter(torch.float16),
}


def by_hardware(op: Op, operands: Operands) -> Words:
    with np.errstate(all="ignore"):
        return HARDWARE[op](*operands[: ARITY[op]]).astype(np.uint32)


def test_there_are_at_least_as_many_cases_as_testfloat_has() -> None:
    for op in (*TWO_OPERANDS, *ONE_OPERAND, Op.FFMA):
        assert count(op, 1) >= TESTFLOAT_CASES[ARITY[op]]
        assert count(op, 2) > 20 * count(op, 1)
    assert set(PRIMITIVES) == {op for op in Op if op < Op.ADD} == set(HARDWARE)


@pytest.mark.parametrize("op", PRIMITIVES, ids=lambda op: op.name)
def test_a_case_is_a_function_of_its_number(op: Op) -> None:
    numbers = np.arange(min(count(op, 1), 10_000))
    for whole, part in zip(cases(op, 1, numbers), cases(op, 1, numbers[::-7]), strict=True):
        assert np.array_equal(whole[::-7], part)


@pytest.mark.parametrize("level", [1, 2])
def test_cases_are_distinct_and_meet_every_kind_of_number(level: int) -> None:
    a, b, _ = cases(Op.FADD, level, plain(Op.FADD, level)[:: 1 if level == 1 else 101])
    assert len(np.unique(a.astype(np.uint64) << np.uint64(32) | b)) == len(a)
    assert len(np.unique(kind(a))) == len(np.unique(kind(b))) == 10
    assert level == 2 or len(np.unique(kind(a) * 10 + kind(b))) == 100
    drawn = cases(Op.FFMA, level, np.random.default_rng(SEED).integers(0, count(Op.FFMA, level), SAMPLE))
    assert all(len(np.unique(x)) > SAMPLE // 10 for x in drawn)


def kind(words: Words) -> npt.NDArray[np.int64]:
    """0 zero, 1 subnormal, 2 normal, 3 infinite, 4 NaN; 5 more if negative."""
    size = words & MAGNITUDE
    return np.searchsorted([1, 0x00800000, 0x7F800000, 0x7F800001], size, side="right") + 5 * (words >> np.uint32(31))


@pytest.mark.parametrize("isa", _kernels.isas())
@pytest.mark.parametrize("op", PRIMITIVES, ids=lambda op: op.name)
def test_level_one_natively(op: Op, isa: str) -> None:
    operands = level_one(op)
    check(op, operands, natively(op, operands, isa), isa)


@pytest.mark.parametrize("op", PRIMITIVES, ids=lambda op: op.name)
def test_level_one_by_the_processor(op: Op) -> None:
    operands = level_one(op)
    check(op, operands, by_hardware(op, operands), "processor")


@pytest.mark.parametrize("op", PRIMITIVES, ids=lambda op: op.name)
def test_level_one_on_an_evm(court: Contract, op: Op) -> None:
    operands = level_one(op)
    check(op, operands, on_chain(court, op, operands), "EVM")


def everything(op: Op) -> Iterator[Operands]:
    """Level 2 without what is drawn, for FFMA all of level 1; then random cases of level 2 and of the vector files."""
    numbers: Numbers = np.arange(count(op, 1)) if ARITY[op] == 3 else plain(op, 2)
    for i in range(0, len(numbers), BLOCK):
        yield cases(op, 2 if ARITY[op] < 3 else 1, numbers[i : i + BLOCK])
    generator = np.random.default_rng(SEED)
    for i in range(RANDOM // BLOCK // 2):
        yield cases(op, 2, generator.integers(0, count(op, 2), BLOCK))
        yield adversarial(op, BLOCK, SEED + 1 + i)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("op", PRIMITIVES, ids=lambda op: op.name)
def test_level_two_and_ten_million_random_cases(court: Contract, op: Op) -> None:
    done = 0
    for operands in everything(op):
        for isa in _kernels.isas():
            check(op, operands, natively(op, operands, isa), isa)
        if op != Op.FFMA:  # the native kernels have executed it with the processor's instruction
            check(op, operands, by_hardware(op, operands), "processor")
        check(op, operands, on_chain(court, op, operands), "EVM")
        done += len(operands[0])
    print(op.name, done)
    assert done >= RANDOM + len(plain(op, 1))
