"""Replay mode gives the bits of the trace mode though nodes share memory, on threads that outlive a step."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import toy_program
from lab.arithmetic.adversarial_words import SPECIALS
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.graph.node import Affine, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

OPS = [Op.FADD, Op.FMUL, Op.FSUB, Op.FMIN, Op.XOR, Op.ADD]

UNUSED = TensorType(DType.F32, (1,))
NOTHING = np.zeros(1, np.uint32)


def draw_program(seed: int, size: int) -> StepProgram:
    """Maps and folds over a square matrix that read earlier nodes straight, transposed, or gathered through another."""
    draw = random.Random(seed)
    type_ = TensorType(DType.F32, (size, size))
    nodes: list[Node] = []

    def operand(plain: bool) -> Operand:
        source, index = Source.STATE, draw.randrange(2)
        if nodes and draw.random() < 0.8:
            source, index = Source.NODE, max(draw.randrange(len(nodes)), len(nodes) - 4 + draw.randrange(4), 0)
            index = min(index, len(nodes) - 1)
        strides = draw.choice([(0, size, 1)] * 4 + [(0, 1, size), (0, 0, 1), (0, size, 0), (1, size, 1)])
        gather = None if plain else Gather(0, draw.choice([1, size]), size)
        return Operand(source, index, type_, Affine(0, strides), draw.choice(SPECIALS), (), gather)

    for _ in range(draw.randrange(4, 25)):
        operands = (operand(True), operand(draw.random() < 0.8))
        if draw.random() < 0.2:  # a product
            operands = tuple(
                Operand(o.source, o.index, type_, Affine(0, strides), 0)
                for o, strides in zip(operands, [(0, size, 0, 1), (0, 0, 1, size)], strict=True)
            )
            inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
            body = ScalarProgram(3, (), (Instruction(Op.FFMA, 1, 2, 0),))
            nodes.append(Node(type_, operands, inputs, body, (size,), 0))
        else:
            body = ScalarProgram(2, (), (Instruction(draw.choice(OPS), 0, 1),))
            nodes.append(Node(type_, operands, (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1)), body))
    slots = tuple(Slot(Component.PARAMETER, type_, draw.randrange(len(nodes))) for _ in range(2))
    return StepProgram(slots, (UNUSED,), tuple(nodes))


def same(left: list[Words], right: list[Words]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_replay_has_the_bits_of_the_trace(seed: int) -> None:
    """Each output is seen as it is computed, also of nodes that nobody reads, and though nodes share memory."""
    size = 5 if seed % 4 else 300
    program = draw_program(seed, size)
    words = np.random.default_rng(seed)
    state = [words.choice(SPECIALS, (size, size)).astype(np.uint32) for _ in range(2)]
    observed = [len(program.nodes) - 1, 0, 0]
    traced = CpuExecutor(program, [NOTHING])
    replayed = [CpuExecutor(program, [NOTHING], threads, observed) for threads in (1, 3)]
    for step in range(3):
        outputs = traced.run(state, step)
        for executor in replayed:
            found, values = executor.advance(state, step)
            assert same(found, next_state(program, outputs))
            assert same(values, [outputs[node] for node in observed])
            seen = dict[int, Words]()
            watched = executor.watch(state, step, lambda n, words, seen=seen: seen.update({n: words.copy()}))  # type: ignore[misc]  # bound here
            assert list(seen) == list(range(len(program.nodes)))
            assert same([*seen.values(), *watched], [*outputs, *found])
        state = found


def test_an_output_is_seen_in_one_call_and_can_not_be_changed() -> None:
    program = toy_program.build()
    executor, state = CpuExecutor(program, toy_program.constants()), toy_program.initial_state()

    def spoil(number: int, output: Words) -> None:
        output.reshape(-1)[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        executor.watch(state, 0, spoil)
    # What it raises ends the step, and the executor goes on with the next one.
    assert same(executor.watch(state, 0, lambda number, output: None), executor.advance(state, 0)[0])
    reference = ReferenceExecutor(program, toy_program.constants())
    assert same(reference.watch(state, 0, lambda number, output: None), executor.advance(state, 0)[0])


def test_a_state_that_is_kept_is_not_overwritten() -> None:
    executor = CpuExecutor(toy_program.build(), toy_program.constants())
    kept, _ = executor.advance(toy_program.initial_state(), 0)
    copies = [words.copy() for words in kept]
    state = kept
    addresses = set()
    for step in range(1, 8):
        state, _ = executor.advance(state, step)
        addresses.add(state[0].ctypes.data)
    assert same(kept, copies)
    assert len(addresses) <= 3  # memory is used again


def test_memory_follows_what_is_alive() -> None:
    """A chain of maps needs no more than one output at a time."""
    type_ = TensorType(DType.F32, (1000,))
    body = ScalarProgram(1, (0x3F800000,), (Instruction(Op.FADD, 0, 1),))
    nodes = tuple(
        Node(
            type_,
            (Operand(Source.STATE if i == 0 else Source.NODE, max(i - 1, 0), type_, Affine(0, (0, 1)), 0),),
            (Input(InputKind.OPERAND, 0),),
            body,
        )
        for i in range(50)
    )
    executor = CpuExecutor(StepProgram((Slot(Component.PARAMETER, type_, 49),), (UNUSED,), nodes), [NOTHING])
    assert executor._kernel.arena_words == 1008  # whole cache lines
    state, _ = executor.advance([np.zeros(1000, np.uint32)], 0)
    assert np.array_equal(state[0].view(np.float32), np.full(1000, 50, np.float32))


def test_many_callers_at_once() -> None:
    """Executors share their threads; who finds them busy works alone."""
    program = draw_program(4, 300)
    words = np.random.default_rng(3)
    state = [words.standard_normal((300, 300)).astype(np.float32).view(np.uint32) for _ in range(2)]
    expected, _ = CpuExecutor(program, [NOTHING]).advance(state, 0)
    shared = CpuExecutor(program, [NOTHING], 2)

    def work(own: bool) -> bool:
        executor = CpuExecutor(program, [NOTHING], 3) if own else shared
        return all(same(executor.advance(state, 0)[0], expected) for _ in range(5))

    with ThreadPoolExecutor(4) as callers:
        assert all(callers.map(work, [True, False, True, False]))


def test_threads_after_a_fork() -> None:
    """A child has none of its parent's threads; it starts its own, and both end. Either module has its own threads."""
    script = """
import os, sys
import numpy as np
from pol.commitments import _hashing
from pol.execution.cpu import CpuExecutor
from test_cpu_replay import NOTHING, draw_program, same
words = np.arange(1 << 20, dtype=np.uint32)
state = [words[:90_000].reshape(300, 300)] * 2
program = draw_program(4, 300)
leaves, (next_state, _) = _hashing.hash_leaves(words, 1), CpuExecutor(program, [NOTHING]).advance(state, 0)
def check():
    assert _hashing.hash_leaves(words, 3) == leaves
    assert same(CpuExecutor(program, [NOTHING], 3).advance(state, 0)[0], next_state)
check()
child = os.fork()
check()
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(toy_program.__file__).parent)])
    }
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, check=True)


def test_a_process_that_ends_reports_no_leak() -> None:
    """Though something keeps what it executed with for as long as it lives, as parts of torch do."""
    script = """
import ctypes, toy_program
from pol.execution.cpu import CpuExecutor, CpuNode
program = toy_program.build()
executor = CpuExecutor(program, toy_program.constants())
executor.advance(toy_program.initial_state(), 0)
for kept in (executor, CpuNode(program.nodes[0])):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(toy_program.__file__).parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_an_executor_that_observes_other_nodes() -> None:
    """In the order that is asked for, a node as often as it is named; the bits of a run."""
    program, state = toy_program.build(), toy_program.initial_state()
    nodes = [3, 0, 3, len(program.nodes) - 1]
    for factory in (ReferenceExecutor, CpuExecutor):
        executor = factory(program, toy_program.constants())
        outputs = executor.run(state, 2)
        after, observed = executor.observing(nodes).advance(state, 2)
        assert same(observed, [outputs[node] for node in nodes])
        assert same(after, executor.advance(state, 2)[0])
