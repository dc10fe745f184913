"""A tiny training in rounds on a chain: two workers step, both merge; every claim is made by the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

import toy_market
from pol.arithmetic.primitives import Words
from pol.chain.account.wallet import Wallet
from pol.chain.deployment_rules import GameRules
from pol.chain.deployments.contract_layout import deploy_rounds
from pol.chain.desks.vault_ledger import Ledger, held
from pol.chain.node.connection import Connection
from pol.chain.rounds.plan_terms import PlanCommitment, PlanMoney, PlanTerms
from pol.chain.rounds.round_contracts import RoundContracts
from pol.chain.rounds.round_demands import RoundDemand
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuExecutor
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.incentives.work_shares import CountedClaim
from pol.rounds.auditing.claim_replay import load_constants, load_phase
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.log_entries import ClaimEntry, encode_entry
from pol.rounds.log.rounds_log import LogHead
from pol.rounds.plan.plan_builder import From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import SHOWN_LIMIT, Arrival, Member, Roster, stage_role
from pol.rounds.round_claim import BoundSlot, decode_sources
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

ETHER = 10**18
HOUR, DAY = 3600, 24 * 3600
NAMES = ("keeper", "ann", "bob", "challenger", "submitter", "treasury")
WORKERS = ("ann", "bob")
STEP, MERGE, GOSSIP = 0, 1, 2
GIVEN = {"own": "own", "partner": "partner", "routed": "route:1", "numbered": "route:1:0"}
"""The slots of gossip that are of its own round, and who gives them; the last one, `late`, is an arrival."""
UNITS = (100, 0, 10)
"""Both make the same merge: who has two keys could count it twice, so it counts nothing."""
MONEY = PlanMoney(
    stake=4 * ETHER,
    keeper_stake=8 * ETHER,
    price=ETHER // 100,
    pay=ETHER + 1,
    work=200,
    settlements=3,
    period=7 * DAY,
    line_window=DAY,
    answer_window=DAY,
    leave_delay=4 * DAY,
    clock=HOUR,
)
DEPOSIT = 30 * ETHER
# As contracts/rounds/TimedDemands.sol has them.
ANSWER_GAS, ROSTER_BYTE_GAS = 400_000, 47
ROSTER_ANSWER_GAS = ANSWER_GAS + ROSTER_BYTE_GAS * SHOWN_LIMIT


def price_of(demand: RoundDemand, shown: int) -> int:
    """Wei of the bond that an answer with so many bytes of a roster earns."""
    return MONEY.price + (demand.bond - MONEY.price) * (ANSWER_GAS + ROSTER_BYTE_GAS * shown) // ROSTER_ANSWER_GAS


def _step(state: dict[str, Tensor], constants: dict[str, Tensor], step: Tensor) -> dict[str, Tensor]:
    """Two slots: a velocity towards the worker's data, and a position."""
    velocity = 0.5 * state["velocity"] + (constants["data"] - state["position"]) * 0.25
    return {"velocity": velocity, "position": state["position"] + velocity}


def _merge(state: dict[str, Tensor], constants: dict[str, Tensor], step: Tensor) -> dict[str, Tensor]:
    return {"first": (state["first"] + state["second"]) * 0.5}


def _gossip(state: dict[str, Tensor], constants: dict[str, Tensor], step: Tensor) -> dict[str, Tensor]:
    return {"own": (state["own"] + state["partner"] + state["routed"] + state["numbered"] + state["late"]) * 0.25}


def _captures() -> tuple[Capture, Capture, Capture]:
    zeros = torch.zeros(3)
    step = capture_function(_step, {"position": zeros.clone(), "velocity": zeros.clone()}, {"data": torch.ones(3)})
    merge = capture_function(_merge, {"first": zeros.clone(), "second": zeros.clone()})
    gossip = capture_function(_gossip, {name: zeros.clone() for name in (*GIVEN, "late")})
    return step, merge, gossip


def build_plan(store: Store, coordinator: str) -> RoundsPlan:
    """Each round: four steps of each worker on its own data, from the merged position; then the merge."""
    builder, (step, merge, gossip) = PlanBuilder(store), _captures()
    data = [[torch.tensor(values, dtype=torch.float32).numpy().view("uint32")] for values in ([1, 2, 3], [-1, 0, 5])]
    if len(step.constants) != 1:
        raise AssertionError("the step has other constants than its data")
    step_sources = {
        "position": From("merge", "first", "own", lag=1, starts=True, inherits=True),
        "velocity": From("step", "velocity", "own", lag=1, starts=True),
    }
    builder.phase("step", step, step_sources, data=data, steps=4, units=UNITS[STEP])
    merge_sources = {"first": From("step", "position", "member:0"), "second": From("step", "position", "member:1")}
    builder.phase("merge", merge, merge_sources)
    gossip_sources = {name: From("step", "position", of) for name, of in GIVEN.items()}
    gossip_sources["late"] = From("step", "position", "arrival:0", lag=2, starts=True)
    builder.phase("gossip", gossip, gossip_sources, units=UNITS[GOSSIP])
    return builder.build("toy", coordinator, b"\x05" * 32, 3)


@dataclass(frozen=True)
class ToyRounds:
    """A plan with joined workers, and one honest round (number 0) of each."""

    connection: Connection
    contracts: RoundContracts
    wallets: dict[str, Wallet]
    keys: dict[str, WorkerKey]
    authors: dict[str, ClaimAuthor]
    rosters: tuple[Roster, ...]
    commitment: PlanCommitment
    plan_id: bytes
    made: dict[tuple[str, int], MadeClaim]
    """Claims of round 0, by worker and phase."""

    @property
    def plan(self) -> RoundsPlan:
        return self.commitment.plan

    def again(self) -> ToyRounds:
        """The same: nothing read from the chain yet, and no claim known but those of round 0."""
        addresses = {name: binding.address for name, binding in vars(self.contracts).items()}
        bound = {name: type(getattr(self.contracts, name))(self.connection, at) for name, at in addresses.items()}
        authors = {
            name: _author(self.authors[name].store, self.plan, self.keys[name], self.rosters) for name in WORKERS
        }
        for author in authors.values():
            for made in self.made.values():
                author.learn(made)
        return replace(self, contracts=RoundContracts(**bound), authors=authors)

    def beside(self, author: str, parts: int = 1) -> ToyRounds:
        """The same parties in a plan whose steps have an author; it pays nothing, so there may be many of them."""
        bonds, (step, *others) = self.contracts.bonds, self.plan.phases
        plan = replace(self.plan, registration=b"", phases=(replace(step, author=author, parts=parts), *others))
        terms = PlanTerms.of(PlanCommitment.of(plan), replace(MONEY, pay=0))
        plan_id = bonds.register(self.wallets["submitter"], terms)
        for name in ("keeper", *WORKERS):
            bonds.join(self.wallets[name], plan_id)
        plan = replace(plan, registration=bonds.registration(plan_id))
        rosters = tuple(replace(roster, plan=plan_id) for roster in self.rosters)
        return replace(self, commitment=PlanCommitment.of(plan), plan_id=plan_id, rosters=rosters)

    def sources(self, entry: ClaimEntry) -> list[BoundSlot]:
        """The sources of a claim."""
        return decode_sources(self.authors["ann"].store.get(entry.sources))

    def trace(self, entry: ClaimEntry) -> SegmentTrace:
        """The right execution of a claim from its start."""
        author = next(a for a in self.authors.values() if a.name == entry.worker)
        claim = entry.claim
        place = ClaimPlace(author.name, claim.round, claim.phase, claim.part)
        phase = self.plan.phases[claim.phase]
        seat = self.rosters[claim.round].place(author.name)
        program = load_phase(author.store, phase).program
        constants = load_constants(author.store, phase, seat)
        _, start = author.start(place)
        executor = CpuExecutor(program, constants, threads=1)
        return SegmentTrace(program, constants, executor, start, claim.first_step, claim.steps)

    def false_claim(self, worker: str, end: Sequence[Words]) -> MadeClaim:
        """The claim of a worker for its step of round 0, with another end."""
        author = self.authors[worker]
        place = ClaimPlace(author.name, 0, STEP, 0)
        sources, _ = author.start(place)
        return author.sign(place, sources, end)

    def signed(self, by: str, entry: ClaimEntry, **changes: object) -> ClaimEntry:
        """Another claim of a worker: ``entry``'s with other members."""
        claim = replace(entry.claim, **changes)  # type: ignore[arg-type]  # members of a claim
        return replace(entry, claim=claim, signature=self.keys[by].sign(claim.digest))

    def head(self, entries: Sequence[bytes]) -> tuple[LogHead, CheckpointLog]:
        """A head of the keeper's over entries, and its tree."""
        log = CheckpointLog([keccak256(entry) for entry in entries])
        head = LogHead(self.plan.digest, len(log), log.root(), b"", (), ())
        return replace(head, signature=self.keys["keeper"].sign(head.digest)), log

    def log(self) -> tuple[LogHead, CheckpointLog, list[ClaimEntry]]:
        """The log of round 0: the claims in order of phase and worker."""
        entries = [self.made[worker, phase].entry for phase in (STEP, MERGE, GOSSIP) for worker in WORKERS]
        head, log = self.head([encode_entry(entry) for entry in entries])
        return head, log, entries

    def line(self, worker: str) -> list[CountedClaim]:
        """What a worker counts of round 0."""
        claims = (self.made[worker, phase].entry.claim for phase in (STEP, GOSSIP))
        return [CountedClaim(c.round, c.phase, c.part, c.digest, UNITS[c.phase]) for c in claims]

    def free(self, name: str) -> int:
        """What a party has free in the vault."""
        return self.contracts.vault.free(self.wallets[name].address)

    def check_books(self) -> None:
        """Every wei that came in is somebody's, by the events alone."""
        ledger = Ledger.of(self.contracts.vault)
        assert ledger.overdrawn == []
        assert ledger.owed == held(self.contracts.vault) == DEPOSIT * (len(NAMES) - 1)
        for name, wallet in self.wallets.items():
            assert ledger.free[wallet.address] == self.free(name)


def begin(connection: Connection, folder: Path) -> ToyRounds:
    """Deploy, register the plan, let all join, and make the claims of round 0."""
    secrets = {name: keccak256(b"rounds " + name.encode()) for name in NAMES}
    wallets = {name: Wallet.create(connection, secret) for name, secret in secrets.items()}
    keys = {name: WorkerKey(secret) for name, secret in secrets.items()}
    toy_market.fund(connection, *(wallet.address for wallet in wallets.values()))
    contracts = deploy_rounds(wallets["submitter"], wallets["treasury"].address, GameRules(4, 1800, 300))
    for name in NAMES[:-1]:
        contracts.vault.deposit(wallets[name], DEPOSIT)
    store = Store(f"file://{folder}")
    plan = build_plan(store, keys["keeper"].name)
    commitment = PlanCommitment.of(plan)
    plan_id = contracts.bonds.register(wallets["submitter"], PlanTerms.of(commitment, MONEY))
    registration = contracts.bonds.registration(plan_id)
    store.put(registration)
    plan = replace(plan, registration=registration)
    commitment = replace(commitment, plan=plan)
    for name in ("keeper", *WORKERS):
        contracts.bonds.join(wallets[name], plan_id)
    members = tuple(Member(keys[name].name, seat, role=stage_role(seat)) for seat, name in enumerate(WORKERS))
    beacons = [bytes([number]) * 32 for number in range(1, 3)]
    first, second = (Roster(plan.digest, at, members, (1, 0), ((0, 1),), drawn) for at, drawn in enumerate(beacons))
    # The second round takes bob's claim of the first.
    rosters = (first, replace(second, arrivals=(Arrival(1, 0),)))
    authors = {name: _author(store, plan, keys[name], rosters) for name in WORKERS}
    made = {(name, STEP): authors[name].make(0, "step") for name in WORKERS}
    authors["ann"].learn(made["bob", STEP])
    authors["bob"].learn(made["ann", STEP])
    made |= {(name, MERGE): authors[name].make(0, "merge") for name in WORKERS}
    made |= {(name, GOSSIP): authors[name].make(0, "gossip") for name in WORKERS}
    return ToyRounds(connection, contracts, wallets, keys, authors, rosters, commitment, plan_id, made)


def _author(store: Store, plan: RoundsPlan, key: WorkerKey, rosters: Sequence[Roster]) -> ClaimAuthor:
    author = ClaimAuthor(store, plan, key, executor_of)
    author.rosters = {roster.round: roster for roster in rosters}
    return author


def executor_of(program: object, constants: object) -> CpuExecutor:
    """One thread."""
    return CpuExecutor(program, constants, threads=1)  # type: ignore[arg-type]  # as ExecutorFactory gives them
