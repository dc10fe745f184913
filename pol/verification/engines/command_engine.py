"""An engine for clusters that start commands: each segment is one `pol worker --job` under a template's command line.

Slurm, Kubernetes, SkyPilot, ssh (docs/guides/engines.md). Results come back through a store, not through the output of
the command: some of these commands end before the job does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from pol.errors import OperationalError, ProtocolError
from pol.execution.device.open_device import CPU, require_device_name
from pol.training.storage.store import Store
from pol.verification.engines.engine import ATTEMPTS, ExaminedSegment, ReplayJob, lost_segment, require_shared
from pol.verification.engines.job_command import JobCommand
from pol.verification.engines.replay_job_document import NONCE, PostedJob
from pol.verification.engines.replay_queue import ReplayQueue
from pol.verification.engines.replay_result_document import decode_result

LIMIT_SECONDS = 3600.0
POLL_SECONDS = 0.5
GRACE_SECONDS = 5.0
"""Between the request to end and the end."""
SHOWN = 200
"""Characters of a failed command's last line that are told."""


class CommandEngine:
    """Runs ``command`` once for each job, ``parallel`` at a time; the machines that it reaches are trusted.

    ``queue`` holds jobs and results; the store of the tensors by default. A command that ends with 0 has done its job
    or begun it: the result is waited for until ``limit`` seconds after the start. One that ends otherwise, or too late,
    is run again, ``attempts`` times in all. ``threads`` (0: all) and ``device`` are those of the worker.

    Raises ProtocolError for impossible numbers, or a device that there isn't.
    """

    def __init__(
        self,
        command: JobCommand,
        parallel: int = 1,
        attempts: int = ATTEMPTS,
        limit: float = LIMIT_SECONDS,
        queue: Store | None = None,
        threads: int = 0,
        device: str = CPU,
        poll: float = POLL_SECONDS,
        entropy: Callable[[int], bytes] = os.urandom,
    ):
        if parallel < 1 or attempts < 1 or limit <= 0:
            raise ProtocolError("parallel, attempts and limit are at least 1: at zero no job would be done")
        self._command, self._parallel, self._attempts, self._limit = command, parallel, attempts, limit
        self._queue, self._threads, self._device = queue, threads, require_device_name(device)
        self._poll, self._entropy = poll, entropy

    def run(self, jobs: Sequence[ReplayJob]) -> Generator[ExaminedSegment, None, None]:
        """The results, in order of completion. Closing the generator ends the commands that run.

        Raises:
            OperationalError: a store that only this process sees, or that can't be written; there is no such command.
        """
        require_shared(jobs)
        stop = threading.Event()
        with ThreadPoolExecutor(self._parallel) as pool:
            futures = [pool.submit(self._replay, job, stop) for job in jobs]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _replay(self, job: ReplayJob, stop: threading.Event) -> ExaminedSegment:
        store = Store(job.store) if self._queue is None else self._queue
        queue = ReplayQueue(store)
        digest = queue.post(PostedJob(job, self._entropy(NONCE)))
        how = ""
        for attempt in range(1, self._attempts + 1):
            arguments = self._command.arguments(job, store.url, digest, attempt, self._threads, self._device)
            how = self._attempt(arguments, queue, digest, stop)
            try:
                data = queue.answered(digest, b"")
                if data is not None:
                    return decode_result(data, digest, job)
            except ProtocolError as error:  # of a worker, which proves nothing about the solver
                how = str(error)
            if stop.is_set():
                break
        return lost_segment(job, how, self._attempts)

    def _attempt(self, arguments: Sequence[str], queue: ReplayQueue, digest: str, stop: threading.Event) -> str:
        """Run a command until there is a result, it fails, or its time is over; what went wrong otherwise."""
        ends = time.monotonic() + self._limit
        with tempfile.TemporaryFile() as said, _started(arguments, said.fileno()) as process:
            while not stop.wait(self._poll):
                code = process.poll()
                if code is not None and (code != 0 or queue.has_answer(digest, b"")):
                    return f"{arguments[0]} ended with {code}{_last_line(said.fileno())}"
                if time.monotonic() > ends:
                    return f"no result of {arguments[0]} within {self._limit:g} s"
        return "the verification was interrupted"


@contextlib.contextmanager
def _started(arguments: Sequence[str], output: int) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a group of processes of its own, which all end with the block."""
    try:
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    except OSError as error:
        raise OperationalError(f"can't run {arguments[0]}: {error.strerror}; install it, or name its path") from error
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_SECONDS)


def _last_line(output: int) -> str:
    """The last line that a command wrote, for people."""
    size = os.fstat(output).st_size
    lines = os.pread(output, 4096, max(0, size - 4096)).decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:SHOWN]}" if lines else ""
