"""Products of integers on the units that multiply bytes, and what happens to words that are no bytes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from lab.kernels.operation_nodes import contraction
from pol.arithmetic.primitives import Words
from pol.execution.cpu import CpuNode
from pol.execution.device.device import Device
from pol.execution.device.host import HostDevice
from pol.execution.device.planned_kernels import OneKernel, PackThenContract, planned_kernels
from pol.execution.operand_sources import Sources
from pol.graph.node import Affine, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.long

BACKWARDS = "-DPOL_BACKWARDS=1"
SIZES = [(1, 128, 128, 64), (2, 130, 50, 70), (1, 64, 300, 33)]
ORDERS = [("bmk", "bkn"), ("bkm", "bnk")]


def check(device: Device, node: Node, tensors: Sequence[Words]) -> None:
    plan = planned_kernels(node)
    assert isinstance(plan, PackThenContract)
    expected = CpuNode(node).run(0, Sources([], tensors, []))
    output = plan.run(device, [device.put(tensor) for tensor in tensors], 0)
    np.testing.assert_array_equal(device.get(output, node.type.shape), expected)


def words(low: int, high: int, shape: tuple[int, ...], seed: int) -> Words:
    return np.random.default_rng(seed).integers(low, high, shape, np.int64).astype(np.int32).view(np.uint32)


@pytest.mark.parametrize("order", ORDERS)
def test_bytes(device: Device, order: Sequence[str]) -> None:
    for seed, sizes in enumerate(SIZES):
        node = contraction(*sizes, order, integers=True)
        check(device, node, [words(-128, 128, operand.type.shape, seed + i) for i, operand in enumerate(node.operands)])


@pytest.mark.parametrize("word", [128, -129, 2**31 - 1])
@pytest.mark.parametrize("operand", [0, 1])
def test_one_word_that_is_no_byte(device: Device, operand: int, word: int) -> None:
    """It is enough that the last one does not fit."""
    node = contraction(1, 130, 50, 70, ORDERS[0], integers=True)
    tensors = [words(-128, 128, read.type.shape, i) for i, read in enumerate(node.operands)]
    tensors[operand].reshape(-1)[-1] = np.uint32(word % 2**32)
    check(device, node, tensors)


def test_integers_of_any_size_wrap(device: Device) -> None:
    node = contraction(1, 40, 40, 33, ORDERS[0], integers=True)
    check(device, node, [words(-(2**31), 2**31, read.type.shape, i) for i, read in enumerate(node.operands)])


def test_words_without_strides_are_not_packed() -> None:
    """A few words, read as terms of any number, would fill any memory."""
    node = contraction(1, 64, 64, 64, ORDERS[0], integers=True)
    reads = [
        Operand(Source.CONSTANT, number, TensorType(DType.I32, (64,)), Affine(0, (0, 0, number == 0, number == 1, 0)))
        for number in range(2)
    ]
    many = replace(node, operands=tuple(reads), fold=(2**12,))
    assert isinstance(planned_kernels(replace(many, fold=(64,))), PackThenContract)
    assert isinstance(planned_kernels(many), OneKernel)


def test_threads_of_a_phase_in_any_order() -> None:
    device = HostDevice(["-O0", BACKWARDS])
    node = contraction(1, 130, 50, 70, ORDERS[0], integers=True)
    check(device, node, [words(-128, 128, read.type.shape, i) for i, read in enumerate(node.operands)])
