"""Native nodes give the bits of the reference on drawn descriptors, at any thread count, in every instruction set."""

import random
from dataclasses import replace

import numpy as np
import pytest

import instruction_sets
from lab.kernels.drawn_forms import DescriptorDraw
from lab.kernels.operation_nodes import FFMA, convolution, matmul, table_gradient
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.errors import ProtocolError
from pol.execution import _kernels
from pol.execution.cpu import CpuExecutor
from pol.execution.operand_sources import Sources
from pol.execution.reference import evaluate_node
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

F32, I32 = DType.F32, DType.I32
ACCUMULATE = Input(InputKind.ACCUMULATOR)


def native(node: Node, step: int, tensors: list[Words], threads: int = 1) -> Words:
    out = np.full(node.type.shape, 0xDEADBEEF, np.uint32)
    _kernels.Node(node.encode()).run(step, out, tensors, threads)
    return out


def check(node: Node, step: int, tensors: list[Words], every: tuple[int, ...]) -> None:
    """In every instruction set, with any of these numbers of threads."""
    expected = evaluate_node(node, step, Sources([], tensors, []))
    for isa in instruction_sets.each():
        for threads in every:
            assert np.array_equal(native(node, step, tensors, threads), expected), (isa, threads)


@pytest.mark.parametrize("seed", range(400))
def test_drawn_node(seed: int) -> None:
    draw = DescriptorDraw(seed)
    node = draw.node()
    tensors = [draw.tensor(operand.type) for operand in node.operands]
    check(node, draw.random.choice([0, 1, 3]), tensors, (1, 2))


@pytest.mark.parametrize(("rows", "width"), [(5, 1), (7, 3), (4, 64), (3, 700), (300, 2), (1, 9)])
@pytest.mark.parametrize("fold", [(1,), (40,), (6, 5)])
@pytest.mark.parametrize("order", ["plain", "ignored", "inverted", "other"])
def test_gradient_of_a_table_lookup(rows: int, width: int, fold: tuple[int, ...], order: str) -> None:
    draw = DescriptorDraw(rows + width)
    node = table_gradient(draw, rows, width, fold, order)
    keys = draw.numbers.integers(-2, rows + 2, node.operands[0].type.shape).astype(np.int32).view(np.uint32)
    parts = draw.numbers.standard_normal(node.operands[1].type.shape).astype(np.float32).view(np.uint32)
    expected = evaluate_node(node, 0, Sources([], [keys, parts], []))
    for threads in (1, 3):
        assert np.array_equal(native(node, 0, [keys, parts], threads), expected)


def test_extreme_strides_and_limits() -> None:
    far = 2**61
    operand = Operand(
        Source.CONSTANT,
        0,
        TensorType(F32, (4,)),
        Affine(-far, (0, far)),
        bounds=(Bound(Affine(2**62 - 1, (0, -far)), 2**63 - 1), Bound(Affine(-far, (0, far)), 2**62)),
    )
    body = ScalarProgram(1, (), (Instruction(Op.MOV, 0),))
    tensor = np.arange(1, 5, dtype=np.uint32)
    for bounds in ((), operand.bounds[:1], operand.bounds):
        changed = replace(operand, bounds=bounds, fill=77)
        node = Node(TensorType(F32, (3,)), (changed,), (Input(InputKind.OPERAND, 0),), body)
        assert np.array_equal(native(node, 0, [tensor]), evaluate_node(node, 0, Sources([], [tensor], [])))


def test_flushing_to_zero_elsewhere_changes_nothing() -> None:
    torch = pytest.importorskip("torch")
    body = ScalarProgram(2, (), (Instruction(Op.FADD, 0, 1),))
    type_ = TensorType(F32, (100,))
    operands = tuple(Operand(Source.CONSTANT, i, type_, Affine(0, (0, 1))) for i in range(2))
    node = Node(type_, operands, tuple(Input(InputKind.OPERAND, i) for i in range(2)), body)
    tensors = [np.full(100, 3, np.uint32), np.full(100, 4, np.uint32)]
    torch.set_flush_denormal(True)
    try:
        assert native(node, 0, tensors)[0] == 7
        assert torch.tensor(1e-40) * 1 == 0  # the mode of this thread is restored
    finally:
        torch.set_flush_denormal(False)


def test_a_descriptor_cut_or_extended_is_refused() -> None:
    descriptor = convolution(1).encode()
    for size in range(len(descriptor)):
        with pytest.raises(_kernels.MalformedError):
            _kernels.Node(descriptor[:size])
    with pytest.raises(_kernels.MalformedError):
        _kernels.Node(descriptor + b"\0")


def test_damaged_descriptors_are_judged_as_python_judges_them() -> None:
    source = random.Random(9)
    descriptors = [convolution(1).encode(), *(DescriptorDraw(seed).node().encode() for seed in range(40))]
    judged = {True: 0, False: 0}
    for _ in range(4_000):
        descriptor = bytearray(source.choice(descriptors))
        descriptor[source.randrange(len(descriptor))] = source.choice([0, 1, 2, 3, 7, 0x7F, 0x80, 0xFF])
        try:
            Node.decode(bytes(descriptor))
            accepted = True
        except ProtocolError:
            accepted = False
        judged[accepted] += 1
        try:
            _kernels.Node(bytes(descriptor))
        except _kernels.MalformedError:
            assert not accepted, descriptor.hex()
        else:
            assert accepted, descriptor.hex()
    assert min(judged.values()) > 500


def test_arrays_of_the_wrong_size_are_refused() -> None:
    kernel = _kernels.Node(matmul(1, 3, 4, 5, "mk", "kn").encode())
    x, y, out = np.zeros(15, np.uint32), np.zeros(20, np.uint32), np.zeros(12, np.uint32)
    assert (kernel.numel, kernel.operand_sizes) == (12, [15, 20])
    kernel.run(0, out, [x, y])
    frozen = np.zeros(12, np.uint32)
    frozen.flags.writeable = False
    joined = np.zeros(27, np.uint32)
    for bad_out, operands in [
        (out[:11], [x, y]),
        (out, [x]),
        (out, [x, y, y]),
        (out, [x[:14], y]),
        (out, [y, x]),
        (frozen, [x, y]),
        (joined[:12], [joined[11:26], y]),
        (out, [np.zeros(30, np.uint32)[::2], y]),
        (out, [np.zeros(15, np.uint64), y]),
    ]:
        with pytest.raises((ValueError, BufferError)):
            kernel.run(0, bad_out, operands)


def small_program() -> StepProgram:
    """w := w - 0.5 * (x[t] @ w), by three nodes of which one gathers a row of the data by the step."""
    w = TensorType(F32, (3,))
    data = TensorType(F32, (5, 3))
    product = Node(
        TensorType(F32, ()),
        (
            Operand(Source.CONSTANT, 1, TensorType(I32, (4,)), Affine(0, (1, 0))),
            Operand(Source.CONSTANT, 0, data, Affine(0, (0, 1)), gather=Gather(0, 3, 5)),
            Operand(Source.STATE, 0, w, Affine(0, (0, 1))),
        ),
        (Input(InputKind.OPERAND, 1), Input(InputKind.OPERAND, 2), ACCUMULATE),
        FFMA,
        (3,),
    )
    update = Node(
        w,
        (Operand(Source.NODE, 0, product.type, Affine(0, (0, 0))), Operand(Source.STATE, 0, w, Affine(0, (0, 1)))),
        (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)),
        ScalarProgram(2, (0xBF000000,), (Instruction(Op.FFMA, 0, 2, 1),)),
    )
    return StepProgram((Slot(Component.PARAMETER, w, 1),), (data, TensorType(I32, (4,))), (product, update))


def test_outputs_that_are_kept_are_not_overwritten() -> None:
    program = small_program()
    data = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32).view(np.uint32)
    cpu = CpuExecutor(program, [data, np.array([4, 0, 2, 9], np.uint32)])
    state = [np.array([1, 2, 3], np.float32).view(np.uint32)]
    first = cpu.run(state, 0)
    kept, address = first[1][1:], first[0].ctypes.data  # a view keeps its array alive
    copy = kept.copy()
    second = cpu.run(state, 1)
    assert not any(np.shares_memory(a, b) for a in first for b in second)
    del first
    third = cpu.run([second[1]], 2)
    assert third[0].ctypes.data == address  # used again
    del third
    assert cpu.run([second[1]], 3)[0].ctypes.data == address  # and again at once
    for _ in range(3):
        for outputs in (cpu.run(state, 0), cpu.run(state, 1)):
            assert not any(np.shares_memory(a, b) for a in second for b in outputs)
            assert not np.shares_memory(outputs[1], kept)
    assert np.array_equal(kept, copy)


def test_executor_refuses_what_does_not_fit() -> None:
    program = small_program()
    data, order = np.zeros((5, 3), np.uint32), np.zeros(4, np.uint32)
    with pytest.raises(ProtocolError):
        CpuExecutor(program, [data])
    with pytest.raises(ProtocolError):
        CpuExecutor(program, [data, np.zeros(5, np.uint32)])
    with pytest.raises(ProtocolError):
        CpuExecutor(replace(program, slots=(replace(program.slots[0], producer=0),)), [data, order])
    with pytest.raises(ProtocolError):
        CpuExecutor(program, [data, order], observed=[10_000])
    executor = CpuExecutor(program, [data, order])
    for state, step in [
        ([], 0),
        ([np.zeros((3, 1), np.uint32)], 0),
        ([np.zeros(3, np.float32)], 0),
        ([np.zeros(6, np.uint32)[::2]], 0),
        ([np.zeros(3, np.uint32)], -1),
        ([np.zeros(3, np.uint32)], 2**32),
    ]:
        for run in (executor.run, executor.advance):
            with pytest.raises(ProtocolError):
                run(state, step)
