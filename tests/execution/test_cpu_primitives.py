"""The native primitives and functions give the reference's bits and those of the vectors in every instruction set."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import instruction_sets
from kernel_primitives import program_values
from lab.arithmetic.adversarial_words import SPECIALS, arguments, cases
from lab.kernels.generate import COMMAND, DIRECTORY, generate, operations
from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.interpreter import run, values
from pol.arithmetic.philox import GENERATORS
from pol.arithmetic.primitives import ARITY, Op, Words, apply
from pol.arithmetic.scalar_program import Builder, Instruction, ScalarProgram
from pol.commitments import _hashing
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.execution import _kernels
from pol.execution.cpu import SELF_TEST_DIGEST, check_machine
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

CASES = 100_000


@pytest.fixture(params=_kernels.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    with instruction_sets.held(request.param):
        yield request.param


def single(op: Op) -> ScalarProgram:
    return ScalarProgram(ARITY[op], (), (Instruction(op, *range(ARITY[op])),))


@pytest.mark.parametrize("op", list(Op))
def test_primitive_has_the_reference_bits(op: Op) -> None:
    operands = cases(op, CASES, 11)
    expected = apply(op, *operands[: ARITY[op]])
    for isa in instruction_sets.each():
        native = program_values(single(op), operands)[0]
        wrong = np.flatnonzero(native != expected)
        assert wrong.size == 0, [isa, *(hex(int(x[wrong[0]])) for x in (*operands, native, expected))]


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


def test_a_thread_that_flushes_subnormals_is_refused() -> None:
    one = np.array([1], np.uint32)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormal numbers")
    try:
        with pytest.raises(OperationalError, match="flushes subnormal"):
            apply(Op.FADD, one, one)
    finally:
        torch.set_flush_denormal(False)
    assert apply(Op.FADD, one, one).tolist() == [2]


LANES = 3_000
CARRIERS = [Op.SELECT, Op.MOV]
FLOATS = [op for op in Op if op <= Op.FRINT]


def map_of(body: ScalarProgram, size: int) -> Node:
    """A map with this body over arrays of so many words."""
    type_ = TensorType(DType.F32, (size,))
    operands = tuple(Operand(Source.CONSTANT, i, type_, Affine(0, (0, 1))) for i in range(body.inputs))
    return Node(type_, operands, tuple(Input(InputKind.OPERAND, i) for i in range(body.inputs)), body)


def execute(body: ScalarProgram, inputs: list[Words]) -> Words:
    out = np.empty(inputs[0].shape, np.uint32)
    _kernels.Node(map_of(body, out.size).encode()).run(3, out, inputs[: body.inputs])
    return out


def check(body: ScalarProgram, inputs: list[Words]) -> None:
    expected = run(body, inputs[: body.inputs])
    for isa in instruction_sets.each():
        found = execute(body, inputs)
        wrong = np.flatnonzero(found != expected)
        assert wrong.size == 0, [isa, *(hex(int(x[wrong[0]])) for x in (*inputs, found, expected))]


def test_generated_code_is_that_of_the_programs() -> None:
    for name, content in generate().items():
        assert (DIRECTORY / name).read_text() == content, f"{name}: run {COMMAND}"


COMPILED = {name: function() for name, function in {**CATALOGUE, **GENERATORS}.items()} | operations()


@pytest.mark.parametrize("name", sorted(COMPILED))
def test_function_has_the_reference_bits(name: str) -> None:
    program = COMPILED[name]
    inputs = [*cases(Op.FFMA, LANES, 5), *cases(Op.FFMA, LANES, 6)]
    check(program, inputs)
    near_one = [(x & 0x807FFFFF) | (0x3D000000 + (x >> 5 & 0x7) * 0x00800000) for x in inputs]
    check(program, [x.astype(np.uint32) for x in near_one])


@pytest.mark.parametrize("seed", range(40))
def test_bodies_that_call_functions(seed: int) -> None:
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
def test_no_other_nan_escapes(seed: int) -> None:
    """Chains of float primitives on NaNs of all payloads and signs, now and then looked at by integer primitives."""
    draw = random.Random(seed)
    b = Builder(3)
    registers = [b.input(0), b.input(1), b.input(2), b.const(0xFFA54321)]
    for _ in range(draw.randrange(1, 25)):
        op = draw.choice(FLOATS * 2 + CARRIERS * 8 + list(Op))
        registers.append(b.emit(op, *draw.choices(registers[-6:], k=ARITY[op])))
    words = np.random.default_rng(seed)
    check(b.build(registers[-1]), [words.choice(SPECIALS, LANES).astype(np.uint32) for _ in range(3)])


VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
PRIMITIVES: dict[str, Any] = json.loads((VECTORS / "primitives.json").read_text())
PROGRAMS: dict[str, Any] = json.loads((VECTORS / "programs.json").read_text())


def digest(*columns: Words) -> str:
    return sha256(b"".join(column.astype("<u4").tobytes() for column in columns)).hexdigest()


def explicit(rows: list[str]) -> Words:
    return np.array([[int(word, 16) for word in row.split()] for row in rows], np.uint32).T.copy()


@pytest.mark.parametrize("name", PRIMITIVES["primitives"])
def test_primitive(name: str) -> None:
    entry = PRIMITIVES["primitives"][name]
    op, program = Op[name], single(Op[name])
    *operands, expected = explicit(entry["cases"])
    assert np.array_equal(program_values(program, operands)[0], expected)
    drawn = cases(op, PRIMITIVES["count"], PRIMITIVES["seed"])[: ARITY[op]]
    assert digest(*drawn) == entry["inputs"]
    assert digest(program_values(program, drawn)[0]) == entry["results"]


@pytest.mark.parametrize("name", PROGRAMS["programs"])
def test_program(name: str) -> None:
    entry = PROGRAMS["programs"][name]
    program = ScalarProgram.decode(bytes.fromhex(entry["program"]))
    *inputs, expected = explicit(entry["cases"])
    assert np.array_equal(program_values(program, inputs)[-1], expected)
    drawn = arguments(program.inputs, PROGRAMS["count"], PROGRAMS["seed"])
    assert digest(*drawn) == entry["inputs"]
    assert digest(program_values(program, drawn)[-1]) == entry["results"]
