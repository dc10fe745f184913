"""A step that writes over its state gives the bits of one that doesn't, and changes nothing before it is finished."""

import random
from dataclasses import replace

import numpy as np
import pytest

import instruction_sets
from execution.test_cpu_replay import NOTHING, OPS, draw_program, same
from execution.test_cpu_row_groups import program_of, words
from lab.arithmetic.adversarial_words import SPECIALS
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution import _kernels
from pol.execution._kernels import checksums
from pol.execution.cpu import CpuExecutor
from pol.execution.in_place import InPlaceExecutor
from pol.graph.aten_graph import Ref
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import StepProgram


def draw_training(seed: int, size: int) -> StepProgram:
    """A drawn program with an update of each slot at its end: of the slot itself, of another one, or turned."""
    draw, program = random.Random(seed), draw_program(seed, size)
    nodes, type_ = list(program.nodes), program.nodes[0].type
    slots = []
    for number, slot in enumerate(program.slots):
        read = number if draw.random() < 0.8 else 1 - number
        strides = (0, size, 1) if draw.random() < 0.8 else (0, 1, size)
        state = Operand(Source.STATE, read, type_, Affine(0, strides), 0)
        update = Operand(Source.NODE, draw.randrange(len(nodes)), type_, Affine(0, (0, size, 1)), 0)
        body = ScalarProgram(2, (), (Instruction(draw.choice(OPS), 0, 1),))
        nodes.append(Node(type_, (state, update), (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)), body))
        slots.append(replace(slot, producer=len(nodes) - 1))
    return replace(program, slots=tuple(slots), nodes=tuple(nodes))


@pytest.mark.parametrize("seed", range(60))
def test_the_bits_are_those_of_a_step_that_keeps_its_state(seed: int) -> None:
    size = 5 if seed % 4 else 300
    program = draw_training(seed, size)
    drawn = np.random.default_rng(seed)
    state = [drawn.choice(SPECIALS, (size, size)).astype(np.uint32) for _ in range(2)]
    observed = [len(program.nodes) - 3, 0]
    keeping, writing = CpuExecutor(program, [NOTHING], 1, observed), InPlaceExecutor(program, 2, [0, 1], observed)
    for step in range(3):
        expected, values = keeping.advance(state, step)
        before = [tensor.copy() for tensor in state]
        found = [value.copy() for value in writing.begin(state, step, [NOTHING])]
        assert same(found, values)
        assert same(state, before)
        after = writing.finish()
        assert same(after, expected)
        state = [tensor.copy() for tensor in after]


def adding(size: int, turned: bool = False) -> StepProgram:
    """Both slots get their sum; the second one reads the first one turned, or straight."""
    program = draw_program(0, size)
    type_ = program.nodes[0].type

    def node(*operands: tuple[Source, int, bool]) -> Node:
        given = tuple(
            Operand(source, index, type_, Affine(0, (0, 1, size) if turn else (0, size, 1)), 0)
            for source, index, turn in operands
        )
        inputs = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
        return Node(type_, given, inputs, ScalarProgram(2, (), (Instruction(Op.ADD, 0, 1),)))

    nodes = (
        node((Source.STATE, 0, False), (Source.STATE, 0, True)),
        node((Source.STATE, 0, False), (Source.NODE, 0, False)),
        node((Source.STATE, 1, False), (Source.STATE, 0, turned)),
    )
    slots = tuple(replace(slot, producer=number + 1) for number, slot in enumerate(program.slots))
    return replace(program, slots=slots, nodes=nodes)


def test_what_is_read_later_is_not_written_over() -> None:
    """The first slot is read by the second one's node, so it has memory of its own; the second one has not."""
    state = [np.arange(16, dtype=np.uint32).reshape(4, 4) + number for number in range(2)]
    program = adding(4)
    expected, _ = CpuExecutor(program, [NOTHING]).advance(state, 0)
    executor = InPlaceExecutor(program, 1, [0, 1], [0])
    executor.begin(state, 0, [NOTHING])
    after = executor.finish()
    assert same(after, expected)
    assert [any(tensor is own for own in state) for tensor in after] == [False, True]
    assert after[1] is state[1]


def test_slots_that_do_not_change_are_left_alone() -> None:
    state = [np.arange(16, dtype=np.uint32).reshape(4, 4) + number for number in range(2)]
    state[0].flags.writeable = False
    executor = InPlaceExecutor(adding(4), 1, [1], [])
    executor.begin(state, 0, [NOTHING])
    (after,) = executor.finish()
    assert after is state[1]


def test_arrays_that_share_memory_are_not_written() -> None:
    memory = np.arange(20, dtype=np.uint32)
    state, program = [memory[:16].reshape(4, 4), memory[4:].reshape(4, 4)], adding(4, turned=True)
    expected, _ = CpuExecutor(program, [NOTHING]).advance(state, 0)
    executor = InPlaceExecutor(program, 1, [0, 1], [])
    executor.begin(state, 0, [NOTHING])
    assert same(executor.finish(), expected)
    assert memory.tolist() == list(range(20))


@pytest.mark.parametrize("shape", [(64, 30), (3, 50, 20)], ids=str)
def test_rows_that_are_computed_together_write_over_the_state(shape: tuple[int, ...]) -> None:
    """A softmax of the state and two more maps of it, of which the last one writes."""
    program, (last,) = program_of(
        [shape],
        [
            ("_softmax.default", (Ref(0), len(shape) - 1, False), (shape,)),
            ("mul.Tensor", (Ref(1), Ref(0)), (shape,)),
            ("sub.Tensor", (Ref(0), Ref(2)), (shape,)),
        ],
    )
    kernel = _kernels.Step([node.encode() for node in program.nodes], [slot.type.numel for slot in program.slots], [1])
    kernel.keep([last], False, 0)
    assert kernel.write_over([0]) == [True]
    state = [words(shape, 1, 0.01)]
    _, (expected,) = CpuExecutor(program, [np.zeros((), np.uint32)], 1, [last]).advance(state, 0)
    kernel.begin(0, state, [np.zeros((), np.uint32)], state, 2)
    kernel.finish(0, state, [np.zeros((), np.uint32)], state, 2)
    np.testing.assert_array_equal(state[0], expected)


@pytest.mark.parametrize("isa", _kernels.isas())
def test_every_change_of_words_changes_the_checksum(isa: str) -> None:
    with instruction_sets.held(isa):
        arrays = [np.random.default_rng(size).integers(0, 2**32, size, np.uint32) for size in (0, 1, 5, 128, 70_001)]
        sums = checksums(arrays)
        assert len(set(sums)) == len(sums)
        assert checksums(arrays, 2) == sums
        draw = random.Random(1)
        for number, array in enumerate(arrays):
            changes: list[Words] = []
            for _ in range(30 if array.size else 0):
                changes.append(array.copy())
                changes[-1][draw.randrange(array.size)] ^= np.uint32(1 << draw.randrange(32))
            changes.append(array ^ np.uint32(1 << 31))
            changes.append(array[::-1].copy())
            for changed in changes:
                is_same = bool(np.array_equal(changed, array))
                assert (checksums([changed])[0] == sums[number]) is is_same
