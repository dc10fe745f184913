"""A market on a node of its own with parties that are processes, up to a verdict that may be challenged; and kills.

A killed process gets SIGKILL before or behind any request to the node, then begins anew without a memory.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, RPCResponse, Wei

from lab.benchmarks.figure import ROOT
from pol.chain.account.wallet import Wallet
from pol.chain.deployment_rules import RULES, MarketRules, Settings
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.demo.cheating_parties import CheatingParty
from pol.errors import OperationalError
from pol.graph.capture import Capture
from pol.incentives.forced_errors import LEAST_RATE
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import Offer, Submitter
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.join_strategy import JoinStrategy
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

R = TypeVar("R", bound=Role)
ETHER = 10**18
MONEY, BROUGHT = 100 * ETHER, 50 * ETHER
TURNS = 100
AT_ANY_PRICE = JoinStrategy(least=-ETHER)
"""The tasks are so small that gas costs more than half of a stake."""


class Arena:
    """A deployment and a store, and whoever joins under a name: a name is a key.

    Args:
        connection: of a test node.
        folder: of the store.
    """

    def __init__(self, connection: Connection, folder: Path) -> None:
        self.connection, self.store_url = connection, f"file://{folder}"
        wallet = Wallet.create(connection, key("deployer"))
        fund(connection, wallet)
        rules = MarketRules(rate=LEAST_RATE)
        self.deployment: Deployment = deploy(wallet, Settings(wallet.address, RULES, rules))
        market = self.deployment.market(connection)
        market.vault.deposit(wallet, BROUGHT)
        market.jackpot.donate(wallet, BROUGHT)

    def join(self, kind: type[R], name: str, seed: int = 0) -> R:
        """A party with money in the vault and a ticket; who joins again is a new process with the same key."""
        role = party(
            kind, Connection(self.connection.web3, self.connection.name), self.deployment, self.store_url, name, seed
        )
        if not role.wallet.balance():
            fund(role.connection, role.wallet)
            role.deposit(BROUGHT)
            if isinstance(role, Verifier | Whistleblower):
                role.market.sortition.enrol(role.wallet, 1)
                role.connection.wait_until(role.connection.now())
        return role

    def challengeable(self, captured: Capture, offer: Offer, verifier: Verifier) -> bytes:
        """A task whose verdict, by this verifier, can be challenged now."""
        submitter, solver = self.join(Submitter, "submitter"), self.join(Solver, "solver")
        task_id = submitter.submit(captured, offer)
        parties: list[Process[Any]] = [
            Process(submitter, next_of_submitter),
            Process(solver, next_of_solver),
            Process(verifier, next_of_verifier),
        ]
        registry = submitter.market.registry
        live(self.connection, parties, lambda: registry.task(task_id).status is Status.CONTESTED)
        return task_id


def party(kind: type[R], connection: Connection, deployment: Deployment, store_url: str, name: str, seed: int = 0) -> R:
    """A party of an arena, anew from its key; ``seed`` is what a hostile one draws from."""
    if issubclass(kind, CheatingParty):
        return kind(connection, deployment, key(name), store_url, random.Random(seed))
    role = kind(connection, deployment, key(name), store_url)
    if isinstance(role, Whistleblower):
        role.strategy = AT_ANY_PRICE
    return role


def key(name: str) -> bytes:
    """The private key of a name."""
    return keccak256(f"pol arena {name}".encode())


def fund(connection: Connection, wallet: Wallet) -> None:
    """Money from an account that the test node unlocks."""
    web3 = connection.web3
    sent = {"from": web3.eth.accounts[0], "to": wallet.address, "value": Wei(MONEY)}
    web3.eth.wait_for_transaction_receipt(web3.eth.send_transaction(sent))  # type: ignore[arg-type]  # a TxParams


def live(connection: Connection, processes: Sequence[Process[Any]], over: Callable[[], bool]) -> list[LoggedDecision]:
    """Turns until it is over; if all wait, time passes.

    Raises:
        OperationalError: it never is.
    """
    told = list[LoggedDecision]()
    for _ in range(TURNS):
        if over():
            return told
        taken = [made for process in processes for made in process.turn()]
        told += taken
        if all(made.result is not DecisionResult.DONE for made in taken):
            untils = [made.until for made in taken if made.until is not None]
            if untils:
                connection.wait_until(min(untils))
    last = [f"{made.verb}: {made.why} ({made.result}) {made.detail}" for made in told[-12:]]
    raise OperationalError(f"not over after {TURNS} turns; at the end {last}")


def connect(url: str) -> Connection:
    """A connection to a local node."""
    return Connection(Web3(Web3.HTTPProvider(url)), url)


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
