"""Kernels for GPUs, built for the host, give the bits of the CPU's kernels on drawn nodes of every class.

And products of integers on the units that multiply bytes, and what happens to words that are no bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lab.kernels.drawn_forms import DescriptorDraw, FormDraw
from lab.kernels.operation_nodes import contraction, drawn_table_gradient
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.cpu import CpuNode
from pol.execution.device.contraction_source import TILES, contraction_kernel, contraction_of
from pol.execution.device.device import Device
from pol.execution.device.host import HostDevice
from pol.execution.device.keyed_source import keyed_fold_of
from pol.execution.device.loops import loops_of
from pol.execution.device.planned_kernels import OneKernel, PackThenContract, planned_kernels
from pol.execution.operand_sources import Sources
from pol.graph.node import Affine, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.long

BACKWARDS = "-DPOL_BACKWARDS=1"
SIZES = [(1, 128, 128, 64), (2, 130, 50, 70), (1, 64, 300, 33)]
ORDERS = [("bmk", "bkn"), ("bkm", "bnk")]


def check_products(device: Device, node: Node, tensors: Sequence[Words]) -> None:
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
        check_products(
            device, node, [words(-128, 128, operand.type.shape, seed + i) for i, operand in enumerate(node.operands)]
        )


@pytest.mark.parametrize("word", [128, -129, 2**31 - 1])
@pytest.mark.parametrize("operand", [0, 1])
def test_one_word_that_is_no_byte(device: Device, operand: int, word: int) -> None:
    """It is enough that the last one does not fit."""
    node = contraction(1, 130, 50, 70, ORDERS[0], integers=True)
    tensors = [words(-128, 128, read.type.shape, i) for i, read in enumerate(node.operands)]
    tensors[operand].reshape(-1)[-1] = np.uint32(word % 2**32)
    check_products(device, node, tensors)


def test_integers_of_any_size_wrap(device: Device) -> None:
    node = contraction(1, 40, 40, 33, ORDERS[0], integers=True)
    check_products(device, node, [words(-(2**31), 2**31, read.type.shape, i) for i, read in enumerate(node.operands)])


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


def test_threads_of_products_in_any_order() -> None:
    device = HostDevice(["-O0", BACKWARDS])
    node = contraction(1, 130, 50, 70, ORDERS[0], integers=True)
    check_products(device, node, [words(-128, 128, read.type.shape, i) for i, read in enumerate(node.operands)])


GROUP = 100


@dataclass(frozen=True)
class Case:
    """A node, the tensors that it reads, and a step."""

    node: Node
    tensors: Sequence[Words]
    step: int


def check(device: Device, cases: Sequence[Case]) -> None:
    """All nodes as kernels of one library, against the CPU's kernels, which are tested against the reference."""
    plans = [planned_kernels(case.node) for case in cases]
    device.load([kernel for plan in plans for kernel in plan.kernels])
    for case, plan in zip(cases, plans, strict=True):
        expected = CpuNode(case.node).run(case.step, Sources([], case.tensors, []))
        output = plan.run(device, [device.put(tensor) for tensor in case.tensors], case.step)
        np.testing.assert_array_equal(device.get(output, case.node.type.shape), expected, err_msg=str(case.node))


def arbitrary(seed: int) -> Case:
    draw = DescriptorDraw(seed)
    node = draw.node()
    return Case(node, [draw.tensor(operand.type) for operand in node.operands], draw.random.choice([0, 1, 3]))


def in_form(seed: int, kind: str) -> Case:
    drawn = FormDraw(seed).drawn(kind)
    return Case(drawn.node, drawn.tensors, 3)


@pytest.mark.parametrize("group", [pytest.param(g, marks=pytest.mark.slow if g >= 2 else ()) for g in range(20)])
def test_arbitrary_descriptors(device: Device, group: int) -> None:
    check(device, [arbitrary(seed) for seed in range(group * GROUP, (group + 1) * GROUP)])


@pytest.mark.parametrize("kind", ["product", "sum", "map"])
@pytest.mark.parametrize("group", [pytest.param(g, marks=pytest.mark.slow if g >= 2 else ()) for g in range(10)])
def test_forms_of_kernels(device: Device, kind: str, group: int) -> None:
    check(device, [in_form(seed, kind) for seed in range(group * GROUP, (group + 1) * GROUP)])


def test_threads_of_a_phase_in_any_order() -> None:
    """A race between the threads of a phase would show as a difference when they run backwards."""
    backwards = HostDevice(["-O0", BACKWARDS])
    check(backwards, [in_form(seed, kind) for seed in range(12) for kind in ("product", "sum")])
    check(backwards, [Case(*drawn_table_gradient(seed), 0) for seed in range(6)])


def test_nothing_undefined() -> None:
    """Whatever a descriptor asks for."""
    check(
        HostDevice(["-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"]),
        [arbitrary(seed) for seed in range(40)],
    )


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("order", [("bmk", "bkn"), ("bkm", "bnk"), ("mbk", "knb")])
def test_tiles_change_no_bit(device: Device, order: Sequence[str], integers: bool) -> None:
    """Every tile, with rows, columns and terms that end within one, and words that no order of terms may confuse."""
    draw = DescriptorDraw(len(order[0]) + integers)
    for sizes in [(2, 130, 9, 19), (1, 8, 140, 8), (3, 33, 65, 1), (1, 64, 64, 64)]:
        node = contraction(*sizes, order, integers)
        tensors = [draw.tensor(operand.type) for operand in node.operands]
        loops = loops_of(node)
        found = contraction_of(node, loops)
        assert found is not None
        kernels = [contraction_kernel(node, loops, found, tile) for tile in TILES]
        device.load(kernels)
        expected = CpuNode(node).run(0, Sources([], tensors, []))
        for kernel in kernels:
            output = device.empty(node.type.numel)
            device.launch(kernel, [output, *map(device.put, tensors)], 0)
            np.testing.assert_array_equal(device.get(output, node.type.shape), expected)


def test_terms_are_found_by_their_keys(device: Device) -> None:
    cases = [Case(*drawn_table_gradient(seed), 0) for seed in range(30)]
    assert all(keyed_fold_of(case.node, loops_of(case.node)) for case in cases)
    check(device, cases)


def test_a_key_is_not_written_any_number_of_times() -> None:
    """A key without a stride is one word for any number of terms and lines."""
    node, _ = drawn_table_gradient(0)
    rows, width = node.type.shape
    key = replace(node.operands[0], type=TensorType(DType.I32, (rows,)), address=Affine(0, (0, 1, 0, 0)))
    column = Input(InputKind.COORDINATE, 2)
    few = replace(node, operands=(key, *node.operands[1:]), inputs=(*node.inputs[:3], column), fold=(64,))
    many = replace(few, fold=(65,))
    assert width > 1
    assert keyed_fold_of(few, loops_of(few)) is not None
    assert keyed_fold_of(many, loops_of(many)) is None


def test_a_gather_moves_an_address(device: Device) -> None:
    """Indexes in and out of range, and a limit beyond every index."""
    table, width = 11, 4
    for limit in (table, 2**40, 0):
        index = Operand(Source.CONSTANT, 0, TensorType(DType.I32, (20,)), Affine(0, (0, 1, 0)))
        gather = Gather(0, width, limit)
        word = Operand(Source.CONSTANT, 1, TensorType(DType.F32, (table, width)), Affine(0, (0, 0, 1)), 7, (), gather)
        body = ScalarProgram(1, (), (Instruction(Op.MOV, 0),))
        node = Node(TensorType(DType.F32, (20, width)), (index, word), (Input(InputKind.OPERAND, 1),), body)
        indexes = np.array([*range(-4, 14), 2**31 - 1, -(2**31)], np.int64).astype(np.int32).view(np.uint32)
        words = np.arange(table * width, dtype=np.uint32).reshape(table, width)
        check(device, [Case(node, [indexes, words], 0)])
