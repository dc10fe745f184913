"""Checkpoints that weren't trained: each published spoof of earlier systems is rejected."""

from dataclasses import replace

import numpy as np
import pytest

from digits_training import Training, checkpoints, executor, honest, profiled, proof_over, verdict
from pol.arithmetic.primitives import Words
from pol.errors import Fault
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.learning_proof import load_checkpoint
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome, Reason

FORGED = 6  # the checkpoint that is tampered with: the end of segment 5, the start of segment 6


def tampered(change: dict[int, list[Words]]) -> Training:
    """The honest proof with some checkpoints replaced."""
    states = checkpoints(honest())
    return proof_over([change.get(index, state) for index, state in enumerate(states)])


def floats(words: Words) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Words as numbers."""
    return words.view(np.float32)


def words_of(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Words:
    """Numbers as words."""
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32)


def slots(component: Component) -> list[int]:
    """The slots of a component."""
    return [i for i, slot in enumerate(honest().task.program.slots) if slot.component == component]


def test_one_nan_is_a_rejection() -> None:
    state = [words.copy() for words in checkpoints(honest())[FORGED]]
    state[0].flat[3] = 0x7FC00000
    forged = tampered({FORGED: state})
    for segment in (FORGED - 1, FORGED):
        result = verdict(forged, segment)
        assert result.outcome is Outcome.REJECTED
        assert Reason.DISTANCE_INFINITE in result.reasons
    assert verdict(forged, FORGED - 2).outcome is Outcome.ACCEPTED


def test_checkpoints_of_nothing_but_nan_are_rejected() -> None:
    nans = [np.full(words.shape, 0x7FC00000, np.uint32) for words in checkpoints(honest())[0]]
    forged = tampered(dict.fromkeys(range(1, 13), nans))
    for segment in (0, 5, 11):
        assert verdict(forged, segment).outcome is Outcome.REJECTED


@pytest.mark.parametrize("word", [0x7F800000, 0xFF800000, 0x4B000000])
def test_infinities_and_huge_numbers_are_rejected(word: int) -> None:
    state = [words.copy() for words in checkpoints(honest())[FORGED]]
    state[-1].flat[0] = word
    assert verdict(tampered({FORGED: state}), FORGED - 1).outcome is Outcome.REJECTED


@pytest.mark.parametrize("factor", [2.0, -1.0, 0.0, 1.001])
def test_scaled_weights_are_rejected(factor: float) -> None:
    state = checkpoints(honest())[FORGED]
    scaled = [words_of(floats(words) * np.float32(factor)) for words in state]
    result = verdict(tampered({FORGED: scaled}), FORGED - 1)
    assert result.outcome is Outcome.REJECTED


def test_interpolated_checkpoints_are_rejected() -> None:
    states = checkpoints(honest())
    first, last = states[0], states[-1]
    forged = proof_over(
        [
            first,
            *(
                [
                    words_of(floats(a) + (floats(b) - floats(a)) * np.float32(i / 12))
                    for a, b in zip(first, last, strict=True)
                ]
                for i in range(1, 12)
            ),
            last,
        ]
    )
    assert all(verdict(forged, segment).outcome is Outcome.REJECTED for segment in range(12))


def test_repeated_checkpoints_are_rejected() -> None:
    states = checkpoints(honest())
    result = verdict(tampered({FORGED: states[FORGED - 1]}), FORGED - 1)
    assert result.outcome is Outcome.REJECTED


def test_tiny_updates_are_rejected() -> None:
    """Nearly nothing moves, so that an absolute threshold or a top-q selection would see nothing."""
    states = checkpoints(honest())
    nearly = [words_of(floats(words) * np.float32(1 + 1e-6)) for words in states[FORGED - 1]]
    assert verdict(tampered({FORGED: nearly}), FORGED - 1).outcome is Outcome.REJECTED


@pytest.mark.parametrize("source", [0, 3])
def test_a_swapped_optimizer_state_is_rejected(source: int) -> None:
    states = checkpoints(honest())
    swapped = list(states[FORGED])
    for slot in slots(Component.OPTIMIZER):
        swapped[slot] = states[source][slot]
    forged = tampered({FORGED: swapped})
    assert verdict(forged, FORGED - 1).outcome is Outcome.REJECTED  # it isn't what training gives
    assert verdict(forged, FORGED).outcome is Outcome.REJECTED  # and training doesn't go on from it as published


def test_a_truncated_checkpoint_is_rejected() -> None:
    training = honest()
    entry = training.proof.checkpoints[FORGED]
    data = training.store.get(entry.object)
    short = replace(entry, object=training.store.put(data[: len(data) // 2]))
    entries = (*training.proof.checkpoints[:FORGED], short, *training.proof.checkpoints[FORGED + 1 :])
    forged = replace(training, proof=replace(training.proof, checkpoints=entries))
    for segment in (FORGED - 1, FORGED):
        result = verdict(forged, segment)
        assert (result.outcome, result.reasons, result.claim) == (Outcome.REJECTED, (Fault.TRUNCATED,), None)


def test_a_checkpoint_with_another_root_than_its_entry_is_rejected() -> None:
    training = honest()
    entries = list(training.proof.checkpoints)
    entries[FORGED] = replace(entries[FORGED], object=entries[FORGED - 1].object)
    forged = replace(training, proof=replace(training.proof, checkpoints=tuple(entries)))
    assert verdict(forged, FORGED).reasons == (Fault.WRONG_ROOT,)


def test_a_store_that_fails_never_rejects_anyone() -> None:
    training = honest()
    nowhere = Store("memory://nowhere")
    result = verify_segment(nowhere, training.task, training.proof, executor(), 0, profiled().thresholds)
    assert (result.outcome, result.reasons) == (Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,))

    class Lying(Store):
        def get(self, digest: str, *, limit: int = 1 << 34) -> bytes:
            path = self._path(digest)
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, b"something else")
            return super().get(digest, limit=limit)

    lying = Lying("memory://lying")
    result = verify_segment(lying, training.task, training.proof, executor(), 0, profiled().thresholds)
    assert (result.outcome, result.reasons) == (Outcome.INCONCLUSIVE, (Reason.CORRUPT_OBJECT,))


def test_honest_checkpoints_pass_for_comparison() -> None:
    training = honest()
    assert load_checkpoint(training.store, training.task, training.proof.checkpoints[FORGED])
    assert verdict(training, FORGED).outcome is Outcome.ACCEPTED
