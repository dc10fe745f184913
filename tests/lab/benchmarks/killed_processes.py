"""Processes that are killed: SIGKILL before or behind any request to the node, then begun anew without a memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from typing import Any

from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, RPCResponse

from lab.benchmarks.figure import ROOT
from lab.benchmarks.market_processes import party
from pol.chain.deployments.deployment import Deployment
from pol.chain.node.connection import Connection
from pol.errors import OperationalError
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

KINDS: dict[str, tuple[type[Role], Any]] = {
    "solver": (Solver, next_of_solver),
    "verifier": (Verifier, next_of_verifier),
    "whistleblower": (Whistleblower, next_of_whistleblower),
}


@dataclass(frozen=True)
class Life:
    """Who lives where, and how long: until the request with this number, before it is sent or after its answer."""

    kind: str
    name: str
    url: str
    deployment: str
    store_url: str
    request: int
    sent: bool


class MortalProvider(HTTPProvider):
    """Ends its process with SIGKILL at one request."""

    def __init__(self, life: Life) -> None:
        super().__init__(life.url)
        self.life, self.requests = life, 0

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """The answer, if the process outlives it."""
        self.requests += 1
        dies = self.requests == self.life.request
        if dies and not self.life.sent:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = super().make_request(method, params)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


class Nursery:
    """One process that has imported everything and forks: a life begins in milliseconds."""

    def __enter__(self) -> Nursery:
        command = [sys.executable, "-m", __name__]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def lived(self, life: Life) -> bool:
        """Run turns in a process of its own while there is something to do; whether it was killed.

        Raises:
            OperationalError: it ended in another way.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # it is a pipe
        assert stdout is not None
        print(json.dumps(asdict(life)), file=stdin, flush=True)
        code = stdout.readline().strip()
        if code not in {"0", str(-signal.SIGKILL)}:
            raise OperationalError(f"{life.name} ended with code {code or 'none'}")
        return code != "0"


def _fork() -> None:
    """Answer each life on standard input with the code that its process ended with."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _live(Life(**json.loads(line)))
                code = 0
            finally:
                if code:
                    traceback.print_exc()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _live(life: Life) -> None:
    connection = Connection(Web3(MortalProvider(life)), life.url)
    kind, decide = KINDS[life.kind]
    role = party(kind, connection, Deployment.from_json(life.deployment), life.store_url, life.name)
    process = Process(role, decide)
    while any(made.result is DecisionResult.DONE for made in process.turn()):
        pass


if __name__ == "__main__":
    _fork()
