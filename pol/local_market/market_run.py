"""A market on this machine while it runs: its parties as processes, restarted when they end, and their decisions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pol.chain.node.connection import Connection
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.local_market.local_node import NODE, let_time_pass
from pol.local_market.market_folder import MarketFolder
from pol.local_market.market_processes import MarketProcesses
from pol.local_market.market_setup import MEMBERS

EXPLORER = "explorer"
POLL = "0.7"
"""Seconds between two looks of a party at the chain, whose blocks come every second."""
KEY = "POL_PARTY_KEY"
AT_ANY_PRICE = str(-(10**18))
"""Least profit of the whistleblower: stakes are worthless here, so that gas would cost more than any reward."""
FRUGAL = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
"""Threads of libraries that spin while they wait would take the cores from the other processes."""
MOST_ENDS, WITHIN = 5, 60.0
"""A process that has ended so often within so many seconds stays down."""
PARTY, LIAR = "pol.cli.main", "pol.cli.local_market.lying_party"
"""Modules that run a party with the options of `pol run`."""


class MarketRun:
    """The processes of a folder that is locked and set up.

    ``liar`` is the name of a party that lies; None if all are honest.
    """

    def __init__(self, folder: MarketFolder, processes: MarketProcesses, liar: str | None = None) -> None:
        self.folder, self.processes, self.liar = folder, processes, liar
        self._read: dict[str, int] = {}

    def start(self, connection: Connection) -> None:
        """Start the clock, all parties and the explorer."""
        let_time_pass(connection)
        folder, url = self.folder, connection.name
        place = ["--deployment", str(folder.deployment), "--rpc", url, "--store", str(folder.store)]
        for name, member in MEMBERS.items():
            log = self._log(name)
            self._read[name] = log.stat().st_size if log.exists() else 0
            command = [sys.executable, "-P", "-m", LIAR if name == self.liar else PARTY, "run", member.role, *place]
            command += [
                "--key-env",
                KEY,
                "--data",
                str(folder.parties / name),
                "--poll",
                POLL,
                "--test-terms",
                "--json",
            ]
            if member.role == "whistleblower":
                command += ["--least-pay", AT_ANY_PRICE]
            self.processes.start(name, command, log, {**FRUGAL, KEY: folder.key(name).hex()})
        command = [sys.executable, "-P", "-m", PARTY, "explore", *place, "--test-terms", "--poll", "1", "--json"]
        log = self._log(EXPLORER)
        self._read[EXPLORER] = log.stat().st_size if log.exists() else 0
        self.processes.start(EXPLORER, command, log, FRUGAL)

    @property
    def page(self) -> str:
        """Address of the explorer, which says it; empty before."""
        said = [line for line in self._new(EXPLORER).splitlines() if line.startswith(b'{"url": ')]
        return str(canonical_json.parse(said[-1], "the explorer's line")["url"]) if said else ""

    def started(self) -> set[str]:
        """Names of the processes that have said that they run."""
        explorer = {EXPLORER} if self.page else set[str]()
        return explorer | {name for name in MEMBERS if b'"event": "start"' in self._new(name)}

    def _new(self, name: str) -> bytes:
        with self._log(name).open("rb") as file:
            file.seek(self._read[name])
            return file.read()

    def decisions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What parties have done and what has failed since the last call: the party's name, and its line."""
        for name in MEMBERS:
            lines = self._new(name)
            whole = lines[: lines.rfind(b"\n") + 1]
            self._read[name] += len(whole)
            for line in whole.splitlines():
                with suppress(ProtocolError):
                    told = canonical_json.parse(line, "a party's line")
                    if isinstance(told, dict):
                        yield name, told

    def revive(self) -> Iterator[str]:
        """Start again what has ended unasked; a sentence for each.

        Raises:
            OperationalError: the node has ended, or a process ends again and again.
        """
        for name in self.processes.ended():
            log = self._log(name)
            if name == NODE:
                raise OperationalError(f"the node has ended: see {log}; run `pol up` again, it goes on from there")
            if not self.processes.restart(name, MOST_ENDS, WITHIN):
                yield f"the {name} has ended {MOST_ENDS} times within {WITHIN:.0f} s and stays down: see {log}"
            else:
                yield f"the {name} had ended; it runs again with the same key, and goes on where the chain stands"

    def _log(self, name: str) -> Path:
        return self.folder.logs / f"{name}.log"
