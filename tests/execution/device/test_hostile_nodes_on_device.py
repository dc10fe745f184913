"""Nodes from strangers: kernels for GPUs give the bits of the CPU's and do nothing undefined."""

import numpy as np
import pytest

from lab.kernels.hostile_nodes import STEPS, Hostile
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.cpu import CpuExecutor, CpuNode
from pol.execution.device.device import Device
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice
from pol.execution.device.loops import loops_of
from pol.execution.device.planned_kernels import planned_kernels
from pol.execution.device.read_source import index_type
from pol.execution.operand_sources import Sources
from pol.graph.node import Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

GROUP = 40


def check(device: Device, seeds: range) -> None:
    draws = [(draw := Hostile(seed), *draw.program()) for seed in seeds]
    device.load(
        [kernel for _, program, _, _ in draws for node in program.nodes for kernel in planned_kernels(node).kernels]
    )
    for seed, (draw, program, state, constants) in zip(seeds, draws, strict=True):
        step = draw.random.choice(STEPS)
        got = DeviceExecutor(program, constants, device).run(state, step)
        expected = CpuExecutor(program, constants).run(state, step)
        for number, (one, other) in enumerate(zip(got, expected, strict=True)):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}, node {program.nodes[number]}")


@pytest.mark.parametrize("group", [pytest.param(g, marks=pytest.mark.slow if g >= 2 else ()) for g in range(20)])
def test_drawn(device: Device, group: int) -> None:
    check(device, range(group * GROUP, (group + 1) * GROUP))


def test_nothing_undefined() -> None:
    check(HostDevice(["-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"]), range(GROUP))


@pytest.mark.parametrize("limit", [-(2**63), -(2**32) + 5, -1, 0, 2**31, 2**32 + 1, 2**63 - 1])
@pytest.mark.parametrize("form", [Affine(-1, (0, 3, 0)), Affine(0, (0, -1, 2**31 - 1))])
def test_a_limit_of_more_than_32_bits(device: Device, form: Affine, limit: int) -> None:
    """It is no other limit modulo 2^32."""
    words = TensorType(DType.I32, (2,))
    read = Operand(Source.CONSTANT, 0, words, Affine(0, (0, 1, 0)), 9, (Bound(form, limit),))
    body = ScalarProgram(1, (), (Instruction(Op.MOV, 0),))
    node = Node(TensorType(DType.I32, (2, 2)), (read,), (Input(InputKind.OPERAND, 0),), body)
    tensor = np.array([3, 4], np.uint32)
    expected = CpuNode(node).run(0, Sources([], [tensor], []))
    output = planned_kernels(node).run(device, [device.put(tensor)], 0)
    np.testing.assert_array_equal(device.get(output, node.type.shape), expected)


@pytest.mark.parametrize("fold", [(2**31,), (2**16, 2**15), (2**32 - 1,)])
def test_a_fold_of_more_terms_than_32_bits_with_a_sign(fold: tuple[int, ...]) -> None:
    """Terms without a stride move no address, but they are counted."""
    read = Operand(Source.CONSTANT, 0, TensorType(DType.I32, (1,)), Affine(0, (0,) * (2 + len(fold))))
    inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0))
    body = ScalarProgram(2, (), (Instruction(Op.ADD, 0, 1),))
    assert index_type(loops_of(Node(TensorType(DType.I32, (1,)), (read,), inputs, body, fold))) == "Long"
