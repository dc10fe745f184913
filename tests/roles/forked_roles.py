"""Role processes by the dozen: one process that has imported everything forks a child for each line that it reads.

A line is a JSON object: a party that begins (`Party`), or {"signal": NUMBER, "pid": PID}. Answers are process ids.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.benchmarks.market_processes import AT_ANY_PRICE, key
from pol.chain.account.gas_fees import InclusionPolicy
from pol.chain.account.outbox_journal import SqliteJournal
from pol.chain.deployments.deployment import Deployment
from pol.chain.node.connection import Connection
from pol.demo.cheating_parties import BaselessWhistleblower, CheatingParty, LyingVerifier
from pol.demo.cheating_training import SkippingExecutor
from pol.roles.party.decisions import Mode
from pol.roles.party.policy import TEST_NETWORK
from pol.roles.party.role import Role
from pol.roles.process.party_process import Process
from pol.roles.process.process_loop import ProcessLoop
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import Submitter
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_training import StepExecutor


class SkippingSolver(CheatingParty, Solver):
    """Leaves out a tenth of the steps and claims all of them."""

    def executor(self, task: LoadedTask) -> StepExecutor:
        """Stock torch, except for a tenth of the steps."""
        steps = task.document.steps
        skipped = self._random.sample(range(steps), steps // 10)
        return SkippingExecutor(super().executor(task), skipped)


KINDS: dict[str, tuple[type[Role], Any]] = {
    "submitter": (Submitter, next_of_submitter),
    "solver": (Solver, next_of_solver),
    "skipping": (SkippingSolver, next_of_solver),
    "verifier": (Verifier, next_of_verifier),
    "lying": (LyingVerifier, next_of_verifier),
    "whistleblower": (Whistleblower, next_of_whistleblower),
    "baseless": (BaselessWhistleblower, next_of_whistleblower),
}


@dataclass(frozen=True)
class Party:
    """Who begins, and where."""

    kind: str
    name: str
    url: str
    deployment: str
    store_url: str
    folder: str

    def role(self) -> Role:
        """The party, anew from its key."""
        kind, connection, contracts = (
            KINDS[self.kind][0],
            Connection.to(self.url),
            Deployment.from_json(self.deployment),
        )
        if issubclass(kind, CheatingParty):
            return kind(connection, contracts, key(self.name), self.store_url, random.Random(self.name), TEST_NETWORK)
        role = kind(connection, contracts, key(self.name), self.store_url, TEST_NETWORK)
        if isinstance(role, Whistleblower):
            role.strategy = AT_ANY_PRICE
        return role

    def live(self) -> None:
        """Turns until it is killed."""
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log.txt").open("a", buffering=1) as log:

            def tell(message: str) -> None:
                print(message, file=log)

            try:
                role = self.role()
                role.wallet.keep(SqliteJournal.of(role.connection, role.wallet.address, folder, tell), tell)
                role.wallet.patience = InclusionPolicy(blocks=4, seconds=10, timeout=60)
                told: dict[bytes, tuple[str, str]] = {}

                def note(taken: Any) -> None:
                    said = (taken.verb, taken.detail)
                    if told.get(taken.task_id) != said:
                        told[taken.task_id] = said
                        about = f"{taken.at} {taken.task_id.hex()[:8]} {taken.result}"
                        tell(f"{about} {taken.verb}: {taken.why} {taken.detail}")

                process = Process(role, KINDS[self.kind][1], Mode.PROPOSE, note)
                ProcessLoop(process, 1.0, tell, threading.Event().wait).run()
            except BaseException:
                traceback.print_exc(file=log)
                raise


class Hatchery:
    """Begins role processes and sends them signals."""

    def __enter__(self) -> Hatchery:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._alive: set[int] = set()
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._alive):
            self.kill(pid)
        self._process.communicate()

    def begin(self, party: Party) -> int:
        """The id of a new process."""
        pid = self._ask(asdict(party))
        self._alive.add(pid)
        return pid

    def kill(self, pid: int) -> None:
        """SIGKILL, and wait until it is gone."""
        self._alive.discard(pid)
        self._ask({"signal": signal.SIGKILL, "pid": pid})

    def signal(self, pid: int, number: int) -> None:
        """Any other signal."""
        self._ask({"signal": number, "pid": pid})

    def _ask(self, what: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(what), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


def _serve() -> None:
    for line in sys.stdin:
        told = json.loads(line)
        if "signal" in told:
            pid, number = told["pid"], told["signal"]
            os.kill(pid, number)
            if number == signal.SIGKILL:
                os.waitpid(pid, 0)
            print(pid, flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            try:
                os.close(0)
                Party(**told).live()
            finally:
                os._exit(1)
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
