"""The processes of a market on this machine: started in sessions of their own, watched, and ended by their ids."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pol.commitments import canonical_json
from pol.errors import PolError

END_SECONDS = 20.0
"""For a process to end after SIGTERM; then it is killed."""


@dataclass
class _Started:
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]
    ends: list[float] = field(default_factory=list)
    """Times at which it has ended unasked."""


class MarketProcesses:
    """Processes by name. Their ids are in a file, so that those of a killed `pol up` are ended by the next one."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._started: dict[str, _Started] = {}

    def end_orphans(self) -> int:
        """End what an earlier `pol up` of this folder has left running; their number."""
        orphans = {pid: began for pid, began in self._recorded().items() if _began(pid) == began}
        self._signal(orphans, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while any(_began(pid) == began for pid, began in orphans.items()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self._signal(orphans, signal.SIGKILL)
        return len(orphans)

    def _recorded(self) -> dict[int, int]:
        """When each process of the record began, by its id."""
        with suppress(OSError, PolError, TypeError, ValueError, AttributeError):
            if self._record.stat().st_uid == os.geteuid():  # else it's somebody else's list of what to end
                known = canonical_json.parse(self._record.read_bytes(), str(self._record))
                return {int(pid): int(began) for pid, began in known.values() if began is not None}
        return {}

    @staticmethod
    def _signal(orphans: Mapping[int, int], number: signal.Signals) -> None:
        for pid, began in orphans.items():
            # While others took their time to end, its id may have become another process's.
            if _began(pid) == began:
                with suppress(OSError):
                    os.kill(pid, number)

    def start(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        """Start a process; its output goes to the end of a file. A terminal's ^C doesn't reach it."""
        given = dict(environment or {})
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # The settings of whoever starts the market aren't those of its parties.
                env={**{k: v for k, v in os.environ.items() if not k.startswith("POL_")}, **given},
                cwd=self._record.parent,
                start_new_session=True,
            )
        before = self._started.get(name)
        ends = before.ends if before is not None else []
        self._started[name] = _Started(command, log, given, process, ends)
        self._keep()

    def is_alive(self, name: str) -> bool:
        """Whether a process runs."""
        return self._started[name].process.poll() is None

    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {name: each.process.pid for name, each in self._started.items()}

    def ended(self) -> list[str]:
        """Names of the processes that have ended unasked."""
        return [name for name in self._started if not self.is_alive(name)]

    def restart(self, name: str, most: int, seconds: float) -> bool:
        """Start an ended process again; False if it has ended ``most`` times in ``seconds``, and stays down."""
        each, now = self._started[name], time.monotonic()
        each.ends[:] = [*(at for at in each.ends if now - at < seconds), now]
        if len(each.ends) >= most:
            del self._started[name]
            return False
        self.start(name, each.command, each.log, each.environment)
        return True

    def end(self) -> None:
        """End all: first those that speak to the node, which was started first, and then the node."""
        node, *others = self._started.values() if self._started else (None,)
        for group in (others, [node] if node is not None else []):
            for each in group:
                if each.process.poll() is None:
                    each.process.terminate()
            for each in group:
                try:
                    each.process.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    each.process.kill()
                    each.process.wait()
        self._started.clear()
        self._keep()

    def _keep(self) -> None:
        known = {name: [each.process.pid, _began(each.process.pid)] for name, each in self._started.items()}
        draft = self._record.with_suffix(".draft")
        draft.write_text(json.dumps(known))
        os.replace(draft, self._record)


def _began(pid: int) -> int | None:
    """When a process began, in ticks since the machine did; None if there is none. Ids are used again."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if told[0] == "Z" else int(told[19])
