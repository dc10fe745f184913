"""Jobs, leases, signs of life and results as files of a store (docs/spec/replay_jobs.md#queue).

The verifier alone grants leases, so each file has one writer at a time; creating a lease is exclusive, so that several
verifiers may share workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pol.commitments import canonical_json
from pol.commitments.canonical_json import Fields
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store
from pol.verification.engines import replay_job_document, replay_result_document
from pol.verification.engines.replay_job_document import PostedJob

LEASE, BEAT, VERSION = "pol/replay-lease", "pol/replay-beat", 1
MAX_SECONDS = 7 * 24 * 3600
SMALL = 1 << 10
"""Bytes that a lease or a beat has at most."""


@dataclass(frozen=True)
class Lease:
    """The job that a key has to do, and the seconds after which it is given to another one."""

    job: str
    seconds: int

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode({"kind": LEASE, "version": VERSION, "job": self.job, "seconds": self.seconds})

    @classmethod
    def decode(cls, data: bytes) -> Lease:
        """The lease in a document; ProtocolError if it holds none."""
        fields = Fields.of_document(data, "the lease", LEASE, VERSION, ("job", "seconds"))
        return cls(fields.digest("job"), fields.integer("seconds", 1, MAX_SECONDS))


@dataclass(frozen=True)
class Beat:
    """A worker's sign of life: a number that changes every so many ``milliseconds``."""

    number: int
    milliseconds: int

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {"kind": BEAT, "version": VERSION, "number": self.number, "milliseconds": self.milliseconds}
        )

    @classmethod
    def decode(cls, data: bytes) -> Beat:
        """The beat in a document; ProtocolError if it holds none."""
        fields = Fields.of_document(data, "the sign of life", BEAT, VERSION, ("number", "milliseconds"))
        return cls(fields.integer("number"), fields.integer("milliseconds", 1, 1000 * MAX_SECONDS))


class ReplayQueue:
    """What verifiers and workers have in common. Errors of every method: OperationalError if the store failed."""

    def __init__(self, store: Store):
        self._store = store

    @property
    def url(self) -> str:
        """Where it lies."""
        return self._store.url

    def post(self, job: PostedJob) -> str:
        """Store a job; its digest."""
        return self._store.put(job.encode())

    def job(self, digest: str, store: str) -> PostedJob:
        """A job, to be done with the tensors in ``store``; ProtocolError if the object isn't one."""
        return PostedJob.decode(self._store.get(digest, limit=replay_job_document.LIMIT), store)

    def grant(self, key: bytes, lease: Lease) -> bool:
        """Give a key a lease; False if it has one, maybe of another verifier.

        Raises:
            OperationalError: also for a store that can't create a file only if there is none.
        """
        return self._store.create(_of_key("lease", key), lease.encode())

    def lease(self, key: bytes) -> Lease | None:
        """The lease of a key; ProtocolError if the file holds something else."""
        data = self._read(_of_key("lease", key), SMALL)
        return None if data is None else Lease.decode(data)

    def has_lease(self, key: bytes, lease: Lease) -> bool:
        """Whether a key still has this lease."""
        try:
            return self._read(_of_key("lease", key), SMALL) == lease.encode()
        except ProtocolError:  # something else lies there
            return False

    def end_lease(self, key: bytes, lease: Lease) -> None:
        """Remove a lease that is done or has run out, unless the key has got another one."""
        if self.has_lease(key, lease):
            self._store.remove(_of_key("lease", key))

    def clear(self, key: bytes) -> None:
        """Remove what lies in the place of a key's lease and isn't one."""
        self._store.remove(_of_key("lease", key))

    def beat(self, key: bytes, beat: Beat) -> None:
        """Show that a worker is there."""
        self._store.replace(_of_key("worker", key), beat.encode())

    def last_beat(self, key: bytes) -> Beat | None:
        """The last sign of life of a worker; ProtocolError if the file holds something else."""
        data = self._read(_of_key("worker", key), SMALL)
        return None if data is None else Beat.decode(data)

    def answer(self, job: str, key: bytes, data: bytes) -> None:
        """Publish a result: signed and sealed, or as it is under the empty key."""
        self._store.replace(_result_name(job, key), data)

    def has_answer(self, job: str, key: bytes) -> bool:
        """Whether something lies in the place of a key's result."""
        return self._store.holds(_result_name(job, key))

    def answered(self, job: str, key: bytes) -> bytes | None:
        """What lies in the place of a key's result; ProtocolError if it is too long for one."""
        return self._read(_result_name(job, key), replay_result_document.LIMIT)

    def keep(self, envelope: bytes) -> str:
        """Store a signed result where everybody can read it; its digest."""
        return self._store.put(envelope)

    def _read(self, name: str, limit: int) -> bytes | None:
        if not self._store.holds(name):
            return None
        try:
            return self._store.read(name, limit=limit)
        except OperationalError:
            if self._store.holds(name):
                raise
            return None  # removed in between


def _of_key(what: str, key: bytes) -> str:
    return f"{what}-{key.hex()}.json"


def _result_name(job: str, key: bytes) -> str:
    """Known to all who know the job and the key: nobody has to list files."""
    return f"result-{keccak256(bytes.fromhex(job) + key).hex()}.json" if key else f"result-{job}.json"


MISSED_BEATS = 4
SLOWEST = 60.0
"""Seconds between signs of life that are believed at most."""


class WorkerFault(StrEnum):
    """Why a key gets no more jobs of a verification."""

    LIED = "lied"
    REFUSED = "refused"
    SILENT = "silent"


@dataclass
class WorkerStanding:
    """The standing of one key in one verification.

    ``fault`` is LIED if an answer isn't that of a replay, REFUSED if something else than a result of the job lay in its
    place, SILENT if the worker was there and didn't answer in time.
    """

    key: bytes
    answers: int = 0
    fault: WorkerFault | None = None
    detail: str = ""
    evidence: str = ""
    """Of one that lied: the digest of the signed result, which lies in the queue unsealed."""
    beat: Beat | None = None
    changed: float | None = None
    """The time at which the sign of life was seen to change; None: it never did."""
    was_present: bool = False
    """At the last look."""

    def look(self, beat: Beat | None, now: float) -> bool:
        """Take note of the last sign of life in the queue; whether the worker has come since the look before.

        An old sign may be that of a worker that is long gone.
        """
        if self.beat is not None and beat is not None and beat != self.beat:
            self.changed = now
        self.beat = beat
        was, self.was_present = self.was_present, self.is_present(now)
        return self.was_present and not was

    def is_present(self, now: float) -> bool:
        """Whether there was a new sign of life lately."""
        if self.changed is None or self.beat is None:
            return False
        return now - self.changed <= MISSED_BEATS * min(self.beat.milliseconds / 1000, SLOWEST)

    def blame(self, fault: WorkerFault, detail: str) -> None:
        """The key gets no more jobs, and its answers count no more."""
        self.fault, self.detail = fault, detail
