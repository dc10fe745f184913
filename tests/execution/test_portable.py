"""The kernels without Python, built by several compilers for several processors: the same bytes everywhere."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_cpu_primitives import map_of, single

import toy_program
from instruction_sets import held
from lab.arithmetic.adversarial_words import arguments, cases
from lab.benchmarks.training_bits import MODELS
from lab.kernels.drawn_forms import DescriptorDraw
from lab.kernels.operation_nodes import matmul
from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.execution import _kernels
from pol.graph.capture import Capture
from pol.graph.node import Node
from pol.graph.step_program import Component, Slot, StepProgram
from portable_kernels import Recording, Steps, build, run, tool

STEPS, STEPS_EMULATED = 1_000, 20
HOSTILE = 4_099
DRAWN = 300


def of_constants(nodes: Sequence[tuple[Node, Sequence[Words]]], step: int) -> Steps:
    """Independent nodes that read constants only, as one program of one step; the state is the last one's output."""
    constants: list[Words] = []
    placed = []
    for node, tensors in nodes:
        operands = [replace(operand, index=operand.index + len(constants)) for operand in node.operands]
        placed.append(replace(node, operands=tuple(operands)))
        constants += [
            np.ascontiguousarray(tensor).reshape(operand.type.shape)
            for tensor, operand in zip(tensors, node.operands, strict=True)
        ]
    types = tuple(operand.type for node in placed for operand in node.operands)
    last = placed[-1].type
    slot = Slot(Component.PARAMETER, last, len(placed) - 1)
    program = StepProgram((slot,), types, tuple(placed))
    program.validate()
    return Steps(program, [np.zeros(last.shape, np.uint32)], constants, step, 1)


def drawn(seed: int) -> tuple[Node, Sequence[Words]]:
    draw = DescriptorDraw(seed)
    node = draw.node()
    return node, [draw.tensor(operand.type) for operand in node.operands]


def products() -> list[tuple[Node, Sequence[Words]]]:
    shapes = [(1, 5, 4, 3), (1, 32, 64, 64), (3, 15, 33, 20), (1, 113, 70, 300), (2, 64, 5, 257)]
    nodes: list[tuple[Node, Sequence[Words]]] = []
    for seed, shape in enumerate(shapes):
        for left, right in (("bmk", "bkn"), ("bmk", "bnk"), ("kbm", "kn")):
            draw = DescriptorDraw(seed)
            node = matmul(*shape, left, right, init=0x3F800000)
            nodes.append((node, [draw.tensor(operand.type) for operand in node.operands]))
    return nodes


@pytest.fixture(scope="session")
def hostile() -> Recording:
    """Hostile words through all primitives and functions, alone and as nodes; drawn nodes, products, a training."""
    programs: list[tuple[ScalarProgram, Sequence[Words]]] = [
        (single(op), cases(op, HOSTILE, 21)[: single(op).inputs]) for op in Op
    ]
    programs += [(f(), arguments(f().inputs, HOSTILE, 22)) for f in CATALOGUE.values()]
    nodes = [(map_of(program, len(words[0])), words[: program.inputs]) for program, words in programs]
    steps = [
        of_constants(nodes, 0),
        of_constants([drawn(seed) for seed in range(DRAWN)], 3),
        of_constants(products(), 0),
        Steps(toy_program.build(), toy_program.initial_state(), toy_program.constants(), 0, toy_program.STEPS),
    ]
    return Recording(programs, steps)


@pytest.fixture(scope="session")
def trainings() -> list[Capture]:
    return [build_model(STEPS) for build_model in MODELS.values()]


def of_trainings(trainings: list[Capture], steps: int) -> Recording:
    return Recording([], [Steps(c.program, c.state, c.constants, 0, steps) for c in trainings])


@pytest.fixture(scope="session")
def recordings(
    hostile: Recording, trainings: list[Capture], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Path, list[str]]]:
    """Files of the hostile words, the whole trainings and their beginnings, with the lines that they must give."""
    directory = tmp_path_factory.mktemp("recordings")
    written = []
    for name, recording in (
        ("hostile", hostile),
        ("trainings", of_trainings(trainings, STEPS)),
        ("beginnings", of_trainings(trainings, STEPS_EMULATED)),
    ):
        path = directory / name
        recording.write(path)
        written.append((path, recording.expected()))
    return written


def test_every_instruction_set_here_has_the_same_lines(hostile: Recording) -> None:
    lines = []
    for isa in _kernels.isas():
        with held(isa):
            lines += [hostile.expected(threads) for threads in (1, 2)]
    assert all(found == lines[0] for found in lines)


@pytest.fixture(scope="module", params=["g++", "clang++"])
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if tool(request.param) is None:
        pytest.skip(f"{request.param} is not installed: .ci/setup --slow")
    return build(request.param, tmp_path_factory.mktemp("built"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("isa", ["baseline", "v3", "v4"])
def test_build_for_this_processor(isa: str, runner: Path, recordings: list[tuple[Path, list[str]]]) -> None:
    if isa not in _kernels.isas():
        pytest.skip(f"built, but this processor cannot run {isa}")
    for path, expected in recordings[:2]:
        for threads in (1, 2):
            assert run([runner], path, isa, threads) == expected


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_build_for_64_bit_arm(recordings: list[tuple[Path, list[str]]], tmp_path: Path) -> None:
    compiler, emulator = tool("aarch64-linux-gnu-g++"), tool("qemu-aarch64-static")
    if compiler is None or emulator is None:
        pytest.skip("g++-aarch64-linux-gnu and qemu-user-static are not installed: .ci/setup --slow")
    runner = build(compiler, tmp_path, "-static", isas=["baseline"])
    for path, expected in (recordings[0], recordings[2]):
        assert run([emulator, runner], path, "baseline") == expected
