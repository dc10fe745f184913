"""Writes what the self-test of devices expects: `python -m lab.kernels.self_test_digests` (PYTHONPATH=tests).

Primitives, nodes and trainings by the reference. The step programs are captured anew with ``--programs``.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lab.benchmarks.training_bits import cnn, gpt
from pol.arithmetic.primitives import Op, apply
from pol.commitments.tensor import state_root, tensor_tree
from pol.execution.device.self_test import self_test
from pol.execution.device.self_test.subjects import trace_root
from pol.execution.device.self_test.tested_nodes import FULL, SHORT, STEP, TestedNode, classes, counted_words, primitive
from pol.execution.operand_sources import Sources
from pol.execution.reference import ReferenceExecutor, evaluate_node

FOLDER = Path(self_test.__file__).parent
PIECE = 1 << 20
MODELS = {"gpt": gpt, "cnn": cnn}


def primitive_digest(op: Op, words: int) -> str:
    """Of a primitive's results by NumPy, a piece at a time."""
    operands = primitive(op, words).tensors
    pieces = [apply(op, *(o[first : first + PIECE] for o in operands)) for first in range(0, words, PIECE)]
    return self_test.digest(np.concatenate(pieces))


def node_digest(tested: TestedNode) -> str:
    """Of a node's output by the reference."""
    return self_test.digest(evaluate_node(tested.node, STEP, Sources([], tested.tensors, [])))


def tree_digest(words: int) -> str:
    """Of a tree by pol.commitments."""
    return tensor_tree(counted_words(70, words))[:16].hex()


def training_digests(training: self_test.TestedTraining) -> tuple[str, str]:
    """Of a training by the reference."""
    executor, state = ReferenceExecutor(training.program, training.constants), training.state
    trace = trace_root(training.program, executor.run(state, 0))
    for step in range(self_test.STEPS):
        state, _ = executor.advance(state, step)
    # A training that has become NaN tests nothing.
    assert all(np.isfinite(words.view(np.float32)).all() for words in state)
    root = state_root([slot.type for slot in training.program.slots], state)
    return trace[:16].hex(), root[:16].hex()


def write_programs() -> None:
    """Captured from the models of the benchmarks, without their data."""
    for name, model in MODELS.items():
        (FOLDER / f"{name}.step").write_bytes(model(4).program.to_bytes())


def lines() -> Iterator[str]:
    """The module with the digests."""
    yield '"""What the reference gives: written by tests/lab/kernels/self_test_digests.py."""'
    yield ""
    yield "PRIMITIVES = {"
    for op in Op:
        yield f'    "{op.name}": ("{primitive_digest(op, SHORT)}", "{primitive_digest(op, FULL)}"),'
    yield "}"
    yield '"""On 2^16 words and on 2^24."""'
    yield "CLASSES = {"
    for tested in classes():
        yield f'    "{tested.name}": "{node_digest(tested)}",'
    yield "}"
    yield "TREES = {"
    for size in self_test.TREE_SIZES:
        yield f'    {size}: "{tree_digest(size)}",'
    yield "}"
    yield "TRAININGS = {"
    for training in self_test.trainings():
        trace, state = training_digests(training)
        yield f'    "{training.name}": ("{trace}", "{state}"),'
    yield "}"
    yield '"""The trace of step 0, and the state after three steps."""'


if __name__ == "__main__":
    if "--programs" in sys.argv:
        write_programs()
    (FOLDER / "known_digests.py").write_text("\n".join(lines()) + "\n", encoding="utf-8")
