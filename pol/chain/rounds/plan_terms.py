"""A plan as a chain knows it: its phases and rules as trees, and the money (docs/spec/rounds.md, "On a chain")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.commitments import merkle
from pol.commitments.keccak import HASH_SIZE, keccak256
from pol.errors import ProtocolError
from pol.incentives.payouts import MAX_AMOUNT
from pol.incentives.work_shares import MAX_LINE, CountedClaim
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import Phase, RoundsPlan, SourceRule


class Giver(IntEnum):
    """By whom a source is given, or a claim is made; the contract's numbers."""

    ANY = 0
    OWN = 1
    MEMBER = 2
    PARTNER = 3
    ROUTE = 4
    PART = 5
    HOLDER = 6
    ARRIVAL = 7


@dataclass(frozen=True)
class CommittedRule:
    """The rule of a slot; the contract's struct ``SourceRule``."""

    phase: bytes
    slot: int
    giver: Giver
    index: int
    part: int
    lag: int
    initial: int
    inherits: bool

    @classmethod
    def of(cls, rule: SourceRule) -> CommittedRule:
        """The rule of a plan."""
        phase = keccak256(rule.phase.encode()) if rule.phase else bytes(HASH_SIZE)
        numbers = (rule.index, rule.part + 1, rule.lag, rule.initial + 1)
        return cls(phase, rule.slot, Giver[rule.kind.upper()], *numbers, rule.inherits)

    @property
    def leaf(self) -> bytes:
        """Its leaf in the tree of its phase."""
        places = (self.index, self.part, self.lag, self.initial)
        numbers = ((self.slot, 4), (self.giver, 1), *((number, 4) for number in places))
        packed = b"".join(number.to_bytes(size, "big") for number, size in numbers)
        return merkle.leaf_hash(self.phase + packed + bytes([self.inherits]))


@dataclass(frozen=True)
class CommittedPhase:
    """What each claim of a phase has in common; the contract's struct ``Phase``."""

    name: bytes
    program: bytes
    constants: bytes
    seats: int
    steps: int
    parts: int
    slots: int
    rules: bytes
    units: int
    author: Giver
    author_index: int

    @classmethod
    def of(cls, phase: Phase) -> CommittedPhase:
        """The phase of a plan."""
        rule = phase.author_rule
        return cls(
            keccak256(phase.name.encode()),
            phase.program_hash,
            merkle.tree([entry.root for entry in phase.constants]),
            len(phase.constants),
            phase.steps,
            phase.parts,
            len(phase.sources),
            merkle.tree([CommittedRule.of(rule).leaf for rule in phase.sources]),
            phase.units,
            *((Giver[rule.kind.upper()], rule.index) if rule else (Giver.ANY, 0)),
        )

    @property
    def leaf(self) -> bytes:
        """Its leaf in the tree of phases."""
        numbers = ((self.seats, 4), (self.steps, 8), (self.parts, 4), (self.slots, 4))
        packed = b"".join(number.to_bytes(size, "big") for number, size in numbers)
        hashes = self.name + self.program + self.constants
        behind = self.units.to_bytes(16, "big") + bytes([self.author]) + self.author_index.to_bytes(4, "big")
        return merkle.leaf_hash(hashes + packed + self.rules + behind)


@dataclass(frozen=True)
class PlanCommitment:
    """The trees of a plan, for proofs to the contracts."""

    plan: RoundsPlan
    phases: tuple[CommittedPhase, ...]

    @classmethod
    def of(cls, plan: RoundsPlan) -> PlanCommitment:
        """Commit to a plan. Raises ProtocolError: no court decides about a phase."""
        for phase in plan.phases:
            if plan.rounds * phase.parts * phase.steps > 1 << 32:
                raise ProtocolError(
                    f"phase {phase.name} has more than 2^32 steps in all rounds: no court decides the last"
                )
        return cls(plan, tuple(map(CommittedPhase.of, plan.phases)))

    @property
    def root(self) -> bytes:
        """The root over the phases."""
        return merkle.tree([phase.leaf for phase in self.phases])

    @property
    def initial(self) -> bytes:
        """The root over the initial values; zeros if there are none."""
        return merkle.tree(self._initial) if self.plan.initial else bytes(HASH_SIZE)

    def phase(self, index: int) -> tuple[CommittedPhase, list[bytes]]:
        """A phase and its branch; the contract's struct ``PhaseProof``."""
        return self.phases[index], merkle.branch([phase.leaf for phase in self.phases], index)

    def rule(self, phase: int, slot: int) -> tuple[CommittedRule, list[bytes]]:
        """The rule of a slot and its branch; the contract's struct ``RuleProof``."""
        rules = [CommittedRule.of(rule) for rule in self.plan.phases[phase].sources]
        return rules[slot], merkle.branch([rule.leaf for rule in rules], slot)

    def initial_branch(self, index: int) -> list[bytes]:
        """The branch of an initial value."""
        return merkle.branch(self._initial, index)

    def constants(self, phase: int) -> bytes:
        """The roots of the constants of all seats, joined."""
        return b"".join(entry.root for entry in self.plan.phases[phase].constants)

    def line(self, rounds: LoggedRounds, worker: str, counted: int = 0) -> list[CountedClaim]:
        """What a worker counts next of a log: its claims in phases that count, in order, as many as a line takes.

        ``counted``: the place behind those of its earlier lines (`RoundShares.owned`).
        """
        found = []
        for place, entry in rounds.places.items():
            units = self.phases[place.phase].units if place.phase < len(self.phases) else 0
            if place.worker == worker.lower() and units:
                found.append(CountedClaim(place.round, place.phase, place.part, entry.claim.digest, units))
        ahead = (claim for claim in found if claim.place >= counted)
        return sorted(ahead, key=lambda claim: claim.place)[:MAX_LINE]

    @property
    def _initial(self) -> list[bytes]:
        return [value.root for value in self.plan.initial]


@dataclass(frozen=True)
class PlanMoney:
    """What a plan pays and asks for; amounts in the smallest unit, times in seconds.

    stake, keeper_stake: of a worker, of the coordinator. price: of a replay of a claim or an answer, on top of gas.
    pay: of one of ``settlements``. work: units that one pays in full; fewer get their part of ``pay``. period: from one
    settlement to the next. line_window: for workers to count their claims, and again to dispute that. leave_delay: in
    which a leaving worker can still be accused. clock: budget of each side in a dispute.
    """

    answer_window: int
    leave_delay: int
    clock: int
    stake: int
    keeper_stake: int
    price: int
    pay: int
    work: int
    settlements: int
    period: int
    line_window: int


@dataclass(frozen=True)
class PlanIdentity:
    """What of a plan's terms follows from its document."""

    plan: bytes
    phases: bytes
    initial: bytes
    phase_count: int
    initial_count: int
    rounds: int
    coordinator: ChecksumAddress


@dataclass(frozen=True)
class PlanTerms(PlanMoney, PlanIdentity):
    """A plan on a chain; the contract's struct ``PlanTerms``: the members of `PlanIdentity`, then the money."""

    @classmethod
    def of(cls, commitment: PlanCommitment, money: PlanMoney) -> PlanTerms:
        """The terms of a plan.

        Raises:
            ProtocolError: a worker makes more claims that count than the settlements take, or more units than a line.
        """
        plan = commitment.plan
        most = plan.rounds * sum(phase.parts for phase in commitment.phases if phase.units)
        if money.pay and most > money.settlements * MAX_LINE:
            raise ProtocolError(
                f"a worker makes up to {most} claims that count, and {money.settlements} settlements take {MAX_LINE} "
                "each: let a claim have more steps, or have more settlements"
            )
        units = plan.rounds * sum(phase.parts * phase.units for phase in commitment.phases)
        if money.pay and units >= MAX_AMOUNT:
            raise ProtocolError(f"a worker's claims have {units} units, more than a line counts: count in larger ones")
        return cls(
            keccak256(plan.encode()),
            commitment.root,
            commitment.initial,
            len(plan.phases),
            len(plan.initial),
            plan.rounds,
            Web3.to_checksum_address(plan.coordinator),
            **{name: getattr(money, name) for name in PlanMoney.__dataclass_fields__},
        )

    @property
    def escrow(self) -> int:
        """The pay of all settlements."""
        return self.pay * self.settlements


def require_terms(terms: PlanTerms, commitment: PlanCommitment) -> None:
    """Check before joining that a registration says what the plan's document says.

    Raises:
        ProtocolError: it says something else.
    """
    money = PlanMoney(*(getattr(terms, name) for name in PlanMoney.__dataclass_fields__))
    if terms != PlanTerms.of(commitment, money):
        raise ProtocolError("the registration says something else than the plan's document: don't join it")
