"""The native primitives give the reference's bits in every instruction set of this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from kernel_primitives import program_values
from lab.arithmetic.adversarial_words import cases
from pol.arithmetic.interpreter import values
from pol.arithmetic.primitives import ARITY, Op, Words, apply
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.commitments import _hashing
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.execution import _kernels
from pol.execution.cpu import SELF_TEST_DIGEST, check_machine

CASES = 100_000


@pytest.fixture(params=_kernels.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _kernels.isa()
    _kernels.set_isa(request.param)
    yield request.param
    _kernels.set_isa(before)


def single(op: Op) -> ScalarProgram:
    return ScalarProgram(3, (), (Instruction(op, *range(ARITY[op])),))


@pytest.mark.parametrize("op", list(Op))
def test_primitive_has_the_reference_bits(isa: str, op: Op) -> None:
    operands = cases(op, CASES, 11)
    native = program_values(single(op), operands)[0]
    expected = apply(op, *operands[: ARITY[op]])
    wrong = np.flatnonzero(native != expected)
    assert wrong.size == 0, [hex(int(x[wrong[0]])) for x in (*operands, native, expected)]


@pytest.mark.parametrize("lanes", [1, 2, 3, 15, 16, 17, 31, 33, 65])
def test_lane_counts_that_leave_a_remainder(isa: str, lanes: int) -> None:
    for op in Op:
        operands = [x[:lanes] for x in cases(op, 200, lanes)]
        assert np.array_equal(program_values(single(op), operands)[0], apply(op, *operands[: ARITY[op]]))


def test_every_instruction_of_a_program(isa: str) -> None:
    program = ScalarProgram(
        2,
        (0x3F800000, 0x7FC12345),
        (
            Instruction(Op.FADD, 0, 2),
            Instruction(Op.FFMA, 4, 1, 3),
            Instruction(Op.MOV, 3),
            Instruction(Op.SELECT, 0, 4, 6),
        ),
    )
    inputs = cases(Op.FADD, 5_000, 3)[:2]
    for native, expected in zip(program_values(program, inputs), values(program, inputs), strict=True):
        assert np.array_equal(native, np.broadcast_to(expected, native.shape))


def test_self_test_digest_is_that_of_the_reference(isa: str) -> None:
    words = reference_self_test().astype("<u4").tobytes()
    assert _kernels.self_test_words() == words
    assert keccak256(words) == SELF_TEST_DIGEST


def reference_self_test() -> Words:
    special = np.array(
        [
            *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF),
            *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFA00001, 0x4B000001, 0x3F000000, 0x0000001F, 0xCF000000),
        ],
        np.uint32,
    )
    i = np.arange(4096, dtype=np.uint32)
    operands = [np.concatenate([special[(i >> 4 * w) & 15], mix(3 * i + np.uint32(w))]) for w in range(3)]
    results = [apply(op, *operands[: ARITY[op]]) for op in sorted(Op)]
    x, y = matrix(29 * 70, 1 << 20).reshape(29, 70), matrix(70 * 37, 2 << 20).reshape(70, 37)
    product = np.zeros((29, 37), np.uint32)
    for k in range(70):
        product = apply(Op.FFMA, x[:, k : k + 1], y[k : k + 1], product)
    return np.concatenate([*results, product.ravel()])


def matrix(size: int, seed: int) -> Words:
    return (mix(np.arange(seed, seed + size, dtype=np.uint32)) & np.uint32(0x807FFFFF)) | np.uint32(0x3F000000)


def mix(x: Words) -> Words:
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return x ^ x >> np.uint32(16)


MODULES = pytest.mark.parametrize("module", [_kernels, _hashing])


@MODULES
@pytest.mark.parametrize("isa", _kernels.isas())
def test_the_environment_chooses_the_instruction_set(isa: str, module: ModuleType) -> None:
    assert loaded_with(isa, module).stdout.strip() == isa


@MODULES
def test_an_unknown_instruction_set_is_refused(module: ModuleType) -> None:
    failed = loaded_with("v9", module)
    assert failed.returncode != 0
    assert "POL_ISA" in failed.stderr
    with pytest.raises(ValueError, match="v9"):
        module.set_isa("v9")


def loaded_with(isa: str, module: ModuleType) -> "subprocess.CompletedProcess[str]":
    code = f"import {module.__name__} as module; print(module.isa())"
    environment = {**os.environ, "POL_ISA": isa}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_a_machine_with_other_bits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_machine("this one")
    monkeypatch.setattr("pol.execution.cpu.SELF_TEST_DIGEST", bytes(32))
    with pytest.raises(OperationalError, match="self-test"):
        check_machine("another one")
