"""A worker that takes replay jobs from a queue and answers with signed results (docs/spec/replay_jobs.md#worker)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pol.errors import OperationalError, ProtocolError
from pol.execution.available_memory import available_memory
from pol.execution.device.open_device import CPU, require_device_name
from pol.training.record.signed_heads import public_bytes
from pol.verification.engines.engine import ExaminedSegment, ReplayJob, forget_task, replay_segment, require_device
from pol.verification.engines.replay_queue import Beat, Lease, ReplayQueue
from pol.verification.engines.replay_result_document import encode_result
from pol.verification.engines.signed_result import sign_result
from pol.verification.verdict.verdict import Outcome, Reason, Verdict

Tell = Callable[[str, dict[str, Any]], None]
"""``tell(sentence, facts)``: what happened, for people and for programs."""
BEAT_SECONDS = 10.0
POLL_SECONDS = 1.0


def replay_posted(queue: ReplayQueue, store: str, digest: str, threads: int = 0, device: str = CPU) -> ExaminedSegment:
    """Do one job of a queue with the tensors in ``store``, and leave the result there unsigned: inside of a cluster.

    Raises:
        OperationalError: the queue failed, or the device can't be used.
    """
    require_device(require_device_name(device))
    result = _replayed(queue.job(digest, store).job, threads, device)
    queue.answer(digest, b"", encode_result(digest, result))
    return result


class ReplayWorker:
    """Does the jobs that verifiers lease to its key. The tensors come from ``store``, whatever a job says.

    ``every`` is the time between signs of life, ``poll`` that between looks at the queue, in seconds.

    Raises ProtocolError for a device that there isn't.
    """

    def __init__(
        self,
        queue: ReplayQueue,
        store: str,
        key: Ed25519PrivateKey,
        threads: int = 0,
        device: str = CPU,
        every: float = BEAT_SECONDS,
        poll: float = POLL_SECONDS,
        tell: Tell = lambda sentence, facts: None,
    ):
        self._queue, self._store, self._key = queue, store, key
        self._public = public_bytes(key)
        self._threads, self._device = threads, require_device_name(device)
        self._every, self._poll, self._tell = every, poll, tell

    def serve(self, jobs: int | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        """Do jobs until so many are answered; without a number until the process is interrupted.

        A queue that fails is tried again.

        Raises:
            OperationalError: the device can't be used.
        """
        require_device(self._device)
        answered = 0
        with self._beating():
            try:
                while jobs is None or answered < jobs:
                    try:
                        done = self._next()
                    except (ProtocolError, OperationalError) as error:
                        self._tell(f"trying again: {error}", {"event": "failed", "error": str(error)})
                        done = False
                    answered += done
                    if not done:
                        sleep(self._poll)
            finally:
                self._give_back()
                forget_task()

    def _give_back(self) -> None:
        """End the lease of a worker that ends, wherever it was interrupted: the job goes to another one at once."""
        with suppress(ProtocolError, OperationalError):  # then it runs out
            lease = self._queue.lease(self._public)
            if lease is not None:
                self._queue.end_lease(self._public, lease)

    def _next(self) -> bool:
        """Do the job of the lease, if there is one; whether one was answered."""
        try:
            lease = self._queue.lease(self._public)
        except ProtocolError:
            self._queue.clear(self._public)  # no verifier would ever get rid of it
            raise
        if lease is None:
            return False
        try:
            self._answer(lease)
        except ProtocolError as error:  # of the job: nothing that can be done
            self._tell(f"refused job {lease.job}: {error}", {"event": "refused", "job": lease.job, "error": str(error)})
            return False
        finally:
            self._queue.end_lease(self._public, lease)
        return True

    def _answer(self, lease: Lease) -> None:
        begun, posted = time.monotonic(), self._queue.job(lease.job, self._store)
        result = self.replay(posted.job)
        payload = encode_result(lease.job, result)
        self._queue.answer(lease.job, self._public, sign_result(payload, self._key, posted.recipient))
        outcome, seconds = result.verdict.outcome.name.lower(), time.monotonic() - begun
        self._tell(
            f"{posted.job.named} of task {posted.job.task[:8]}: {outcome}, {seconds:.1f} s",
            {
                "event": "answered",
                "job": lease.job,
                "task": posted.job.task,
                **facts_of(posted.job),
                "outcome": outcome,
                "seconds": round(seconds, 3),
            },
        )

    def replay(self, job: ReplayJob) -> ExaminedSegment:
        """The result of a job; what a dishonest worker overrides."""
        return _replayed(job, self._threads, self._device)

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """Signs of life in another thread, also during a replay."""
        ended = threading.Event()

        def beat() -> None:
            number = 0
            while True:
                with suppress(OperationalError):  # the next one may pass
                    self._queue.beat(self._public, Beat(number, max(1, round(1000 * self._every))))
                number += 1
                if ended.wait(self._every):
                    return

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def facts_of(job: ReplayJob) -> dict[str, Any]:
    """What a job is about, for programs."""
    return {"segment": job.segment, "is_pair": job.is_pair}


def _replayed(job: ReplayJob, threads: int, device: str) -> ExaminedSegment:
    free = available_memory()
    if free is not None and job.memory > free:
        detail = f"the replay takes about {job.memory} bytes of memory, {free} are free"
        return ExaminedSegment(Verdict(job.segment, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), detail))
    return replay_segment(job, threads, device)
