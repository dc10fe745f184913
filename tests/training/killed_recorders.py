"""Recorders that are killed (-9) at drawn moments, and one that meets a full disk. Run as a program: it forks.

Usage: killed_recorders.py FOLDER KILLS SEED; prints a JSON object.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from failing_stores import FailingOs, Failure, require_whole, train

from pol.training import Checkpoints
from pol.training.storage import atomic_files
from pol.training.storage.store import Store

STEPS = 8
ENOUGH = 4
"""Kills that must have left temporary files behind: else nothing was interrupted."""


def forked(job: Callable[[], None]) -> int:
    """A child that does a job; its process id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        job()
        code = 0
    except BaseException:  # noqa: BLE001  # the child ends here, whatever it was
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


class KillingOs(FailingOs):
    """The module `os` as `pol.training.storage.atomic_files` sees it; a call with a chosen number is the last one."""

    def __init__(self, number: int):
        super().__init__(Failure())
        self.number = number

    def __getattr__(self, name: str) -> Any:
        call = super().__getattr__(name)
        if name not in self.CALLS:
            return call

        def counted(*arguments: Any) -> Any:
            if self.failure.calls == self.number:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)

        return counted


def killed(url: str, draw: random.Random, number: int) -> bool:
    """Start a recorder, kill it; False if it had ended before."""
    checkpoints = Checkpoints(background=bool(number % 2), updates=bool(number // 2 % 2))
    at_call = draw.random() < 0.7
    call = draw.randrange(1, 40)

    def record() -> None:
        if at_call:
            atomic_files.os = KillingOs(call)  # type: ignore[assignment]  # it stands for the module
        train(url, STEPS, checkpoints)

    child = forked(record)
    if not at_call:
        time.sleep(draw.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def require(url: str) -> int:
    """Look at what is published in a child of its own; the number of checkpoints."""
    read, write = os.pipe()

    def look() -> None:
        record = require_whole(Store(url))
        os.write(write, str(0 if record is None else len(record.checkpoints)).encode())

    _, status = os.waitpid(forked(look), 0)
    os.close(write)
    found = os.read(read, 100)
    os.close(read)
    if status:
        raise SystemExit("what is published isn't whole")
    return int(found)


def kill_many(folder: Path, kills: int, seed: int) -> dict[str, int]:
    draw = random.Random(seed)
    count = left = runs = temporary = 0
    url = ""
    before = 0
    # When a process is killed by the clock, how far it has come differs: some more, until enough have left something.
    while count < kills or (temporary < ENOUGH and count < 20 * kills):
        if not url or before == STEPS // 2 + 1:
            runs, before = runs + 1, 0
            url = f"file://{folder}/{runs}"
        count += killed(url, draw, runs)
        names = [p for p in folder.rglob(".*") if p.is_file()]
        temporary, left = temporary + bool(names), len(names)
        now = require(url)
        if now < before:
            raise SystemExit(f"{before} checkpoints were published, {now} are left")
        before = now
    # The last run goes on to the end, and nothing is left of those that were killed.
    train(url, STEPS)
    if [p for p in Path(url.removeprefix("file://")).rglob(".*") if p.is_file()]:
        raise SystemExit(f"temporary files are left: {left}")
    record = require_whole(Store(url))
    assert record is not None
    whole, _ = train(f"file://{folder}/whole", STEPS)
    if record.checkpoints[-1].root != whole.checkpoints[-1].root:
        raise SystemExit("the training that was killed ends with another root")
    return {"kills": count, "runs": runs, "with_temporary_files": temporary, "checkpoints": len(record.checkpoints)}


def fill_disk(folder: Path) -> dict[str, int]:
    """A limit on the size of files that each write may meet: it raises as a full disk does."""
    met = 0
    for limit in range(0, 4000, 800):
        url = f"file://{folder}/full-{limit}"

        def record(url: str = url, limit: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            _, errors = train(url, 4)
            os._exit(10 + errors)

        _, status = os.waitpid(forked(record), 0)
        errors = os.waitstatus_to_exitcode(status) - 10
        if errors < 0:
            raise SystemExit("an error other than OperationalError came out")
        met += errors
        require(url)
        train(url, 6)
        require(url)
    return {"errors": met}


if __name__ == "__main__":
    torch.set_num_threads(1)
    train("memory://warm", STEPS)  # what torch imports at its first step, no child has to
    place = Path(sys.argv[1])
    print(json.dumps({"killed": kill_many(place, int(sys.argv[2]), int(sys.argv[3])), "full": fill_disk(place)}))
