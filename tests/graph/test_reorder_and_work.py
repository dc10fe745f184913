"""Programs with other roundings, re-associated or perturbed: equal seeds give equal bytes; and the work estimate."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from lab.benchmarks.training_bits import MODELS
from pol.arithmetic import philox
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.state_perturbation import perturb
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.sum_reordering import reorder
from pol.graph.tensor_type import DType, TensorType
from pol.graph.work_estimate import node_work, step_work

F32 = DType.F32


ROWS, TERMS, COLUMNS = 3, 23, 2


def product(operation: Op = Op.FFMA, **changes: object) -> Node:
    """A matrix product, or a sum of sums, of state 0 and state 1."""
    builder = Builder(3)
    if operation is Op.FFMA:
        body = builder.build(builder.emit(Op.FFMA, 1, 2, 0))
    else:
        body = builder.build(builder.emit(operation, 0, builder.emit(Op.FMUL, 1, 2)))
    left, right = TensorType(F32, (ROWS, TERMS)), TensorType(F32, (TERMS, COLUMNS))
    node = Node(
        TensorType(F32, (ROWS, COLUMNS)),
        (
            Operand(Source.STATE, 0, left, Affine(0, (0, TERMS, 0, 1))),
            Operand(Source.STATE, 1, right, Affine(0, (0, 0, 1, COLUMNS))),
        ),
        (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)),
        body,
        fold=(TERMS,),
    )
    return replace(node, **changes)  # type: ignore[arg-type]  # the tests name fields of Node


def short() -> Node:
    """A fold over two dimensions with too few terms to cut."""
    operands = tuple(replace(operand, address=Affine(0, (0, 0, 0, 1, 1))) for operand in product().operands)
    return product(fold=(1, 2), operands=operands)


def copy_of(source: Source, index: int, type_: TensorType) -> Node:
    builder = Builder(1)
    operand = Operand(source, index, type_, Affine(0, (0, *type_.strides)))
    return Node(type_, (operand,), (Input(InputKind.OPERAND, 0),), builder.build(builder.emit(Op.MOV, 0)))


def program(node: Node) -> StepProgram:
    """The node, its copy (which must follow it), and state that stays."""
    left, right = TensorType(F32, (ROWS, TERMS)), TensorType(F32, (TERMS, COLUMNS))
    nodes = (node, copy_of(Source.NODE, 0, node.type), copy_of(Source.STATE, 0, left), copy_of(Source.STATE, 1, right))
    slots = (
        Slot(Component.PARAMETER, left, 2),
        Slot(Component.PARAMETER, right, 3),
        Slot(Component.OPTIMIZER, node.type, 1),
    )
    result = StepProgram(slots, (TensorType(F32, ()),), nodes)
    result.validate()
    return result


def state(node: Node) -> list[Words]:
    random = np.random.default_rng(3)
    shapes = [(ROWS, TERMS), (TERMS, COLUMNS), node.type.shape]
    return [random.standard_normal(shape).astype(np.float32).view(np.uint32) for shape in shapes]


def outcome(step: StepProgram, words: list[Words]) -> np.ndarray:
    outputs = ReferenceExecutor(step, [np.zeros((), np.uint32)]).run(words, 0)
    return outputs[step.slots[2].producer].view(np.float32)


def test_seeds_give_other_structures_of_the_same_sum() -> None:
    original = program(product())
    words = state(original.nodes[0])
    exact = words[0].view(np.float32).astype(np.float64) @ words[1].view(np.float32).astype(np.float64)
    structures, results = set(), set()
    for seed in range(40):
        changed = reorder(original, seed)
        assert changed.to_bytes() == reorder(original, seed).to_bytes()
        assert StepProgram.from_bytes(changed.to_bytes()) == changed
        assert changed.constants == original.constants
        assert [(slot.component, slot.type) for slot in changed.slots] == [
            (slot.component, slot.type) for slot in original.slots
        ]
        result = outcome(changed, words)
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
        structures.add(changed.to_bytes())
        results.add(result.tobytes())
    assert len(structures) > 15
    assert len(results) > 4


def test_a_fold_with_a_product_inside_is_cut_only_evenly() -> None:
    even = product(Op.FADD)
    assert len(reorder(program(even), 0).nodes) == len(program(even).nodes)  # 23 terms: no even cut exists
    operands = (
        Operand(Source.STATE, 0, even.operands[0].type, Affine(0, (0, TERMS, 0, 1))),
        Operand(Source.STATE, 1, even.operands[1].type, Affine(0, (0, 0, 1, COLUMNS))),
    )
    shorter = program(replace(even, fold=(20,), operands=operands))
    for seed in range(10):
        changed = reorder(shorter, seed)
        assert changed.nodes[0].type.shape == (20 // changed.nodes[0].terms, ROWS, COLUMNS)  # partial sums come first
        words = state(shorter.nodes[0])
        np.testing.assert_allclose(outcome(changed, words), outcome(shorter, words), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "node",
    [
        product(Op.FMAX),
        product(Op.FSUB),
        product(init=0x3F800000),
        product(fold=(3,)),
        product(
            fold=(1, 1), operands=tuple(replace(o, address=Affine(0, (0, 0, 0, 1, 1))) for o in product().operands)
        ),
    ],
)
def test_what_is_no_plain_sum_stays(node: Node) -> None:
    assert reorder(program(node), 5) == program(node)


def test_two_fold_dimensions_are_cut_along_the_longer() -> None:
    builder = Builder(2)
    wide = TensorType(F32, (ROWS, TERMS))
    node = Node(
        TensorType(F32, ()),
        (Operand(Source.STATE, 0, wide, Affine(0, (0, TERMS, 1))),),
        (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0)),
        builder.build(builder.emit(Op.FADD, 0, 1)),
        fold=(ROWS, TERMS),
    )
    original = program(node)
    words = state(node)
    for seed in range(12):
        changed = reorder(original, seed)
        assert changed.nodes[0].fold[0] == ROWS
        np.testing.assert_allclose(outcome(changed, words), words[0].view(np.float32).sum(), rtol=1e-5)


def test_a_sum_that_looks_at_its_position_stays() -> None:
    builder = Builder(3)
    weighed = builder.emit(Op.FMUL, 1, builder.emit(Op.I2F, 2))
    node = product(
        body=builder.build(builder.emit(Op.FADD, 0, weighed)),
        inputs=(Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.COORDINATE, 3)),
        fold=(20,),
    )
    assert reorder(program(node), 1) == program(node)
    outer = replace(node, inputs=(*node.inputs[:2], Input(InputKind.COORDINATE, 2)))
    words = state(outer)
    changed = reorder(program(outer), 1)
    assert changed != program(outer)
    np.testing.assert_allclose(outcome(changed, words), outcome(program(outer), words), rtol=1e-5, atol=1e-6)


def test_work_counts_primitives_and_reads() -> None:
    assert node_work(product()) == ROWS * COLUMNS * TERMS * (2 + 2)
    assert node_work(product(Op.FADD)) == ROWS * COLUMNS * TERMS * (1 + 1 + 2)
    assert node_work(copy_of(Source.STATE, 0, TensorType(F32, (5,)))) == 5 * 2
    whole = program(product())
    assert step_work(whole) == sum(node_work(node) for node in whole.nodes)


CONSTANT = [np.zeros((), np.uint32)]


def outputs(step: StepProgram, words: list[Words], number: int = 0) -> list[Words]:
    return ReferenceExecutor(step, CONSTANT).run(words, number)


def moved(words: Words, slot: int, step: int, seed: int) -> np.ndarray:
    """The specification once more, in binary64, rounded at the end."""
    h = hashlib.sha256(b"pol/perturb/1" + seed.to_bytes(32, "big")).digest()
    key = [int.from_bytes(h[:4], "big"), int.from_bytes(h[4:8], "big")]
    count = words.size
    inputs = [np.arange(count, dtype=np.uint32)]
    inputs += [np.full(count, word, np.uint32) for word in (step, slot, *key)]
    drawn = run(philox.philox(), inputs).view(np.int32)
    # The word becomes a float32 first; times 2^-47 is exact then.
    share = drawn.astype(np.float32).astype(np.float64) * 2.0**-47
    x = words.reshape(-1).view(np.float32).astype(np.float64)
    return (x + x * share).astype(np.float32).reshape(words.shape)


@pytest.mark.parametrize("number", [0, 7])
def test_folds_read_what_the_specification_says(number: int) -> None:
    original = program(product())
    words = state(original.nodes[0])
    found = outputs(perturb(original, 3), words, number)
    sources = [moved(words[slot], slot, number, 3) for slot in (0, 1)]
    assert [found[1].tobytes(), found[3].tobytes()] == [source.tobytes() for source in sources]
    expected = outputs(original, [source.view(np.uint32) for source in sources] + words[2:], number)
    assert found[4].tobytes() == expected[0].tobytes()
    for source, before in zip(sources, words, strict=False):
        size = np.abs(source / before.view(np.float32) - 1)
        assert np.median(size) > 0
        assert size.max() <= 2.0**-16 + 2.0**-24


def test_everything_else_reads_the_state_as_it_is() -> None:
    """A slot that is copied stays, though a fold reads it too."""
    original = program(product())
    words = state(original.nodes[0])
    found, step = outputs(perturb(original, 1), words), perturb(original, 1)
    for slot in (0, 1):
        assert found[step.slots[slot].producer].tobytes() == words[slot].tobytes()
    readers = [node for node in step.nodes if any(operand.source is Source.STATE for operand in node.operands)]
    assert not any(node.fold for node in readers)


def test_zeros_stay_and_seeds_and_steps_differ() -> None:
    original = program(product())
    words = state(original.nodes[0])
    words[0][0] = 0
    runs = [outputs(perturb(original, seed), words, step) for seed, step in ((1, 0), (2, 0), (1, 1))]
    assert not any(run[1][0].any() for run in runs)
    assert len({run[4].tobytes() for run in runs}) == 3
    assert perturb(original, 1).to_bytes() == perturb(original, 1).to_bytes()
    assert len({perturb(original, seed).to_bytes() for seed in range(20)}) == 20
    assert StepProgram.from_bytes(perturb(original, 1).to_bytes()) == perturb(original, 1)


def test_a_short_fold_is_moved_though_it_isn_t_reordered() -> None:
    original = program(short())
    assert reorder(original, 1) == original
    assert perturb(original, 1) != original


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_kernels_and_reference_agree_on_captured_steps(model: str) -> None:
    captured = MODELS[model](4)
    changed = reorder(perturb(captured.program, 5), 5)
    assert changed.constants == captured.program.constants
    assert [slot.type for slot in changed.slots] == [slot.type for slot in captured.program.slots]
    fast, _ = CpuExecutor(changed, captured.constants).advance(captured.state, 2)
    slow, _ = ReferenceExecutor(changed, captured.constants).advance(captured.state, 2)
    plain, _ = CpuExecutor(captured.program, captured.constants).advance(captured.state, 2)
    assert [words.tobytes() for words in fast] == [words.tobytes() for words in slow]
    floats = [i for i, slot in enumerate(changed.slots) if slot.type.dtype is DType.F32]
    apart, whole = (np.concatenate([words[i].view(np.float32).ravel() for i in floats]) for words in (fast, plain))
    assert 0 < np.linalg.norm(apart - whole) < 2.0**-10 * np.linalg.norm(whole)
