"""From documents to one verdict: nothing that a stranger writes into them is accepted unless the training is whole."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

import small_task
from pol.claims.acceptance_rule import EXACT
from pol.claims.segment_claim import SegmentClaim
from pol.errors import EvidenceError, Fault, OperationalError, ProtocolError, UnsupportedError
from pol.training.storage.store import CorruptObjectError, Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof, compute_log_root
from pol.training.task.task_document import LoadedTask
from pol.verification.engines.engine import ExaminedSegment, LocalEngine
from pol.verification.examination.proof_examination import (
    SegmentDraw,
    checked_proof,
    conclude,
    examine_proof,
    open_proof,
    verdict_on_failure,
)
from pol.verification.verdict.verdict import Outcome, Reason, Verdict

ACCEPTED, REJECTED, INCONCLUSIVE = Outcome
SOME = tuple(range(0, 20, 4))


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, LoadedTask, str]:
    """A canonical training: exact mode accepts all of it."""
    store, task = small_task.published(tmp_path_factory.mktemp("exact"))
    return store, task, small_task.solve_with(store, task, small_task.Canonical(task))


def verdict(segment: int, outcome: Outcome, *reasons: Reason | Fault) -> ExaminedSegment:
    return ExaminedSegment(Verdict(segment, outcome, reasons, ""))


def test_one_rejection_is_enough_and_what_was_not_seen_is_not_accepted() -> None:
    good = verdict(0, ACCEPTED, Reason.WITHIN_THRESHOLD)
    gone, bad = verdict(1, INCONCLUSIVE, Reason.NOT_AVAILABLE), verdict(2, REJECTED, Reason.INFINITE, Fault.WRONG_ROOT)
    assert (conclude([good]).outcome, conclude([good]).reasons) == (ACCEPTED, (Reason.WITHIN_THRESHOLD,))
    assert (conclude([good, gone]).outcome, conclude([good, gone]).reasons) == (INCONCLUSIVE, (Reason.NOT_AVAILABLE,))
    whole = conclude([good, gone, bad, bad])
    assert (whole.outcome, whole.reasons) == (REJECTED, (Reason.INFINITE, Fault.WRONG_ROOT))
    assert conclude([]).outcome is INCONCLUSIVE


def test_a_pair_that_ends_elsewhere_is_a_mark_and_one_that_can_not_be_read_counts_as_a_segment() -> None:
    good = verdict(0, ACCEPTED, Reason.WITHIN_THRESHOLD)
    honest = good.verdict
    claim = SegmentClaim(0, bytes(32), bytes(32), bytes(32), (0, 0, 0), (0, 0, 0))
    elsewhere = replace(honest, outcome=REJECTED, reasons=(Reason.DISTANCE_ABOVE_THRESHOLD,), claim=claim)
    gone = replace(honest, outcome=INCONCLUSIVE, reasons=(Reason.NOT_AVAILABLE,))
    broken = replace(honest, outcome=REJECTED, reasons=(Fault.WRONG_ROOT,))
    assert conclude([good] * 40, [honest] * 9 + [elsewhere]).outcome is ACCEPTED
    whole = conclude([good] * 40, [honest] * 7 + [elsewhere] * 3)
    assert (whole.outcome, whole.reasons) == (REJECTED, (Reason.PAIR,))
    assert (conclude([good], [gone]).outcome, conclude([good], [gone]).reasons) == (INCONCLUSIVE, gone.reasons)
    assert (conclude([good], [broken]).outcome, conclude([good], [broken]).reasons) == (REJECTED, broken.reasons)
    nan = replace(elsewhere, reasons=(Reason.DISTANCE_INFINITE, Reason.NOT_A_NUMBER))
    assert (conclude([good], [nan]).outcome, conclude([good], [nan]).reasons) == (REJECTED, nan.reasons)


def test_only_evidence_rejects() -> None:
    for error in (OperationalError("x"), UnsupportedError("x"), CorruptObjectError("x"), MemoryError("x")):
        assert verdict_on_failure(error).outcome is INCONCLUSIVE
    assert verdict_on_failure(ProtocolError("x")).reasons == (Reason.BAD_EVIDENCE,)
    with pytest.raises(ZeroDivisionError):
        verdict_on_failure(ZeroDivisionError())


def test_what_is_drawn_and_what_is_suspected_are_replayed_once() -> None:
    draw = SegmentDraw(20, bytes(32), (9, 3), 1, (4,))
    assert (draw.replayed, draw.probability) == ([3, 4, 9], Fraction(1, 10))


def test_segments_that_the_task_doesn_t_have(exact: tuple[Store, LoadedTask, str]) -> None:
    subject = open_proof(exact[0], exact[2])
    for bad in ([], [20], [-1]):
        with pytest.raises(ProtocolError, match="from 0"):
            examine_proof(subject, bad, EXACT, LocalEngine(1))


def test_progress_is_told(exact: tuple[Store, LoadedTask, str]) -> None:
    seen: list[tuple[int, int]] = []
    found = examine_proof(
        open_proof(exact[0], exact[2]), [5, 2], EXACT, LocalEngine(1), lambda *told: seen.append(told)
    )
    assert [r.verdict.segment for r in found.examined] == [2, 5]
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_an_engine_that_loses_a_segment_is_caught(exact: tuple[Store, LoadedTask, str]) -> None:
    class Losing(LocalEngine):
        def run(self, jobs: Any) -> Any:
            return super().run(jobs[1:])

    with pytest.raises(OperationalError, match="lost"):
        examine_proof(open_proof(exact[0], exact[2]), [1, 2], EXACT, Losing(1))


def hostile(document: dict[str, Any], data: st.DataObject) -> None:
    """One change somewhere in a learning proof's document."""
    entries = document["checkpoints"]
    i, j = (data.draw(st.integers(0, len(entries) - 1)) for _ in range(2))
    kind = data.draw(st.sampled_from(["object", "root", "both", "step", "index", "drop", "repeat", "swap", "member"]))
    if kind in ("object", "both"):
        entries[i]["object"] = entries[j]["object"]
    if kind in ("root", "both"):
        entries[i]["state_root"] = entries[j]["state_root"]
    if kind in ("step", "index"):
        entries[i][kind] = data.draw(st.one_of(st.integers(0, 70), st.sampled_from([-1, True, None, "3", 1.5])))
    elif kind == "drop":
        del entries[i]
    elif kind == "repeat":
        entries.insert(j, dict(entries[i]))
    elif kind == "swap":
        entries[i], entries[j] = entries[j], entries[i]
    elif kind == "member":
        name = data.draw(st.sampled_from(sorted(document)))
        document[name] = data.draw(st.sampled_from([None, "", "00" * 32, 0, [], {}, "ab" * 32, {"a": "b"}]))


@settings(max_examples=50)
@given(st.data())
def test_no_hostile_document_is_accepted_unless_it_says_the_same(
    exact: tuple[Store, LoadedTask, str], data: st.DataObject
) -> None:
    store, task, digest = exact
    honest = learning_proof.decode(store, digest)
    document = json.loads(honest.encode())
    hostile(document, data)
    refusal: EvidenceError | None = None
    try:
        proof = LearningProof.decode(rfc8785.dumps(document))
        if data.draw(st.booleans()):
            proof = LearningProof.decode(
                rfc8785.dumps(document | {"log_root": compute_log_root(proof.checkpoints).hex()})
            )
        subject = checked_proof(store, task, proof)
    except EvidenceError as error:
        refusal = error
    if refusal is not None:
        assert verdict_on_failure(refusal).outcome is REJECTED
        return
    found = examine_proof(subject, SOME, EXACT, LocalEngine(1))
    looked_at = [i for segment in SOME for i in (segment, segment + 1)]
    same = all(proof.checkpoints[i] == honest.checkpoints[i] for i in looked_at)
    assert found.outcome is (ACCEPTED if same else REJECTED)


def test_a_subject_is_what_was_committed_to(exact: tuple[Store, LoadedTask, str], tmp_path: Path) -> None:
    store, _, digest = exact
    proof = learning_proof.decode(store, digest)
    assert open_proof(store, digest, proof.log_root).proof == proof
    with pytest.raises(EvidenceError, match="committed was"):
        open_proof(store, digest, bytes(32))
    with pytest.raises(OperationalError):
        open_proof(Store(f"file://{tmp_path}"), digest)
