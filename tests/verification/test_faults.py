"""Whatever is wrong with evidence has a reason of its own that a program can tell, and none of it is accepted."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from digits_training import Training, checkpoints, executor, honest, loaded, profiled, proof_over, published, verdict
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import EXACT
from pol.errors import EvidenceError, Fault, OperationalError
from pol.graph.tensor_type import DType, TensorType
from pol.training.storage.store import CorruptObjectError, Store
from pol.training.task import published_task, task_tensors
from pol.training.task.learning_proof import LearningProof, compute_log_root, require_committed, require_proof_of
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, outcome_of_failure

SEGMENT = 5
NAMES = ("weight", "step")
TYPES = (TensorType(DType.F32, (2, 3)), TensorType(DType.I32, ()))
STATE: list[Words] = [np.arange(6, dtype=np.uint32).reshape(2, 3), np.zeros((), np.uint32)]


def fault_of(call: Callable[[], object]) -> Fault:
    with pytest.raises(EvidenceError) as raised:
        call()
    return raised.value.fault


def test_each_fault_is_a_reason_of_a_rejection() -> None:
    for fault in Fault:
        assert outcome_of_failure(EvidenceError(fault, "")) == (Outcome.REJECTED, fault)
    assert not {fault.value for fault in Fault} & {reason.value for reason in Reason}
    error: EvidenceError = pickle.loads(pickle.dumps(EvidenceError(Fault.WRONG_DATA, "said")))
    assert (error.fault, str(error)) == (Fault.WRONG_DATA, "said")


def test_checkpoint_files() -> None:
    data = task_tensors.encode(NAMES, TYPES, STATE)

    def decode(data: bytes, names: tuple[str, ...] = NAMES, types: tuple[TensorType, ...] = TYPES) -> Fault:
        return fault_of(lambda: task_tensors.decode(data, names, types))

    assert {decode(data[:length]) for length in range(len(data))} == {Fault.TRUNCATED}
    assert decode(b"\xff" * 200) is Fault.MALFORMED
    assert decode(data + b"\0") is Fault.MALFORMED
    assert decode(data, (*NAMES, "bias"), (*TYPES, TYPES[0])) is Fault.MISSING_TENSOR
    assert decode(data, NAMES[:1], TYPES[:1]) is Fault.EXTRA_TENSOR
    assert decode(data, types=(TYPES[0], TensorType(DType.F32, ()))) is Fault.WRONG_DTYPE
    assert decode(data, types=(TensorType(DType.F32, (3, 2)), TYPES[1])) is Fault.WRONG_SHAPE


def relog(proof: LearningProof, **changes: Any) -> LearningProof:
    changed = replace(proof, **changes)
    return replace(changed, log_root=compute_log_root(changed.checkpoints))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda p: replace(p, task="ab" * 32), Fault.WRONG_TASK),
        (lambda p: replace(p, program_hash=bytes(32)), Fault.WRONG_TASK),
        (lambda p: replace(p, interval=50), Fault.WRONG_STEP),
        (lambda p: replace(p, order_root=bytes(32)), Fault.WRONG_ORDER),
        (lambda p: replace(p, log_root=bytes(32)), Fault.BROKEN_LOG),
        (lambda p: relog(p, checkpoints=p.checkpoints[:-1]), Fault.MISSING_ENTRY),
        (lambda p: relog(p, checkpoints=(p.checkpoints[0], *p.checkpoints[2:])), Fault.MISSING_ENTRY),
        (lambda p: relog(p, checkpoints=(*p.checkpoints[:3], replace(p.checkpoints[3], step=74), *p.checkpoints[4:])),
         Fault.WRONG_STEP),
        (lambda p: relog(p, checkpoints=(replace(p.checkpoints[0], state_root=bytes(32)), *p.checkpoints[1:])),
         Fault.WRONG_START),
    ],
)  # fmt: skip
def test_learning_proofs(change: Callable[[LearningProof], LearningProof], fault: Fault) -> None:
    assert fault_of(lambda: require_proof_of(change(honest().proof), loaded())) is fault


def test_another_log_than_the_committed_one() -> None:
    proof = honest().proof
    require_committed(proof, proof.log_root)
    assert fault_of(lambda: require_committed(proof, bytes(32))) is Fault.BROKEN_LOG


def test_a_proof_that_is_no_document() -> None:
    training = honest()
    short = training.proof.encode()[:-1]
    count = training.proof.encode().replace(b'"log_size":13', b'"log_size":12')
    assert fault_of(lambda: LearningProof.decode(short)) is Fault.MALFORMED
    assert fault_of(lambda: LearningProof.decode(count)) is Fault.MISSING_ENTRY


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda d, other: d.update(constants=other["constants"]), Fault.WRONG_DATA),
        (lambda d, other: d.update(constants_root="00" * 32), Fault.WRONG_DATA),
        (lambda d, other: d.update(initial_state_root="00" * 32), Fault.WRONG_START),
        (lambda d, other: d.update(program_hash="00" * 32), Fault.WRONG_TASK),
        (lambda d, other: d.update(work="1"), Fault.WRONG_TASK),
        (lambda d, other: d.update(steps=275), Fault.WRONG_ORDER),
        (lambda d, other: d.update(more=1), Fault.MALFORMED),
    ],
)
def test_tasks(change: Callable[[dict[str, Any], dict[str, Any]], object], fault: Fault) -> None:
    store, digest = published()
    document, other = json.loads(store.get(digest)), json.loads(published(2)[0].get(published(2)[1]))
    store.put(published(2)[0].get(other["constants"]))
    change(document, other)
    assert fault_of(lambda: published_task.load(store, store.put(rfc8785.dumps(document)))) is fault


def test_a_store_can_t_get_a_solver_rejected_by_handing_out_more_than_was_asked_for() -> None:
    store = Store("memory://oversized")
    digest = store.put(b"x" * 100)
    with pytest.raises(CorruptObjectError):
        store.get(digest, limit=99)


def test_a_server_that_does_not_say_what_it_has_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that answers HEAD with an error and GET with the file; a verdict isn't its to prevent."""
    expected = verdict(honest(), SEGMENT)

    def unsure(*_: object) -> bool:
        raise OperationalError("status 500")

    monkeypatch.setattr(Store, "exists", unsure)
    assert verdict(honest(), SEGMENT) == expected


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (0x7FC00000, Reason.NOT_A_NUMBER),
        (0xFFC12345, Reason.NOT_A_NUMBER),
        (0x7F800000, Reason.INFINITE),
        (0xFF800000, Reason.INFINITE),
        (0x4B000000, Reason.OUT_OF_RANGE),
        (0xCB000000, Reason.OUT_OF_RANGE),
    ],
)
def test_numbers_without_a_distance(word: int, reason: Reason) -> None:
    state = [words.copy() for words in checkpoints(honest())[SEGMENT + 1]]
    state[-1].flat[0] = word
    forged = proof_over([*checkpoints(honest())[: SEGMENT + 1], state, *checkpoints(honest())[SEGMENT + 2 :]])
    found = verdict(forged, SEGMENT)
    assert found.outcome is Outcome.REJECTED
    assert found.reasons == (Reason.DISTANCE_INFINITE, reason)
    assert loaded().names.slots[-1] in found.detail


def exactly(training: Training, segment: int) -> Verdict:
    return verify_segment(training.store, training.task, training.proof, executor(), segment, EXACT)


def test_exact_mode_takes_the_canonical_bits_and_nothing_else() -> None:
    states = checkpoints(honest())
    canonical = replayed()
    exact = proof_over([*states[: SEGMENT + 1], canonical, *states[SEGMENT + 2 :]])
    found = exactly(exact, SEGMENT)
    assert (found.outcome, found.reasons) == (Outcome.ACCEPTED, (Reason.EQUAL_ROOTS,))
    for slot, (type_, words) in enumerate(zip(loaded().slot_types, canonical, strict=True)):
        # The smallest change there is, below what distances can see.
        other = [w.copy() for w in canonical]
        place = int(np.argmin(np.abs(words.view(np.float32)))) if type_.dtype is DType.F32 else 0
        other[slot].flat[place] ^= 1
        found = exactly(proof_over([*states[: SEGMENT + 1], other, *states[SEGMENT + 2 :]]), SEGMENT)
        assert (found.outcome, found.reasons) == (Outcome.REJECTED, (Reason.ROOTS_DIFFER,)), slot


@pytest.mark.parametrize(("word", "reason"), [(0x7FC00000, Reason.NOT_A_NUMBER), (0x7F800000, Reason.NOT_A_NUMBER)])
def test_exact_mode_takes_no_nan_however_exactly_it_is_repeated(word: int, reason: Reason) -> None:
    """Canonical training from a state that holds one: the roots are equal. An infinite weight soon is NaN."""
    states = checkpoints(honest())
    begin = [words.copy() for words in states[SEGMENT]]
    begin[0].flat[0] = word
    end = replay_end(loaded().program, executor(), begin, 25 * SEGMENT, 25)
    found = exactly(proof_over([*states[:SEGMENT], begin, end, *states[SEGMENT + 2 :]]), SEGMENT)
    assert found.claim is not None
    assert found.claim.replay == found.claim.end
    assert found.outcome is Outcome.REJECTED
    assert {Reason.DISTANCE_INFINITE, Reason.REFERENCE_INFINITE} & set(found.reasons)
    assert reason in found.reasons
    assert loaded().names.slots[0] in found.detail


def test_exact_mode_takes_a_large_number_that_stays() -> None:
    """2^23 moves by less than its last bit: it is no way from itself, and the segment is true."""
    states = checkpoints(honest())
    begin = [words.copy() for words in states[SEGMENT]]
    begin[0].flat[0] = 0x4B000000
    end = replay_end(loaded().program, executor(), begin, 25 * SEGMENT, 25)
    assert end[0].flat[0] == 0x4B000000
    found = exactly(proof_over([*states[:SEGMENT], begin, end, *states[SEGMENT + 2 :]]), SEGMENT)
    assert (found.outcome, found.reasons) == (Outcome.ACCEPTED, (Reason.EQUAL_ROOTS,))
    end[0].flat[0] ^= 1
    found = exactly(proof_over([*states[:SEGMENT], begin, end, *states[SEGMENT + 2 :]]), SEGMENT)
    assert found.outcome is Outcome.REJECTED
    assert Reason.ROOTS_DIFFER in found.reasons


EDGES = st.sampled_from([0, 0x80000000, 1, 0x7F800000, 0x7FC00000, 0x7F800001, 0x4B000000, 0x4AFFFFFF, 0xFFFFFFFF])


@settings(max_examples=40)
@given(st.data())
def test_no_hostile_values_are_accepted_unless_they_are_within_the_threshold(data: st.DataObject) -> None:
    states = checkpoints(honest())
    hostile = [words.copy() for words in states[SEGMENT + 1]]
    for _ in range(data.draw(st.integers(0, 3))):
        words = hostile[data.draw(st.integers(0, len(hostile) - 1))]
        place = data.draw(st.integers(0, words.size - 1))
        bits = [int(words.flat[place]) ^ 1 << b for b in range(32)]
        words.flat[place] = data.draw(st.one_of(EDGES, st.sampled_from(bits), st.integers(0, 2**32 - 1)))
    forged = proof_over([*states[: SEGMENT + 1], hostile, *states[SEGMENT + 2 :]])
    found = verdict(forged, SEGMENT)
    assert found.outcome is not Outcome.INCONCLUSIVE
    assert (found.outcome is Outcome.ACCEPTED) == is_within(states[SEGMENT], hostile)


@cache
def replayed() -> list[Words]:
    return replay_end(loaded().program, executor(), checkpoints(honest())[SEGMENT], 25 * SEGMENT, 25)


def is_within(start: list[Words], end: list[Words]) -> bool:
    """The rule of docs/spec/verdict.md in Python's integers, one number at a time."""
    program = loaded().program
    sums: dict[int, list[int]] = {}
    for slot, x, y, z in zip(program.slots, replayed(), end, start, strict=True):
        if slot.type.dtype is not DType.F32:
            if not np.array_equal(x, y):
                return False
            continue
        fixed = []
        for words in (x, y, z):
            numbers = words.view(np.float32).reshape(-1).tolist()
            if not all(abs(n) < 2.0 ** (23 - slot.scale) for n in numbers):
                return False
            fixed.append([int(n * 2.0 ** (40 + slot.scale)) for n in numbers])  # a power of two: exact
        far, way = sums.get(slot.component, [0, 0])
        far += sum((a - b) ** 2 for a, b in zip(fixed[0], fixed[1], strict=True))
        way += sum((a - b) ** 2 for a, b in zip(fixed[0], fixed[2], strict=True))
        sums[slot.component] = [far, way]
    thresholds = profiled().thresholds
    return all(far * 2**64 <= thresholds[component - 1] * way for component, (far, way) in sums.items())


@settings(max_examples=60)
@given(st.data())
def test_no_hostile_bytes_are_accepted(data: st.DataObject) -> None:
    training = honest()
    entry = training.proof.checkpoints[SEGMENT + 1]
    honest_bytes = training.store.get(entry.object)
    hostile = bytearray(honest_bytes)
    kind = data.draw(st.sampled_from(["flip", "cut", "grow", "other"]))
    place = data.draw(st.one_of(st.integers(0, 400), st.integers(0, len(hostile) - 1)))
    if kind == "flip":
        hostile[place] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del hostile[place:]
    elif kind == "grow":
        hostile[place:place] = data.draw(st.binary(min_size=1, max_size=9))
    else:
        hostile = bytearray(data.draw(st.binary(max_size=300)))
    forged = replace(entry, object=training.store.put(hostile))
    entries = (*training.proof.checkpoints[: SEGMENT + 1], forged, *training.proof.checkpoints[SEGMENT + 2 :])
    found = verdict(replace(training, proof=replace(training.proof, checkpoints=entries)), SEGMENT)
    assert found.outcome is Outcome.REJECTED
    assert found.claim is None
    assert found.reasons[0].value in set(Fault)
