"""Kinds of trouble, for a solver, a verifier and a whistleblower each: none of them loses what is its own.

The party's node, its disk, its clock or its rivals misbehave. Transactions that are dropped, replaced, too cheap or
stuck are the outbox's trouble: tests/chain/test_outbox.py.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from all_parties import Solver, Submitter, Verifier, Whistleblower, next_of_submitter, next_of_verifier
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from anvil_node import anvil_node
from lab.benchmarks.market_processes import KINDS, Arena, key, live, party
from lab.benchmarks.role_drills import OFFER, again, small
from misbehaving_nodes import Gateway, Manner, Pass, gateway, honest
from node_snapshots import order, unchanged
from pol.chain.account.gas_fees import InclusionPolicy
from pol.chain.account.outbox_journal import OutboxJournal
from pol.chain.account.wallet import Wallet
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.demo.cheating_parties import BaselessWhistleblower, LyingVerifier
from pol.dispute.position import Side
from pol.roles.party.role import Role
from pol.roles.process.decision_log import DecisionLog
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.process.process_loop import ProcessLoop
from pol.training.storage.party_database import PartyDatabase

pytestmark = pytest.mark.long

TURNS = 150
SLOW = [pytest.mark.slow, pytest.mark.timeout(1200)]
ROLES = [pytest.param("solver", marks=SLOW), pytest.param("verifier", marks=SLOW), "whistleblower"]
ENOUGH_BLOCKS = 40
"""No reorganisation of a test goes behind where the test begins."""


@dataclass
class Scene:
    """A party that has something to win or to lose, its rivals, and how one sees that it has lost nothing."""

    place: Arena
    kind: str
    task_id: bytes
    rivals: Callable[[], bool]
    """Let the others move; whether they did anything."""
    over: Callable[[], bool]
    check: Callable[[], None]
    told: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.place.connection.name

    def nonce(self) -> int:
        """Transactions of the party so far."""
        return self.place.connection.web3.eth.get_transaction_count(Account.from_key(key(self.kind)).address)

    def join(self, *urls: str, quorum: int = 1) -> ProcessLoop:
        """The party at work, through these nodes."""
        connection = Connection.to(*(urls or (self.url,)), quorum=quorum)
        kind, decide = KINDS[self.kind]
        role = party(kind, connection, self.place.deployment, self.place.store_url, self.kind)
        # Blocks come with transactions only: none is ever deep, and no reorganization takes one away.
        role.wallet.patience = InclusionPolicy(blocks=3, seconds=2, timeout=10, depth=1)
        role.wallet.keep(role.wallet.journal, self.told.append)
        return ProcessLoop(Process(role, decide), 0, self.told.append, lambda seconds: False)

    def play(self, *parties: ProcessLoop, between: Callable[[int], object] = lambda turn: None) -> None:
        """Turns of all until it is over."""
        for turn in range(TURNS):
            if self.over():
                self.check()
                return
            between(turn)
            noted: list[Any] = []
            for running in parties:
                running.process._note = noted.append  # whatever is decided is looked at below
                running.turn()
            moved = self.rivals()
            if not moved and all(made.result is not DecisionResult.DONE for made in noted):
                untils = [made.until for made in noted if made.until is not None]
                if untils:
                    self.place.connection.wait_until(min(untils))
        raise AssertionError(f"not over after {TURNS} turns: {self.told[-5:]} {noted}")


# --- what there is to lose --------------------------------------------------------------------------------------------


def lied(place: Arena) -> bytes:
    """A verdict that is a lie."""
    place.join(Whistleblower, "whistleblower")
    return place.challengeable(small(), OFFER, place.join(LyingVerifier, "liar", 7))


def attacked(place: Arena, task_id: bytes) -> Scene:
    """A lying verdict that the whistleblower has to fell."""
    liar, seen = again(place.join(LyingVerifier, "liar", 7), task_id), place.join(Whistleblower, "whistleblower")
    market, seating = liar.market, liar.market.registry.task(task_id).seating
    stake, before = market.registry.terms(task_id).verifier_stake, market.vault.free(seen.wallet.address)

    def check() -> None:
        assert market.vault.free(seen.wallet.address) - before == stake // 2
        assert len(market.challenges.events("Challenged", taskId=task_id, seating=seating)) == 1

    def over() -> bool:
        return market.registry.task(task_id).status is not Status.CONTESTED

    return Scene(place, "whistleblower", task_id, lambda: turned(Process(liar, next_of_verifier)), over, check)


def verified(place: Arena) -> bytes:
    """A verdict that is honest, and challenged."""
    task_id = place.challengeable(small(), OFFER, place.join(Verifier, "verifier"))
    baseless = place.join(BaselessWhistleblower, "baseless", 11)
    (finding,) = baseless.check(task_id)
    baseless.challenge(task_id, finding)
    return task_id


def defended(place: Arena, task_id: bytes) -> Scene:
    """An honest verdict that is challenged without any ground."""
    verifier = place.join(Verifier, "verifier")
    baseless = place.join(BaselessWhistleblower, "baseless", 11)
    baseless.check(task_id)  # It draws as it did when it challenged, so its lie is the same.
    (number,) = baseless.market.challenges.disputes(task_id)
    market, attack = baseless.market, baseless.session(task_id, number)

    def moves() -> bool:
        with suppress(AssertionError):
            return attack.is_on_turn() and attack.advance() is not None
        return False

    def check() -> None:
        assert market.game.winner(number) is Side.ASSERTER
        assert market.registry.task(task_id).holder == verifier.wallet.address

    return Scene(place, "verifier", task_id, moves, lambda: market.game.winner(number) is not Side.NONE, check)


def profiled(place: Arena) -> bytes:
    """A task that solvers may bid for."""
    submitter, verifier = place.join(Submitter, "submitter"), place.join(Verifier, "verifier")
    place.join(Solver, "solver")
    task_id, registry = submitter.submit(small(), OFFER), submitter.market.registry
    parties: list[Process[Any]] = [Process(submitter, next_of_submitter), Process(verifier, next_of_verifier)]
    live(place.connection, parties, lambda: registry.task(task_id).status is Status.BIDDING)
    return task_id


def trained(place: Arena, task_id: bytes) -> Scene:
    """A task that the solver bids for, wins, and has to train in time."""
    submitter, solver = place.join(Submitter, "submitter"), place.join(Solver, "solver").wallet.address
    registry, process = submitter.market.registry, Process(submitter, next_of_submitter)

    def check() -> None:
        assert registry.task(task_id).solver == solver
        assert len(submitter.market.auction.events("BidPlaced", bidder=solver)) == 1

    def over() -> bool:
        return registry.task(task_id).status not in {Status.BIDDING, Status.TRAINING}

    return Scene(place, "solver", task_id, lambda: turned(process), over, check)


SCENES = {"solver": (profiled, trained), "verifier": (verified, defended), "whistleblower": (lied, attacked)}


def turned(process: Process[Any]) -> bool:
    """Whether a rival did something; what hinders it is its own business."""
    with suppress(AssertionError):
        return any(made.result is DecisionResult.DONE for made in process.turn())
    return False


@dataclass(frozen=True)
class Arranged:
    """A node at the beginning of a role's scene."""

    place: Arena
    kind: str
    task_id: bytes

    def scene(self) -> Scene:
        """The scene, with parties that have seen nothing of others that were played on the node."""
        return SCENES[self.kind][1](self.place, self.task_id)


@contextmanager
def arranged_node(kind: str, folder: Path) -> Iterator[Arranged]:
    with anvil_node() as url:
        place = Arena(Connection.to(url), folder)
        task_id = SCENES[kind][0](place)
        order(place.connection, "anvil_mine", hex(ENOUGH_BLOCKS))
        yield Arranged(place, kind, task_id)


@pytest.fixture(scope="module", params=ROLES)
def arranged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arranged]:
    """The scene of a role, on a node that is put back to its beginning after every test."""
    with arranged_node(request.param, tmp_path_factory.mktemp("store")) as here:
        yield here


@pytest.fixture
def scene(arranged: Arranged) -> Iterator[Scene]:
    connection = arranged.place.connection
    fee = connection.web3.eth.get_block("pending")["baseFeePerGas"]
    with unchanged(connection):
        try:
            yield arranged.scene()
        finally:
            order(connection, "evm_setAutomine", True)
    # Neither what waits in the pool nor the next block's fee is put back with the chain.
    order(connection, "anvil_dropAllTransactions")
    order(connection, "anvil_setNextBlockBaseFeePerGas", hex(fee))


@contextmanager
def behind(scene: Scene, manner: Manner = honest) -> Iterator[Gateway]:
    with gateway(scene.url, manner) as here:
        yield here


def sent(params: Sequence[Any]) -> dict[str, Any]:
    """The fields of a signed transaction."""
    fields: dict[str, Any] = TypedTransaction.from_bytes(HexBytes(params[0])).as_dict()
    return fields


# --- the chain --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "depth", [pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW), 7, pytest.param(32, marks=SLOW)]
)
@pytest.mark.parametrize("kind", ROLES)
def test_reorganisations(kind: str, depth: int, tmp_path: Path) -> None:
    """After each of the first three turns the last blocks are replaced, and the node forgets what was in them.

    A node that has been reorganised can't be put back, so each has its own.
    """
    with arranged_node(kind, tmp_path) as here:
        left, scene = [3], here.scene()

        def reorganise(turn: int) -> None:
            if turn and left[0]:
                left[0] -= 1
                order(scene.place.connection, "anvil_reorg", depth, [])

        scene.play(scene.join(), between=reorganise)
        assert left[0] < 3


# --- the machine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew", [-(10**7), 10**7])
def test_a_clock_that_is_wrong(scene: Scene, monkeypatch: pytest.MonkeyPatch, skew: int) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + skew)
    scene.play(scene.join())


def test_a_disk_that_is_full(scene: Scene, tmp_path: Path) -> None:
    """Journal and decision log can't grow any more after the first turn; the party goes on and says so."""
    running = scene.join()
    role: Role = running.process.role
    database = PartyDatabase(tmp_path)
    role.wallet.keep(
        OutboxJournal.of(role.connection, role.wallet.address, database, scene.told.append), scene.told.append
    )
    log = DecisionLog(database, scene.told.append)

    def fill(turn: int) -> None:
        if turn == 1:
            ((pages,),) = database.rows("PRAGMA page_count")
            database.rows(f"PRAGMA max_page_count={pages}")
        if turn > 1:
            log._last.clear()

    scene.play(running, between=fill)
    database.close()


# --- others -----------------------------------------------------------------------------------------------------------


def test_front_running_of_every_move(scene: Scene) -> None:
    """Somebody sends a copy of every transaction before it, from a key of its own."""
    rival = Wallet.create(scene.place.connection, key("front-runner"))
    order(scene.place.connection, "anvil_setBalance", rival.address, hex(10**21))
    copied = [0]

    def runs_ahead(method: str, params: list[Any], node: Pass) -> Any:
        if method == "eth_sendRawTransaction":
            fields = sent(params)
            copied[0] += 1
            call = {"from": rival.address, "to": HexBytes(fields["to"]).to_0x_hex(), "gas": hex(fields["gas"])}
            order(scene.place.connection, "anvil_impersonateAccount", rival.address)
            with suppress(AssertionError):
                copy = {**call, "data": HexBytes(fields["data"]).to_0x_hex(), "value": hex(fields["value"])}
                order(scene.place.connection, "eth_sendTransaction", copy)
        return node(method, params)

    with behind(scene, runs_ahead) as node:
        scene.play(scene.join(node.url))
    assert copied[0] > 1


def test_two_machines_with_one_key(scene: Scene) -> None:
    """Whoever runs its party twice by mistake loses nothing by it."""
    scene.play(scene.join(), scene.join())
