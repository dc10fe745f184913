"""Checks of a published learning record that need no chain.

A check yields findings. To add one, write a function from `CheckedRecord` to findings and put it into `CHECKS`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, partial
from typing import TypeAlias

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.lineage import lineage
from pol.training.record import learning_record, signed_heads
from pol.training.record.learning_record import DOCUMENT_LIMIT, HEAD, LearningRecord, RecordedCheckpoint
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage.store import Store
from pol.training.task import published_task
from pol.training.task.published_task import TaskLoader


class CheckOutcome(Enum):
    """The outcome of a check."""

    GOOD = "good"
    BAD = "bad"
    UNSEEN = "could not look"
    SKIPPED = "not checked"


@dataclass(frozen=True)
class CheckFinding:
    """The finding of one check about one subject."""

    check: str
    about: str
    outcome: CheckOutcome
    detail: str = ""


@dataclass(frozen=True)
class CheckedRecord:
    """The newest record of a store, and those of its checkpoints that are checked."""

    store: Store
    record: LearningRecord
    drawn: tuple[RecordedCheckpoint, ...]

    @cached_property
    def run(self) -> RecordedRun:
        """The record with its store."""
        return RecordedRun(self.store, self.record)

    @cached_property
    def load(self) -> TaskLoader:
        """Loads each task once."""
        return cache(published_task.load)


Check: TypeAlias = Callable[[CheckedRecord], Iterator[CheckFinding]]


def check_record(
    store: Store, sample: int | None = None, seed: int = 0, *, step: int | None = None
) -> list[CheckFinding]:
    """All findings about a store's newest record.

    ``sample`` checkpoints are drawn by ``seed``, or the one of ``step`` is looked at, or all are.
    """
    data = store.read(HEAD, limit=DOCUMENT_LIMIT)
    try:
        record = LearningRecord.decode(data)
    except ProtocolError as error:
        return [CheckFinding("record", HEAD, CheckOutcome.BAD, str(error))]
    found = record.checkpoints
    if not found:
        return [CheckFinding("record", HEAD, CheckOutcome.BAD, "it names no checkpoint")]
    if step is not None:
        found = (RecordedRun(store, record).checkpoint(step),)
    elif sample is not None and sample < len(found):
        found = tuple(sorted(random.Random(seed).sample(found, sample), key=lambda c: c.step))
    subject = CheckedRecord(store, record, found)
    return list(itertools.chain.from_iterable(check(subject) for check in CHECKS))


def check_log(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """Decoding has compared the log's root and the order of steps; what is left is the copy under its digest."""
    record = subject.record
    steps = [checkpoint.step for checkpoint in record.checkpoints]
    yield CheckFinding("log root", f"{len(steps)} checkpoints", CheckOutcome.GOOD, record.log_root.hex())
    due = range(record.interval, steps[-1], record.interval)
    is_due = 2 * len(set(due) & set(steps)) >= len(due)  # a failed store, caught by the training, leaves gaps
    outcome = CheckOutcome.GOOD if is_due else CheckOutcome.BAD
    yield CheckFinding("order of steps", f"{steps[0]} to {steps[-1]}", outcome, f"every {record.interval}")
    digest = keccak256(record.encode()).hex()
    yield _look("record under its digest", digest, lambda: _require_stored(subject.store, digest))


def check_signatures(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """Every signed head is one of this log, by the key in the record; whose key that is, is for the reader to know."""
    heads = len(subject.record.heads)
    if not heads:
        yield CheckFinding("signatures", "no head", CheckOutcome.SKIPPED, "the record isn't signed")
        return
    yield _look("signatures", f"{heads} heads", lambda: f"by {signed_heads.verify_heads(subject.record).signer.hex()}")


def check_checkpoints(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """Each checkpoint: its document is the one in the log, every tensor has its root, and it counts its own steps."""
    for checkpoint in subject.drawn:
        yield _look("checkpoint", f"step {checkpoint.step}", partial(_require_checkpoint, subject.run, checkpoint))
    left = len(subject.record.checkpoints) - len(subject.drawn)
    if left:
        yield CheckFinding("checkpoint", f"{left} others", CheckOutcome.SKIPPED, "neither drawn nor named")


def check_changes(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """Where the setting of the training has changed, which is no fault: other bits are expected from there on."""
    try:
        for step, change in subject.run.changes(subject.drawn):
            yield CheckFinding("change", f"step {step}", CheckOutcome.GOOD, change)
    except (ProtocolError, OperationalError):
        return  # the finding about that checkpoint says so


def check_task(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """The states that a record of a task lists are the task's, and those of its own checkpoints."""
    try:
        is_named = subject.run.names_task()
    except (ProtocolError, OperationalError):
        return  # the finding about the newest checkpoint says so
    if is_named:
        yield _look("task", f"{len(subject.drawn)} checkpoints", partial(_require_task, subject))


def check_start(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """The origin of the first weights: one finding for each training of the lineage."""
    try:
        levels = lineage.of_record(subject.store, subject.record, subject.load)
    except (ProtocolError, OperationalError) as error:
        outcome = CheckOutcome.BAD if isinstance(error, ProtocolError) else CheckOutcome.UNSEEN
        yield CheckFinding("start", str(subject.record.start.get("kind")), outcome, str(error))
        return
    for level in levels:
        counts = f"{len(level.taken)} tensors from the base, {len(level.drawn)} drawn, {len(level.rest)} others"
        detail = "its author's own: nothing says where the weights come from" if level.kind == "given" else counts
        outcome = CheckOutcome.SKIPPED if level.kind == "given" else CheckOutcome.GOOD
        yield CheckFinding("start", f"{level.kind}, {level.document[:16]}", outcome, detail)


def check_rest(subject: CheckedRecord) -> Iterator[CheckFinding]:
    """The steps between checkpoints aren't checked; the finding says so."""
    yield CheckFinding("training", "steps between checkpoints", CheckOutcome.SKIPPED, "it takes a replay")


CHECKS: Sequence[Check] = (
    check_log,
    check_signatures,
    check_checkpoints,
    check_changes,
    check_task,
    check_start,
    check_rest,
)


def _require_checkpoint(run: RecordedRun, checkpoint: RecordedCheckpoint) -> str:
    saved = run.document(checkpoint)
    run.verify(saved)
    return f"{len(saved.types)} tensors, {len(saved.documents)} documents, {saved.nbytes} bytes"


def _require_task(subject: CheckedRecord) -> str:
    from pol.training.record import proof_of_record

    task, proof = proof_of_record.proof_of(subject.run, is_finished=False, load=subject.load)
    if gap := {entry.step for entry in proof.checkpoints}.difference(subject.run.steps):
        raise ProtocolError(f"the record has no checkpoint of step {min(gap)}, where its task asks for one")
    steps = {checkpoint.step for checkpoint in subject.drawn}
    held = [entry.index for entry in proof.checkpoints if entry.step in steps]
    rest = proof_of_record.require_recorded(subject.run, task, proof, held)
    return f"{len(held)} hold states of task {task.digest[:16]}; not compared: {', '.join(rest) or 'nothing'}"


def _require_stored(store: Store, digest: str) -> str:
    learning_record.load_record(store, digest)
    return "stored"


def _look(check: str, about: str, look: Callable[[], str]) -> CheckFinding:
    try:
        return CheckFinding(check, about, CheckOutcome.GOOD, look())
    except ProtocolError as error:
        return CheckFinding(check, about, CheckOutcome.BAD, str(error))
    except OperationalError as error:
        return CheckFinding(check, about, CheckOutcome.UNSEEN, str(error))
