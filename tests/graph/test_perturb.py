"""Perturbed programs: folds read moved numbers, everything else reads the state, and equal seeds move equally."""

import hashlib

import numpy as np
import pytest
from test_reorder_and_work import product, program, short, state

from lab.benchmarks.training_bits import MODELS
from pol.arithmetic import philox
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import Words
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.node import Source
from pol.graph.state_perturbation import perturb
from pol.graph.step_program import StepProgram
from pol.graph.sum_reordering import reorder
from pol.graph.tensor_type import DType

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
    changed = perturb(original, 3)
    found = outputs(changed, words, number)
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
