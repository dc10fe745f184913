"""A network of role processes on one chain, with trouble at random: every task is settled, and every wei is there."""

from __future__ import annotations

import signal
import time
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest
from forked_roles import Hatchery, Party

from anvil_node import anvil_node
from lab.benchmarks.market_processes import BROUGHT, Arena, key
from node_snapshots import order
from pol.chain.account.wallet import Wallet
from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.deployment_rules import RULES, GameRules
from pol.chain.desks.task_registry import Status
from pol.chain.desks.vault_ledger import Ledger, held
from pol.chain.node.connection import Connection
from pol.demo import digits
from pol.graph.capture import Capture, capture
from pol.roles.party.policy import TEST_NETWORK
from pol.roles.submitter.submitter import TOLERANT, Offer, Submitter

pytestmark = pytest.mark.long

WINDOW = 180
"""Seconds of the chain for everything that parties have to be heard about."""
PACE = 6
"""Seconds of the chain in one of ours."""
OFFER = Offer(
    steps=20,
    interval=5,
    draws=2,
    margin=TOLERANT,
    rerun_count=2,
    profiled=2,
    looks=2,
    profile_window=WINDOW,
    training_window=4 * WINDOW,
    verification_window=4 * WINDOW,
    challenge_window=WINDOW,
    clock=2 * 600,
    bid_window=WINDOW,
    seat_window=WINDOW,
    watch_window=WINDOW,
    disclosure_window=WINDOW,
)
SMALL = {"submitter": 1, "solver": 2, "verifier": 3, "lying": 1, "whistleblower": 2}
LARGE = {"submitter": 2, "solver": 4, "skipping": 1, "verifier": 7, "lying": 2, "whistleblower": 5, "baseless": 1}


@cache
def captured() -> Capture:
    """The training step of a small classifier of digits."""
    model = digits.DigitClassifier(4)
    order = digits.order(1, OFFER.steps)
    return capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), order)


class Network:
    """Processes of all parties, and what happens to them."""

    def __init__(self, arena: Arena, hatchery: Hatchery, folder: Path, seed: int) -> None:
        self.arena, self.hatchery, self.folder, self.random = arena, hatchery, folder, Random(seed)
        self.happened: Counter[str] = Counter()
        self._alive: dict[str, int] = {}
        self._down: dict[str, float] = {}
        self._stopped: dict[str, float] = {}
        self._parties: dict[str, Party] = {}

    def join(self, kind: str, number: int) -> None:
        name = f"{kind} {number}"
        arena, connection = self.arena, self.arena.connection
        party = Party(kind, name, connection.name, arena.deployment.to_json(), arena.store_url, str(self.folder / name))
        self._parties[name] = party
        role = party.role()
        order(connection, "anvil_setBalance", role.wallet.address, hex(60 * 10**18))
        role.deposit(BROUGHT)
        if kind in ("verifier", "lying", "whistleblower", "baseless"):
            role.market.sortition.enrol(role.wallet, 1)
        self._alive[name] = self.hatchery.begin(party)

    def trouble(self) -> None:
        """Perhaps something goes wrong; whoever is down long enough begins anew."""
        now = time.monotonic()
        for name, until in list(self._down.items()):
            if now >= until:
                del self._down[name]
                self._alive[name] = self.hatchery.begin(self._parties[name])
        for name, until in list(self._stopped.items()):
            if now >= until:
                del self._stopped[name]
                self.hatchery.signal(self._alive[name], signal.SIGCONT)
        draw = self.random.random()
        running = sorted(self._alive.keys() - self._stopped.keys())
        if draw < 0.10 and running:
            name = self.random.choice(running)
            self.hatchery.kill(self._alive.pop(name))
            self._down[name] = now + self.random.uniform(0, 5)
            if self.random.random() < 0.5:
                for path in (self.folder / name).glob("*.sqlite*"):
                    path.unlink()
                self.happened["killed, and its folder deleted"] += 1
            else:
                self.happened["killed"] += 1
        elif draw < 0.13 and running:
            name = self.random.choice(running)
            self.hatchery.signal(self._alive[name], signal.SIGSTOP)
            self._stopped[name] = now + self.random.uniform(1, 8)
            self.happened["hung"] += 1
        elif draw < 0.15:
            order(self.arena.connection, "anvil_dropAllTransactions")
            self.happened["pool dropped"] += 1
        elif draw < 0.17:
            order(self.arena.connection, "anvil_reorg", self.random.choice([1, 2, 5]), [])
            self.happened["reorganised"] += 1

    def pass_time(self) -> None:
        order(self.arena.connection, "evm_increaseTime", PACE - 1)


def network_of(folder: Path, cast: dict[str, int], tasks: int, chain_seconds: int, limit: float, seed: int) -> Network:
    """Let a network live for so long, or until ``limit`` of our seconds; all tasks are closed then."""
    with anvil_node() as url, Hatchery() as hatchery:
        arena = Arena(Connection.to(url), folder / "store", GameRules(RULES.bits, 60, 30))
        network = Network(arena, hatchery, folder, seed)
        for kind, count in cast.items():
            for number in range(count):
                network.join(kind, number)
        order(arena.connection, "evm_setAutomine", False)
        order(arena.connection, "evm_setIntervalMining", 1)
        submitter = Submitter(arena.connection, arena.deployment, key("submitter 0"), arena.store_url, TEST_NETWORK)
        registry = submitter.market.registry
        began, deadline = arena.connection.now(), time.monotonic() + limit
        submitted: list[bytes] = []
        while time.monotonic() < deadline:
            time.sleep(1)
            network.pass_time()
            network.trouble()
            elapsed = arena.connection.now() - began
            if len(submitted) < tasks and elapsed > len(submitted) * chain_seconds / (2 * tasks):
                submitted.append(submitter.submit(captured(), OFFER))
            closed = [registry.task(task_id).status is Status.CLOSED for task_id in submitted]
            if elapsed > chain_seconds and all(closed) and len(closed) == tasks:
                break
        statuses = [registry.task(task_id).status.name for task_id in submitted]
        assert statuses == ["CLOSED"] * tasks, (statuses, network.happened)
        check(arena, cast)
        print(network.happened, Counter(registry.task(task_id).outcome.name for task_id in submitted))
        return network


def check(arena: Arena, cast: dict[str, int]) -> None:
    """Every wei is there, everybody got what the table says, and nobody honest was slashed for a lie."""
    market = arena.deployment.market(arena.connection)
    ledger = Ledger.of(market.vault)
    assert (ledger.owed, ledger.overdrawn) == (held(market.vault), [])
    findings = list(Auditor(market, arena.deployment.treasury).findings())
    assert [finding for finding in findings if not finding.holds] == []
    honest = {Wallet.create(arena.connection, key(f"verifier {n}")).address for n in range(cast["verifier"])}
    for event in market.challenges.events("DisputeSettled"):
        posted = market.verdicts.events("VerdictPosted", taskId=event["taskId"], seating=event["seating"])
        assert event["asserterWon"] or posted[-1]["verifier"] not in honest, event


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_small_network(tmp_path: Path) -> None:
    network = network_of(tmp_path, SMALL, tasks=1, chain_seconds=600, limit=600, seed=1)
    assert network.happened


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_twenty_processes_for_an_hour_of_the_chain(tmp_path: Path) -> None:
    assert sum(LARGE.values()) >= 20
    network = network_of(tmp_path, LARGE, tasks=6, chain_seconds=3600, limit=6000, seed=2)
    assert network.happened["killed"] > 5
    assert network.happened["reorganised"] > 0
