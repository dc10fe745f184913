"""Devices reproduce the shared vector files: explicit cases, and digests over 100,000 each."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.arithmetic.adversarial_words import arguments, cases
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.device.device import Device
from pol.execution.device.planned_kernels import planned_kernels
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
PRIMITIVES: dict[str, Any] = json.loads((VECTORS / "primitives.json").read_text())
PROGRAMS: dict[str, Any] = json.loads((VECTORS / "programs.json").read_text())


def digest(*columns: Words) -> str:
    return sha256(b"".join(column.astype("<u4").tobytes() for column in columns)).hexdigest()


def explicit(rows: list[str]) -> Words:
    return np.array([[int(word, 16) for word in row.split()] for row in rows], np.uint32).T.copy()


def node_of(program: ScalarProgram, size: int) -> Node:
    type_ = TensorType(DType.F32, (size,))
    operands = tuple(Operand(Source.CONSTANT, i, type_, Affine(0, (0, 1))) for i in range(program.inputs))
    inputs = tuple(Input(InputKind.OPERAND, i) for i in range(program.inputs))
    return Node(type_, operands, inputs, program)


def value(device: Device, program: ScalarProgram, words: Sequence[Words]) -> Words:
    size = len(words[0])
    plan = planned_kernels(node_of(program, size))
    return device.get(plan.run(device, [device.put(column) for column in words], 0), (size,))


@pytest.fixture
def loaded(device: Device) -> Device:
    """All kernels of these vectors in few compilations."""
    programs = [ScalarProgram.decode(bytes.fromhex(entry["program"])) for entry in PROGRAMS["programs"].values()]
    primitives = [primitive(Op[name]) for name in PRIMITIVES["primitives"]]
    nodes = [node_of(program, count) for program in programs for count in (PROGRAMS["count"],)]
    nodes += [node_of(program, PRIMITIVES["count"]) for program in primitives]
    device.load([kernel for node in nodes for kernel in planned_kernels(node).kernels])
    return device


def primitive(op: Op) -> ScalarProgram:
    return ScalarProgram(ARITY[op], (), (Instruction(op, *range(ARITY[op])),))


def filled(words: Words, count: int) -> list[Words]:
    """Columns repeated to a length, so that one kernel serves all of them."""
    return [np.resize(column, count) for column in words]


def test_primitives(loaded: Device) -> None:
    for name, entry in PRIMITIVES["primitives"].items():
        op, count = Op[name], PRIMITIVES["count"]
        *operands, expected = explicit(entry["cases"])
        got = value(loaded, primitive(op), filled(np.array(operands), count))
        assert np.array_equal(got[: len(expected)], expected), name
        drawn = cases(op, count, PRIMITIVES["seed"])[: ARITY[op]]
        assert digest(value(loaded, primitive(op), drawn)) == entry["results"], name


def test_programs(loaded: Device) -> None:
    for name, entry in PROGRAMS["programs"].items():
        program, count = ScalarProgram.decode(bytes.fromhex(entry["program"])), PROGRAMS["count"]
        *inputs, expected = explicit(entry["cases"])
        got = value(loaded, program, filled(np.array(inputs), count))
        assert np.array_equal(got[: len(expected)], expected), name
        drawn = arguments(program.inputs, count, PROGRAMS["seed"])
        assert digest(value(loaded, program, drawn)) == entry["results"], name
