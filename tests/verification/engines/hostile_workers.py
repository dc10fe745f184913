"""Workers in processes of their own: ``python hostile_workers.py KIND STORE KEY``, honest or with one kind of lie."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pol.claims.segment_claim import SegmentClaim
from pol.training.storage.key_file import load_signing_key
from pol.training.storage.store import Store
from pol.verification.engines.engine import ExaminedSegment, ReplayJob
from pol.verification.engines.replay_queue import Lease, ReplayQueue
from pol.verification.engines.replay_worker import ReplayWorker
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, decide


class Lazy(ReplayWorker):
    """Accepts everything without a replay; two of them say the same."""

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        ends = job.start.state_root, job.end.state_root
        claim = SegmentClaim(job.segment, *ends, ends[1], (0, 0, 0), (1, 1, 1))
        return ExaminedSegment(decide(claim, job.thresholds), {"loss": (0.5,) * 3})


class Accuser(ReplayWorker):
    """Says that the solver's evidence is bad."""

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        return ExaminedSegment(Verdict(job.segment, Outcome.REJECTED, (Reason.BAD_EVIDENCE,), "so I say"))


class Blind(ReplayWorker):
    """Says that it can't read anything."""

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        return ExaminedSegment(Verdict(job.segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), "no disk"))


class Silent(ReplayWorker):
    """Takes a job, shows signs of life, and never answers."""

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        time.sleep(600)
        raise AssertionError("killed before")


class Dying(ReplayWorker):
    """Ends in the middle of a job, as if killed."""

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        os._exit(9)


class Forger(ReplayWorker):
    """Signs with a key that isn't the one that it works under."""

    def _answer(self, lease: Lease) -> None:
        self._key = Ed25519PrivateKey.generate()
        super()._answer(lease)


class Repeater(ReplayWorker):
    """Does the job of another segment than it was given, and answers with that."""

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        found = super().replay(job)
        assert found.verdict.claim is not None
        other = replace(found.verdict.claim, start=found.verdict.claim.end)
        return replace(found, verdict=replace(found.verdict, claim=other))


KINDS: dict[str, type[ReplayWorker]] = {
    "honest": ReplayWorker, "lazy": Lazy, "accuser": Accuser, "blind": Blind, "silent": Silent, "dying": Dying,
    "forger": Forger, "repeater": Repeater,
}  # fmt: skip

if __name__ == "__main__":
    kind, url, key = sys.argv[1:]
    queue = ReplayQueue(Store(url))
    KINDS[kind](queue, url, load_signing_key(Path(key)), threads=1, every=1.0, poll=0.05).serve()
