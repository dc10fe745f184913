"""Devices reproduce the shared vector files: explicit cases, and digests over 100,000 each."""

from collections.abc import Sequence

import numpy as np
import pytest

from execution.test_cpu_primitives import PRIMITIVES, PROGRAMS, digest, explicit, map_of, single
from lab.arithmetic.adversarial_words import arguments, cases
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.execution.device.device import Device
from pol.execution.device.planned_kernels import planned_kernels


def value(device: Device, program: ScalarProgram, words: Sequence[Words]) -> Words:
    size = len(words[0])
    plan = planned_kernels(map_of(program, size))
    return device.get(plan.run(device, [device.put(column) for column in words], 0), (size,))


@pytest.fixture
def loaded(device: Device) -> Device:
    """All kernels of these vectors in few compilations."""
    programs = [ScalarProgram.decode(bytes.fromhex(entry["program"])) for entry in PROGRAMS["programs"].values()]
    primitives = [single(Op[name]) for name in PRIMITIVES["primitives"]]
    nodes = [map_of(program, PROGRAMS["count"]) for program in programs]
    nodes += [map_of(program, PRIMITIVES["count"]) for program in primitives]
    device.load([kernel for node in nodes for kernel in planned_kernels(node).kernels])
    return device


def filled(words: Words, count: int) -> list[Words]:
    """Columns repeated to a length, so that one kernel serves all of them."""
    return [np.resize(column, count) for column in words]


def test_primitives(loaded: Device) -> None:
    for name, entry in PRIMITIVES["primitives"].items():
        op, count = Op[name], PRIMITIVES["count"]
        *operands, expected = explicit(entry["cases"])
        got = value(loaded, single(op), filled(np.array(operands), count))
        assert np.array_equal(got[: len(expected)], expected), name
        drawn = cases(op, count, PRIMITIVES["seed"])[: ARITY[op]]
        assert digest(value(loaded, single(op), drawn)) == entry["results"], name


def test_programs(loaded: Device) -> None:
    for name, entry in PROGRAMS["programs"].items():
        program, count = ScalarProgram.decode(bytes.fromhex(entry["program"])), PROGRAMS["count"]
        *inputs, expected = explicit(entry["cases"])
        got = value(loaded, program, filled(np.array(inputs), count))
        assert np.array_equal(got[: len(expected)], expected), name
        drawn = arguments(program.inputs, count, PROGRAMS["seed"])
        assert digest(value(loaded, program, drawn)) == entry["results"], name
