"""Nodes from strangers: kernels give the reference's bits and stay within their arrays."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from test_cpu_drawn_folds import check
from test_portable import hostile  # noqa: F401 (a fixture)
from test_torch_native import INDICES

import instruction_sets
from lab.kernels.drawn_forms import Drawn
from lab.kernels.hostile_nodes import STEPS, Hostile
from operation_samples import CASES, graph_of
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution import _kernels
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.capture import to_words
from pol.graph.lowering import lower
from pol.graph.node import Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType
from portable_kernels import Recording, Steps, build, digest, run, tool

FEW, MANY = 150, 4_000
# Scratch memory is anew for every node then, so that accesses past its end show.
SANITIZERS = [
    "-O1",
    "-g1",
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-D_GLIBCXX_ASSERTIONS",
    "-Dthread_local=",
]
ACCUMULATOR, X, Y = Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)
FFMA = ScalarProgram(3, (), (Instruction(Op.FFMA, 0, 1, 2),))


def drawn(seed: int) -> Steps:
    draw = Hostile(seed)
    program, state, constants = draw.program()
    return Steps(program, state, constants, draw.random.choice(STEPS), 1)


def expected(steps: Steps) -> list[np.ndarray]:
    return ReferenceExecutor(steps.program, steps.constants).run(steps.state, steps.first)


def constant(index: int, size: int, *strides: int, base: int = 0, bounds: tuple[Bound, ...] = ()) -> Operand:
    return Operand(Source.CONSTANT, index, TensorType(DType.F32, (size,)), Affine(base, (0, *strides)), 0, bounds)


def checked(node: Node) -> None:
    numbers = np.random.default_rng(1)
    check(
        Drawn(node, [numbers.standard_normal(o.type.numel).astype(np.float32).view(np.uint32) for o in node.operands]),
        0,
    )


def without_indices() -> Iterator[Steps]:
    """Every operation that reads indices, with words that are none."""
    for operation, (place, least, size) in INDICES.items():
        graph, tensors = graph_of(operation, CASES[operation][0])
        for number in (least - 1, size, 2**31 - 1, -(2**31)):
            given = [torch.full_like(t, number) if n == place else t for n, t in enumerate(tensors)]
            state = [to_words("s", tensor) for tensor in given]
            yield Steps(lower(graph)[0], state, [np.zeros((), np.uint32)], 0, 1)


def require_bits(steps: Steps, name: str) -> None:
    wanted = expected(steps)
    for isa in instruction_sets.each():
        got = CpuExecutor(steps.program, steps.constants, 1).run(steps.state, steps.first)
        for i, (one, other) in enumerate(zip(got, wanted, strict=True)):
            np.testing.assert_array_equal(one, other, err_msg=f"{name}, {isa}, node {i}")


@pytest.mark.parametrize("group", range(10))
def test_drawn(group: int) -> None:
    for seed in range(group, FEW, 10):
        require_bits(drawn(seed), f"seed {seed}")


def test_words_that_are_no_indices() -> None:
    for number, steps in enumerate(without_indices()):
        require_bits(steps, f"program {number}")


def test_more_inputs_than_there_are_words_to_read() -> None:
    body = ScalarProgram(200, (), (Instruction(Op.FADD, 3, 199), Instruction(Op.FMUL, 200, 7)))
    checked(Node(TensorType(DType.F32, (9,)), (constant(0, 9, 1),), (X,) * 200, body))


def test_a_turned_map_that_ends_with_a_move() -> None:
    body = ScalarProgram(2, (), (Instruction(Op.FADD, 0, 1), Instruction(Op.MOV, 2)))
    checked(Node(TensorType(DType.F32, (16, 24)), (constant(0, 384, 1, 16), constant(1, 384, 24, 1)), (X, Y), body))


def test_selects_of_selects_are_planned_at_once() -> None:
    instructions = [Instruction(Op.EQ, 1, 2), Instruction(Op.SELECT, 1, 0, 0)]
    instructions += [Instruction(Op.SELECT, 1, 3 + i, 3 + i) for i in range(1, 240)]
    inputs = (ACCUMULATOR, X, Input(InputKind.COORDINATE, 1))
    checked(
        Node(
            TensorType(DType.F32, (4,)),
            (constant(0, 3, 0, 1),),
            inputs,
            ScalarProgram(3, (), tuple(instructions)),
            (3,),
        )
    )


def test_multiples_of_bounds_beyond_64_bits() -> None:
    """Each bound's multiple in the address, taken away, leaves a greater one of the next."""
    far, unit = 2**29, TensorType(DType.F32, (16, 2, 2, 2))
    bounds = (
        Bound(Affine(0, (0, 0, far, 0, 0, 1)), 2),
        Bound(Affine(0, (0, 0, 1, far, 0, 0)), 2),
        Bound(Affine(0, (0, 0, 0, 1, far, 0)), 2),
    )
    x = constant(0, 5, 0, 0, 0, 0, far, bounds=bounds)
    y = constant(1, 32, 1, 0, 0, 0, 16)
    checked(Node(unit, (x, y), (X, Y, ACCUMULATOR), FFMA, (2,)))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if tool("g++") is None:
        pytest.skip("g++ is needed")
    return build("g++", tmp_path_factory.mktemp("sanitized"), *SANITIZERS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("isa", ["baseline", "v3"])
def test_under_sanitizers(isa: str, sanitized: Path, hostile: Recording, tmp_path: Path) -> None:  # noqa: F811
    """No access outside of an array, no overflow, no assertion of the library; and the reference's bits."""
    if isa not in _kernels.isas():
        pytest.skip(f"a processor with {isa} is needed")
    steps = [*(drawn(seed) for seed in range(MANY)), *without_indices()]
    recording = Recording([], steps)
    for threads in (1, 3):
        hostile.write(tmp_path / "recorded")
        assert run([sanitized], tmp_path / "recorded", isa, threads) == hostile.expected()
        recording.write(tmp_path / "drawn")
        lines = run([sanitized], tmp_path / "drawn", isa, threads)[1:]
        if threads == 1:
            wanted = [digest(expected(one)) for one in steps]
        for seed, (line, one) in enumerate(zip(lines, wanted, strict=True)):
            assert line.split()[3] == one, f"seed {seed}"
