"""An engine for workers of strangers, which share nothing but a store: each job is done by several of them.

The verifier draws who does what, compares sealed results, and replays what differs, what speaks against the solver and
a drawn share of the rest (docs/spec/replay_jobs.md, docs/guides/engines.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store
from pol.verification.engines.engine import Engine, ExaminedSegment, LocalEngine, ReplayJob, require_shared
from pol.verification.engines.redundancy import Redundancy, liars, needs_referee
from pol.verification.engines.replay_job_document import KEY, NONCE, PostedJob
from pol.verification.engines.replay_queue import Lease, ReplayQueue, WorkerFault, WorkerStanding
from pol.verification.engines.replay_result_document import decode_result
from pol.verification.engines.replay_worker import POLL_SECONDS, Tell, facts_of
from pol.verification.engines.signed_result import opened_envelope
from pol.verification.verdict.verdict import Outcome

LEASE_SECONDS = 3600
WAIT_SECONDS = 60.0
TWICE = Redundancy()


@dataclass
class _SharedJob:
    """A job in the hands of workers: the keys that had it, their answers, and the verifier's own result."""

    job: ReplayJob
    digest: str
    seen: float
    """The time at which some key had it or could have got it."""
    asked: set[bytes] = field(default_factory=set)
    answers: dict[bytes, ExaminedSegment] = field(default_factory=dict)
    envelopes: dict[bytes, bytes] = field(default_factory=dict)
    """What the keys have signed."""
    own: ExaminedSegment | None = None
    is_drawn: bool | None = None


@dataclass
class _Given:
    """A lease that a key holds."""

    lease: Lease
    shared: _SharedJob
    since: float


class StoreEngine:
    """Posts jobs in ``queue`` for workers with the admitted ``keys`` (Ed25519, 32 bytes each).

    ``referee`` does one's own replays; this process by default. A lease that isn't answered in ``lease`` seconds goes
    to another key. A job that no key can take for ``wait`` seconds is the referee's.

    Raises ProtocolError for keys that are fewer than the copies, or malformed.
    """

    def __init__(
        self,
        queue: Store,
        keys: Sequence[bytes],
        redundancy: Redundancy = TWICE,
        referee: Engine | None = None,
        lease: int = LEASE_SECONDS,
        wait: float = WAIT_SECONDS,
        poll: float = POLL_SECONDS,
        tell: Tell = lambda sentence, facts: None,
        entropy: Callable[[int], bytes] = os.urandom,
        clock: Callable[[], float] = time.monotonic,
    ):
        if any(len(key) != KEY for key in keys) or len(set(keys)) != len(keys):
            raise ProtocolError("admitted keys are 32 bytes each, and none stands there twice")
        if len(keys) < redundancy.copies:
            raise ProtocolError(
                f"each segment is replayed by {redundancy.copies} keys, and {len(keys)} are admitted: admit more, or "
                "lower the redundancy"
            )
        self._queue, self._redundancy = ReplayQueue(queue), redundancy
        self._referee = LocalEngine() if referee is None else referee
        self._lease, self._wait, self._poll = lease, wait, poll
        self._tell, self._entropy, self._clock = tell, entropy, clock
        self.workers = [WorkerStanding(key) for key in keys]
        """The standing of each key, in the order in which they were given."""
        self._given: dict[bytes, _Given] = {}

    def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
        """The results, in the order of the jobs, once all are known: a key that lies late takes earlier answers along.

        Raises:
            OperationalError: no worker is there, the queue failed, or a store that only this process sees.
        """
        require_shared(jobs)
        if not jobs:
            return
        recipient = X25519PrivateKey.from_private_bytes(self._entropy(KEY))
        shared = [self._post(job, recipient) for job in jobs]
        try:
            while waiting := [each for each in shared if not self._is_settled(each)]:
                came = self._collect(recipient)
                self._look()
                self._end_leases()
                hopeless = [each for each in waiting if not self._give(each)]
                for each in waiting:
                    why = "no other key is there to do it" if each in hopeless else self._doubt(each)
                    if why:
                        self._replay(each, why)
                        break  # it may have taken long: look first whether workers have answered, and are there
                else:
                    if not came:
                        time.sleep(self._poll)
        finally:
            for key, given in list(self._given.items()):
                self._withdraw(key, given)
        for each in shared:
            yield each.own or next(iter(self._valid(each).values()))

    def _post(self, job: ReplayJob, recipient: X25519PrivateKey) -> _SharedJob:
        posted = PostedJob(job, self._entropy(NONCE), recipient.public_key().public_bytes_raw())
        return _SharedJob(job, self._queue.post(posted), self._clock())

    def _collect(self, recipient: X25519PrivateKey) -> bool:
        """Take the answers that have come; whether there was one."""
        came = False
        for worker in self.workers:
            given = self._given.get(worker.key)
            if given is None:
                continue
            try:
                data = self._queue.answered(given.shared.digest, worker.key)
                if data is None and not self._queue.has_lease(worker.key, given.lease):
                    # A worker answers first, and ends its lease then.
                    data = self._queue.answered(given.shared.digest, worker.key)
                    if data is None:
                        self._say(worker, f"gives {given.shared.job.named} back", "gave-back", given.shared)
                        self._given.pop(worker.key)
            except ProtocolError as error:
                self._blame(worker, WorkerFault.REFUSED, str(error))
                continue
            if data is not None:
                self._take(worker, given.shared, data, recipient)
                self._withdraw(worker.key, given)
                came = True
        return came

    def _take(self, worker: WorkerStanding, shared: _SharedJob, data: bytes, recipient: X25519PrivateKey) -> None:
        """Note the answer of a worker, or what is wrong with it."""
        try:
            envelope = opened_envelope(data, worker.key, recipient)
            result = decode_result(envelope.payload, shared.digest, shared.job)
        except (ProtocolError, OperationalError) as error:
            self._blame(worker, WorkerFault.REFUSED, f"{shared.job.named}: {error}")
            return
        outcome = result.verdict.outcome
        self._say(worker, f"{shared.job.named}: {outcome.name.lower()}", "answered", shared)
        if outcome is not Outcome.INCONCLUSIVE:  # one that couldn't look has given the job back
            worker.answers += 1
            shared.answers[worker.key] = result
            shared.envelopes[worker.key] = envelope.encode()

    def _look(self) -> None:
        """Look who is there."""
        for worker in self.workers:
            try:
                has_come = worker.look(self._queue.last_beat(worker.key), self._clock())
            except ProtocolError as error:
                self._blame(worker, WorkerFault.REFUSED, str(error))
                continue
            if has_come and worker.fault is None:
                self._say(worker, "is there", "present")

    def _doubt(self, shared: _SharedJob) -> str:
        """Why a job that has enough answers has to be replayed all the same, if it has to."""
        answers = self._valid(shared)
        if len(answers) < self._redundancy.copies:
            return ""
        if shared.is_drawn is None:
            shared.is_drawn = self._redundancy.is_audited(self._entropy(8))
        if needs_referee(answers):
            return "its answers differ, or speak against the solver"
        return "it was drawn" if shared.is_drawn else ""

    def _replay(self, shared: _SharedJob, why: str) -> None:
        """One's own replay, which names the keys whose answers aren't the same."""
        job = shared.job
        self._tell(f"replay of {job.named} here: {why}", {"event": "replayed", "why": why, **facts_of(job)})
        (shared.own,) = self._referee.run([job])
        false = liars(shared.answers, shared.own)
        for worker in self.workers:
            if worker.key in false and worker.fault is None:
                worker.evidence = self._queue.keep(shared.envelopes[worker.key])
                self._blame(worker, WorkerFault.LIED, f"its answer about {job.named} isn't that of a replay")

    def _end_leases(self) -> None:
        """Take leases back whose time is over, or whose worker is gone."""
        for worker in self.workers:
            given = self._given.get(worker.key)
            if given is None:
                continue
            if self._clock() - given.since > given.lease.seconds:
                self._blame(
                    worker,
                    WorkerFault.SILENT,
                    f"no answer about {given.shared.job.named} within {given.lease.seconds} s",
                )
            elif not worker.is_present(self._clock()):
                self._say(worker, f"is gone, and gives {given.shared.job.named} back", "gone", given.shared)
            elif worker.fault is None:
                continue
            self._withdraw(worker.key, given)

    def _give(self, shared: _SharedJob) -> bool:
        """Lease a job to as many drawn keys as it lacks answers; False if for some time nobody can take it.

        Raises:
            OperationalError: nobody ever could.
        """
        if len(self._valid(shared)) >= self._redundancy.copies:
            return True
        able = [worker for worker in self.workers if worker.fault is None and worker.key not in shared.asked]
        there = [worker for worker in able if worker.is_present(self._clock())]
        free = [worker for worker in there if worker.key not in self._given]
        is_waiting = len(free) < len(there)  # for a key that does another job of this verification
        holders = sum(given.shared is shared for given in self._given.values())
        lacking = self._redundancy.copies - len(self._valid(shared)) - holders
        while lacking > 0 and free:
            drawn = free.pop(int.from_bytes(self._entropy(8), "big") % len(free))
            lease = Lease(shared.digest, self._lease)
            if self._queue.grant(drawn.key, lease):  # else it works for another verifier
                self._given[drawn.key] = _Given(lease, shared, self._clock())
                shared.asked.add(drawn.key)
                lacking, holders = lacking - 1, holders + 1
        if holders or is_waiting:
            shared.seen = self._clock()
        elif not able or self._clock() - shared.seen >= self._wait:
            if all(worker.changed is None for worker in self.workers):
                raise OperationalError(
                    f"no admitted worker is there: start `pol worker STORE --key FILE` with the queue {self._queue.url}"
                    ", or use another engine"
                )
            return False
        return True

    def _is_settled(self, shared: _SharedJob) -> bool:
        if shared.own is not None:
            return True
        answers = self._valid(shared)
        return len(answers) >= self._redundancy.copies and shared.is_drawn is False and not needs_referee(answers)

    def _valid(self, shared: _SharedJob) -> dict[bytes, ExaminedSegment]:
        """The answers of keys without a fault."""
        trusted = {worker.key for worker in self.workers if worker.fault is None}
        return {key: answer for key, answer in shared.answers.items() if key in trusted}

    def _withdraw(self, key: bytes, given: _Given) -> None:
        self._queue.end_lease(key, given.lease)
        self._given.pop(key, None)

    def _blame(self, worker: WorkerStanding, fault: WorkerFault, detail: str) -> None:
        if worker.fault is None:
            worker.blame(fault, detail)
            self._say(worker, f"{fault.value}: {detail}", fault.value)

    def _say(self, worker: WorkerStanding, what: str, event: str, shared: _SharedJob | None = None) -> None:
        about = {} if shared is None else facts_of(shared.job)
        self._tell(f"worker {worker.key.hex()[:16]} {what}", {"event": event, "worker": worker.key.hex(), **about})
