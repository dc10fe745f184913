"""The self-test: what a device gives, against digests of what the reference gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pol.arithmetic.primitives import Op, Words
from pol.commitments.tensor import tensor_tree
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor, CpuNode
from pol.execution.device.self_test.known_digests import CLASSES, PRIMITIVES, TRAININGS, TREES
from pol.execution.device.self_test.subjects import Subject, first_difference, trace_root
from pol.execution.device.self_test.tested_nodes import (
    FULL,
    SHORT,
    STEP,
    TestedNode,
    classes,
    counted_integers,
    counted_numbers,
    counted_words,
    primitive,
    primitive_node,
)
from pol.execution.operand_sources import Sources
from pol.graph.step_program import Component, StepProgram
from pol.graph.tensor_type import DType, TensorType

TREE_SIZES = (1, 63, 64, 65, 16_383, 16_384, 16_385, 40_000, 1 << 20, 256 * 16_384 + 1)
STEPS = 3
_DIGEST = 16
_INTEGERS = 64


@dataclass(frozen=True)
class Check:
    """One part of the self-test; ``detail`` says how it failed."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class TestedTraining:
    """A step program of this package, and tensors that follow from a counter."""

    __test__ = False

    name: str
    program: StepProgram
    constants: Sequence[Words]
    state: Sequence[Words]


def self_test(subject: Subject, short: bool, seen: Callable[[Check], None] = lambda check: None) -> list[Check]:
    """All checks, each shown as it is done; the short form tests each primitive on 2^16 words, not 2^24."""
    checks = []
    for check in _checks(subject, short):
        seen(check)
        checks.append(check)
    return checks


def require_self_test(subject: Subject) -> None:
    """The short form; OperationalError if anything differs."""
    failed = [check for check in self_test(subject, short=True) if not check.passed]
    if failed:
        raise OperationalError(
            f"{subject.name} does not give the defined bits: {failed[0].name} ({failed[0].detail}), and "
            f"{len(failed) - 1} more. Its results are worth nothing to a verifier: use --device cpu, and send the "
            "output of `pol selftest --device cuda --json`"
        )


def trainings() -> Iterator[TestedTraining]:
    """A small GPT, with AdamW and dropout, and a small convolutional network with batch normalisation."""
    for name in TRAININGS:
        data = (Path(__file__).parent / f"{name}.step").read_bytes()
        program = StepProgram.from_bytes(data)
        constants = [_tensor(type_, 100 + i) for i, type_ in enumerate(program.constants)]
        state = [
            np.zeros(slot.type.shape, np.uint32)
            if slot.component is Component.OPTIMIZER
            else _tensor(slot.type, 200 + i)
            for i, slot in enumerate(program.slots)
        ]
        yield TestedTraining(name, program, constants, state)


def digest(words: Words) -> str:
    """The name of a tensor's content: the first bytes of its tree."""
    return tensor_tree(words)[:_DIGEST].hex()


def training_digests(subject: Subject, training: TestedTraining) -> tuple[str, str]:
    """Of the trace of step 0, and of the state after all steps."""
    about = (training.program, training.constants, training.state)
    trace = trace_root(training.program, subject.trace(*about))
    return trace[:_DIGEST].hex(), subject.train(*about, STEPS)[:_DIGEST].hex()


def _checks(subject: Subject, short: bool) -> Iterator[Check]:
    words = SHORT if short else FULL
    subject.load([primitive_node(op, words) for op in Op])
    for tested in (primitive(op, words) for op in Op):
        yield from _check_node(subject, tested, PRIMITIVES[tested.name][0 if short else 1])
    by_class = list(classes())
    subject.load([tested.node for tested in by_class])
    for tested in by_class:
        yield from _check_node(subject, tested, CLASSES[tested.name])
    for size in TREE_SIZES:
        got = subject.tree(counted_words(70, size))[:_DIGEST].hex()
        yield Check(f"tree of {size} words", got == TREES[size], f"{got} for {TREES[size]}" * (got != TREES[size]))
    for training in trainings():
        found = training_digests(subject, training)
        passed = found == TRAININGS[training.name]
        yield Check(f"training of {training.name}", passed, "" if passed else _first_node(subject, training))


def _check_node(subject: Subject, tested: TestedNode, known: str) -> Iterator[Check]:
    for kernel, output in subject.outputs(tested):
        name = f"{tested.name}, {kernel}" if kernel else tested.name
        if digest(output) == known:
            yield Check(name, True)
        else:
            expected = CpuNode(tested.node, 0).run(STEP, Sources([], tested.tensors, []))
            yield Check(name, False, first_difference(output, expected))


def _first_node(subject: Subject, training: TestedTraining) -> str:
    """The first node that differs from the processor's kernels."""
    got = subject.trace(training.program, training.constants, training.state)
    expected = CpuExecutor(training.program, training.constants, 0).run(training.state, 0)
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        if not np.array_equal(one, other):
            return f"node {number} of step 0: {first_difference(one, other)}"
    return "all nodes of step 0 are those of this machine's processor; a later step differs"


def _tensor(type_: TensorType, stream: int) -> Words:
    integers = type_.dtype is DType.I32
    words = counted_integers(stream, type_.numel, _INTEGERS) if integers else counted_numbers(stream, type_.numel)
    return words.reshape(type_.shape)
