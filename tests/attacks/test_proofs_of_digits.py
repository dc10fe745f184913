"""A proof over the digits task: honest training passes with room to spare, damaged or missing evidence is told apart.

That other training is rejected is tested by the battery (test_battery.py).
"""

from dataclasses import replace

import pytest

from digits_training import executor, honest, profiled, solve, verdict
from pol.claims.acceptance_rule import is_accepted
from pol.errors import Fault
from pol.training.storage.store import Store
from pol.training.task.learning_proof import load_checkpoint
from pol.verification.profile.profile_claim import FLOOR
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome, Reason

SEGMENTS = range(12)
DAMAGED = 6
"""The checkpoint at the end of segment 5 and the start of segment 6."""


def test_honest_native_training_is_accepted_with_a_wide_margin() -> None:
    training = honest()
    assert load_checkpoint(training.store, training.task, training.proof.checkpoints[DAMAGED])
    assert profiled().thresholds[0] >= FLOOR
    assert profiled().thresholds[2] >= FLOOR
    for segment in SEGMENTS:
        result = verdict(training, segment)
        assert result.outcome is Outcome.ACCEPTED, result.detail
        claim = result.claim
        assert claim is not None
        for distance, reference, threshold in zip(
            claim.distances, claim.references, profiled().thresholds, strict=True
        ):
            assert is_accepted(64 * distance, reference, threshold)  # eight times as far would still pass


@pytest.mark.slow  # two threads hinder each other in so small a model
def test_honest_training_on_more_threads_is_accepted() -> None:
    training = solve(threads=2)
    assert all(verdict(training, segment).outcome is Outcome.ACCEPTED for segment in SEGMENTS)


def test_a_truncated_checkpoint_and_one_with_another_root_than_its_entry_are_rejected() -> None:
    training = honest()
    entries = training.proof.checkpoints
    data = training.store.get(entries[DAMAGED].object)
    for segments, stored, fault in (
        ((DAMAGED - 1, DAMAGED), training.store.put(data[: len(data) // 2]), Fault.TRUNCATED),
        ((DAMAGED,), entries[DAMAGED - 1].object, Fault.WRONG_ROOT),
    ):
        damaged = (*entries[:DAMAGED], replace(entries[DAMAGED], object=stored), *entries[DAMAGED + 1 :])
        forged = replace(training, proof=replace(training.proof, checkpoints=damaged))
        for segment in segments:
            result = verdict(forged, segment)
            assert (result.outcome, result.reasons, result.claim) == (Outcome.REJECTED, (fault,), None)


def test_a_store_that_fails_never_rejects_anyone() -> None:
    class Lying(Store):
        def get(self, digest: str, *, limit: int = 1 << 34) -> bytes:
            path = self._path(digest)
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, b"something else")
            return super().get(digest, limit=limit)

    training = honest()
    for store, reason in (
        (Store("memory://nowhere"), Reason.NOT_AVAILABLE),
        (Lying("memory://lying"), Reason.CORRUPT_OBJECT),
    ):
        result = verify_segment(store, training.task, training.proof, executor(), 0, profiled().thresholds)
        assert (result.outcome, result.reasons) == (Outcome.INCONCLUSIVE, (reason,))
