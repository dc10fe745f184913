"""Replay jobs as documents: names, digests and roots, no code (docs/spec/replay_jobs.md#job)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pol.claims.acceptance_rule import THRESHOLD_BITS
from pol.claims.segment_claim import Three
from pol.commitments import canonical_json
from pol.commitments.canonical_json import Fields
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.task.learning_proof import TaskCheckpoint
from pol.verification.engines.engine import ReplayJob
from pol.verification.verdict.second_look import MAX_LOOKS

KIND, VERSION = "pol/replay-job", 1
NONCE, KEY = 32, 32
MEMBERS = ("nonce", "recipient", "task", "segments", "start", "end", "thresholds", "looks", "sketched", "memory")
LIMIT = 1 << 14
"""Bytes that a job has at most."""


@dataclass(frozen=True)
class PostedJob:
    """A job as others receive it. It names no store: who replays it has chosen one.

    ``nonce`` is fresh, so that the result of an older job fits no newer one. ``recipient`` is the X25519 key that
    results are sealed to, or empty: they are not.
    """

    job: ReplayJob
    nonce: bytes
    recipient: bytes = b""

    @property
    def digest(self) -> str:
        """The name of the job."""
        return keccak256(self.encode()).hex()

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        job = self.job
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "nonce": self.nonce.hex(),
                "recipient": self.recipient.hex(),
                "task": job.task,
                "segments": 2 if job.is_pair else 1,
                "start": _entry_document(job.start),
                "end": _entry_document(job.end),
                "thresholds": [str(threshold) for threshold in job.thresholds],
                "looks": job.looks,
                "sketched": job.sketched.hex(),
                "memory": str(job.memory),
            }
        )

    @classmethod
    def decode(cls, data: bytes, store: str) -> PostedJob:
        """The job in a document, to be done with the tensors in ``store``."""
        fields = Fields.of_document(data, "the replay job", KIND, VERSION, MEMBERS)
        segments = fields.integer("segments", 1, 2)
        start, end = _entry(fields, "start"), _entry(fields, "end")
        if end.index != start.index + segments or end.step <= start.step or start.index % segments:
            raise ProtocolError(f"checkpoints {start.index} and {end.index} aren't the ends of a segment, or of a pair")
        job = ReplayJob(
            store,
            fields.digest("task"),
            start,
            end,
            _thresholds(fields),
            fields.integer("looks", 0, MAX_LOOKS),
            fields.octets("sketched", 0, 32),
            segments == 2,
            fields.decimal("memory", 64),
        )
        return cls(job, fields.hash("nonce"), fields.octets("recipient", 0, KEY))


def _thresholds(fields: Fields) -> Three:
    found = fields.decimals("thresholds", THRESHOLD_BITS)
    if len(found) != 3:
        raise ProtocolError(f"the replay job has {len(found)} thresholds: expected 3")
    return found[0], found[1], found[2]


def _entry_document(entry: TaskCheckpoint) -> dict[str, Any]:
    return {"index": entry.index, "step": entry.step, "state_root": entry.state_root.hex(), "object": entry.object}


def _entry(fields: Fields, name: str) -> TaskCheckpoint:
    entry = fields.member(name, ("index", "step", "state_root", "object"))
    return TaskCheckpoint(
        entry.integer("index"), entry.integer("step"), entry.hash("state_root"), entry.digest("object")
    )
