"""A town of parties on a real node, and the way of an honest task through it.

The task is small: two segments of three steps. A party is a key: who joins again under its name is a new process that
has the key, the chain and the store.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from all_parties import Solver, Verifier, Whistleblower

from hostile_players import LyingSums
from node_snapshots import unchanged, until_true
from pol.chain.account.wallet import Wallet
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployment_rules import MARKET_RULES, RULES, BeaconKind, GameRules, MarketRules, Settings
from pol.chain.deployments.deployment import deploy
from pol.chain.desks.challenges import ClaimCharge
from pol.chain.node.connection import Connection
from pol.claims.segment_claim import SegmentClaim
from pol.commitments.keccak import keccak256
from pol.demo import digits
from pol.dispute.play.honest_players import SumPlayer
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.graph.capture import Capture, capture
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE
from pol.roles.party.decisions import Action, Wait
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.public_calls import public_call
from pol.roles.party.role import PublicCall, Role
from pol.roles.process.party_process import DecisionResult, LoggedDecision
from pol.roles.submitter.submitter import TOLERANT, Offer, Submitter
from pol.training.storage.store import Store
from pol.verification.profile.profile_document import Profile
from pol.verification.verdict.verdict import Verdict
from shared_chain import SharedChain
from toy_market import ETHER, Ground, fund

R = TypeVar("R", bound=Role)
STEPS, INTERVAL = 6, 3
OFFER = Offer(STEPS, INTERVAL, draws=1, margin=TOLERANT, rerun_count=2, profiled=2, looks=2)
EXACT = replace(OFFER, margin=0, looks=0, rerun_count=0, profiled=0)
BROUGHT = 50 * ETHER
"""Into the vault, by everybody."""
OFTEN, SELDOM = MarketRules(rate=LARGEST_RATE), MarketRules(rate=LEAST_RATE)
"""How often verifiers have to err."""
WATCHED = ((Verifier, "v"), (Whistleblower, "w"))
"""There are no more tickets than watchers, so that each of them watches."""


@cache
def captured() -> Capture:
    """The task's training step: 1,797 digits, four hidden units."""
    model = digits.DigitClassifier(4)
    return capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1, STEPS))


def deployed(
    connection: Connection,
    rules: GameRules = RULES,
    market_rules: MarketRules = MARKET_RULES,
    beacon_kind: BeaconKind = BeaconKind.BLOCK,
) -> Ground:
    """A market whose fund has money."""
    wallet = Wallet.create(connection, keccak256(b"deployer"))
    fund(connection, wallet.address)
    deployment = deploy(wallet, Settings(wallet.address, rules, market_rules, beacon_kind))
    market = deployment.market(connection)
    market.vault.deposit(wallet, BROUGHT)
    market.jackpot.donate(wallet, BROUGHT)
    return Ground(connection, deployment, market, {})


class Town:
    """A deployment, a store and parties that know nothing else of each other."""

    def __init__(self, folder: Path, ground: Ground) -> None:
        self.ground, self.connection = ground, ground.connection
        self.folder = folder
        self.store_url = f"file://{folder}"
        self.deployment = ground.deployment

    def file(self, digest: str) -> Path:
        """Where the store has an object."""
        return self.folder / digest[:2] / digest

    def join(self, kind: type[R], name: str, policy: Policy = PUBLIC_CHAIN, evidence: Path | None = None) -> R:
        """A party; who is new brings money, and a ticket if it may be drawn for a duty."""
        connection = Connection(self.connection.web3, self.connection.name)
        role = kind(
            connection, self.deployment, keccak256(name.encode()), self.store_url, policy=policy, evidence=evidence
        )
        if not role.wallet.balance():
            fund(connection, role.wallet.address)
            role.deposit(BROUGHT)
            if isinstance(role, Verifier | Whistleblower):
                role.market.sortition.enrol(role.wallet, 1)
                # A ticket counts from the next second on.
                connection.wait_until(connection.now())
        return role


def waits(decision: object) -> str:
    """Why a decision is to wait."""
    assert isinstance(decision, Wait), decision
    return decision.why


def acts(decision: object) -> Action:
    """A decision to act."""
    assert isinstance(decision, Action), decision
    return decision


def open_call(role: Role, task_id: bytes) -> Action:
    """The public call that a task waits for, as this party makes it."""
    found = public_call(role, task_id, role.wallet.address)
    assert isinstance(found, PublicCall), found
    return found.by(role)


def done(taken: Sequence[LoggedDecision]) -> list[str]:
    """The verbs of what was done."""
    return [made.verb for made in taken if made.result is DecisionResult.DONE]


def fought(game: DisputeGame, number: int, *sides: DisputeSession) -> Side:
    """Who wins when each of these sides moves in turn."""
    while game.winner(number) is Side.NONE:
        assert any(side.advance() for side in sides)
    return game.winner(number)


def fill_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party's own folder takes nothing any more."""

    def refuse(*_: object, **__: object) -> str:
        raise OperationalError("No space left on device")

    assert isinstance(store, KeptStore)
    for way in ("put", "copy"):
        monkeypatch.setattr(store._own, way, refuse)


class SumSeer(Whistleblower):
    """Sees a difference in the first leaf of the first slot that isn't there."""

    def player(self, task_id: bytes, claim: SegmentClaim, charge: ClaimCharge) -> SumPlayer:
        honest = super().player(task_id, claim, charge)
        assert isinstance(honest, SumPlayer)
        return SumPlayer(LyingSums(honest.sums, 0, 0, 1))


def gain(role: Role, *, tickets: int = 0) -> int:
    """What a party has free in the vault more than it brought; its ``tickets`` are locked and not lost."""
    bonds = tickets * role.market.sortition.unit()
    return role.market.vault.free(role.wallet.address) + bonds - BROUGHT


def submitted(town: Town, offer: Offer = OFFER) -> tuple[bytes, Submitter]:
    """A task, of the party ``s``."""
    submitter = town.join(Submitter, "s")
    return submitter.submit(captured(), offer), submitter


def seated(verifier: Verifier, task_id: bytes) -> None:
    """The seat of the task is this party's."""
    verifier.claim_seat(task_id)
    assert verifier.take_seat(task_id)


def open_claims(role: Role, task_id: bytes) -> None:
    role.bring(role.market.seats.seating(task_id).round)
    role.market.seats.open_claims(role.wallet, task_id)


def conclude(verifier: Verifier, task_id: bytes) -> None:
    """The posted profile is final."""
    verifier.connection.wait_until(verifier.market.profiles.standing(task_id).deadline)
    verifier.market.profiles.conclude(verifier.wallet, task_id)


def profiled(verifier: Verifier, task_id: bytes) -> Profile:
    """Measure and post the profile of the task; when this returns it is final."""
    seated(verifier, task_id)
    profile = verifier.profile(task_id)
    conclude(verifier, task_id)
    return profile


def awarded(solver: Solver, task_id: bytes) -> None:
    """The solver has bid and is the only one."""
    solver.bid(task_id)
    solver.reveal(task_id)
    solver.market.registry.award(solver.wallet, task_id)


def until_proof(town: Town, offer: Offer = OFFER) -> bytes:
    """A task that ``v`` has profiled and ``t`` has trained."""
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    task_id, _ = submitted(town, offer)
    if offer.margin:
        profiled(verifier, task_id)
    awarded(solver, task_id)
    solver.train(task_id)
    return task_id


def seated_with_duty(verifier: Verifier, task_id: bytes, forced: bool) -> None:
    """The seat is this party's, and the beacon says that its verdict has to be wrong, or that it has not."""
    verifier.claim_seat(task_id)

    def drawn() -> bool:
        return verifier.take_seat(task_id) and verifier.duty(task_id).is_forced(verifier.rate) == forced

    until_true(verifier.connection, drawn)


def disclosed(verifier: Verifier, task_id: bytes) -> bool:
    """The watch passes by and the verifier discloses; whether it had to err."""
    verifier.open_watch(task_id)
    verifier.connection.wait_until(verifier.market.verdicts.verdict(task_id).watch_until)
    return verifier.disclose(task_id)


def stated(verifier: Verifier, task_id: bytes, verdicts: Sequence[Verdict]) -> None:
    """These verdicts are posted and can be challenged."""
    seated(verifier, task_id)
    verifier.post(task_id, verdicts)
    disclosed(verifier, task_id)


def lied(verdict: Verdict, field: str) -> Verdict:
    """The verdict with one sum too large."""
    assert verdict.claim is not None
    first, second, third = getattr(verdict.claim, field)
    return replace(verdict, claim=replace(verdict.claim, **{field: (first, second, third + 1)}))


def only_claim(role: Whistleblower, task_id: bytes) -> SegmentClaim:
    """The claim of the current verdict of a task with one draw."""
    (claim,) = role.market.verdicts.claims(task_id, role.market.registry.task(task_id).seating)
    return claim


def verified(verifier: Verifier, task_id: bytes) -> list[Verdict]:
    """What the verifier finds is posted and can be challenged."""
    seated(verifier, task_id)
    verdicts = verifier.verify(task_id)
    disclosed(verifier, task_id)
    return verdicts


def settle(role: Role, task_id: bytes) -> None:
    """Nobody challenges any more, and the task is closed."""
    role.connection.wait_until(role.market.registry.task(task_id).deadline)
    role.market.settlement.settle(role.wallet, task_id)


@contextmanager
def lent_town(
    chain: SharedChain, folder: Path, rules: GameRules = RULES, market_rules: MarketRules = MARKET_RULES
) -> Iterator[Town]:
    """A town on the node of all tests, with a store of its own; nobody has joined it."""
    with chain.lent((rules, market_rules), lambda connection: deployed(connection, rules, market_rules)) as ground:
        yield Town(folder, ground)


@contextmanager
def restored(town: Town, copy: Path) -> Iterator[Town]:
    """Chain and store of a town; afterwards they are what they were. The store is copied to ``copy`` meanwhile."""
    shutil.copytree(town.folder, copy)
    with unchanged(town.connection):
        yield town
    shutil.rmtree(town.folder)
    shutil.copytree(copy, town.folder)
