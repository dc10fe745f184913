"""Why a worker is paid for a settlement of rounds, or isn't yet: the state, its reason, and what to do next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from eth_typing import ChecksumAddress

from pol.chain.rounds.round_contracts import RoundContracts
from pol.chain.rounds.worker_bonds import Standing
from pol.incentives.work_shares import pay_of

NEVER = (1 << 64) - 1
"""When the settlement behind the last one opens."""


@dataclass(frozen=True)
class Course:
    """How far the settlements of a plan are."""

    opened: int
    """How many there were, of ``all``."""
    all: int
    next: int | None
    """First second in which the next one can be opened; None if there is none."""
    fell: bool
    """The coordinator has lost its stake: no settlement follows but one."""

    @classmethod
    def of(cls, contracts: RoundContracts, plan_id: bytes) -> Course:
        """That of a plan. Raises Reverted: there is no such plan."""
        terms, shares = contracts.bonds.terms(plan_id), contracts.shares
        opened, last = int(shares.read("settlements", plan_id)), int(shares.read("openedAt", plan_id))
        fell = contracts.bonds.bond(plan_id, terms.coordinator).standing is Standing.SLASHED
        last = last or int(contracts.bonds.read("registeredAt", plan_id))
        ahead = opened < terms.settlements and last != NEVER
        return cls(opened, terms.settlements, last + terms.period if ahead else None, fell)


@dataclass(frozen=True)
class PayState:
    """A worker and a settlement; amounts in the smallest unit, ``until`` in seconds since 1970."""

    state: str
    why: str
    next: str
    until: int | None = None
    """The last second in which the next step can be made, or has to be waited for."""
    units: int = 0
    due: int = 0
    paid: int = 0
    accusations: tuple[str, ...] = ()
    """Those that are open, with what ends each."""

    def to_dict(self) -> dict[str, Any]:
        """All members."""
        return asdict(self)

    @property
    def can_settle(self) -> bool:
        """Whether `RoundShares.settle` does anything now."""
        return self.state in {"due", "void soon"}


def pay_state(contracts: RoundContracts, plan_id: bytes, number: int, worker: ChecksumAddress) -> PayState:
    """Where the pay of a worker for a settlement is. Raises Reverted: there is no such plan."""
    shares, bond, now = contracts.shares, contracts.bonds.bond(plan_id, worker), contracts.shares.connection.now()
    course = Course.of(contracts, plan_id)
    if number >= course.opened:
        return _not_open(number, course, now)
    terms, settlement, line = (
        contracts.bonds.terms(plan_id),
        shares.settlement(plan_id, number),
        shares.line(plan_id, number, worker),
    )
    is_slashed = bond.standing is Standing.SLASHED
    if not line.count:
        return _no_line(bond.standing, settlement.lines_until, now)
    due = pay_of(terms.pay, line.units, max(settlement.units, terms.work)) - line.paid
    said: dict[str, Any] = {"units": line.units, "paid": line.paid}
    if not line.units:
        why = "its worker has lost its stake before it was paid" if is_slashed else "its claims count for nothing"
        return PayState("void", why, "nothing: the pay goes to the others", **said)
    if is_slashed and not line.is_owned:
        why = "its worker has lost its stake, and the line counts until somebody takes it out"
        return PayState("void soon", why, "anybody calls settle, which pays nobody", **said)
    if is_slashed and due:
        why = "its worker has lost its stake behind the first payment: what is due besides goes to the treasury"
        return PayState("due", why, "anybody calls settle", None, line.units, 0, line.paid)
    if line.is_owned and not due:
        why = f"the line of {line.units} units was paid its part of {max(settlement.units, terms.work)}"
        return PayState("paid", why, "nothing, unless another line falls: then settle pays more", **said)
    open_ones = _accusations(contracts, plan_id, worker)
    last = settlement.closes + 2 * (terms.answer_window + terms.line_window)
    closes = max(settlement.closes, min(bond.quiet, last))
    if now <= closes:
        why = "anybody may demand to see a claim of the line, and refute one that was shown"
        step = "answer what is demanded" if open_ones else "wait, then call settle"
        return PayState("waits", why, step, closes, due=due, accusations=open_ones, **said)
    if bond.open:
        why = f"{bond.open} accusations of the worker are open, and its lines wait for them"
        step = "answer them in time: `pol run worker` does"
        return PayState("accused", why, step, None, due=due, accusations=open_ones, **said)
    step = "call settle: `pol run worker` does, and anybody may"
    return PayState("due", "the windows are over, and nobody has shown the line false", step, due=due, **said)


def _not_open(number: int, course: Course, now: int) -> PayState:
    ahead = number - course.opened
    if number >= course.all:
        why = f"the plan has {course.all} settlements, numbered from 0, and no settlement {number}"
        return PayState("none", why, "name one of them")
    if course.next is None or (course.fell and ahead):
        why = f"the coordinator has lost its stake: settlement {number} never opens"
        return PayState("none", why, "nothing: work behind the last settlement isn't paid")
    why = f"settlement {number} isn't open, and {ahead} others come before it"
    if not ahead and now >= course.next:
        return PayState("not open", why, "anybody opens it: `pol run keeper` does")
    return PayState("not open", why, "wait; then anybody opens it", None if ahead else course.next - 1)


def _no_line(standing: Standing, lines_until: int, now: int) -> PayState:
    if standing not in {Standing.JOINED, Standing.LEAVING}:
        reason = {Standing.NONE: "has never joined", Standing.LEFT: "has left", Standing.SLASHED: "has lost its stake"}
        why = f"the worker {reason[standing]}: only who answers with a stake counts claims"
        return PayState("no stake", why, "nothing for this settlement")
    if now <= lines_until:
        why = "the worker hasn't counted its claims: it has posted no line"
        return PayState("not counted", why, "post a line: `pol run worker` does", lines_until)
    why = "the worker has posted no line in time"
    return PayState("missed", why, "count the claims in the next settlement: none is lost while one follows")


def _accusations(contracts: RoundContracts, plan_id: bytes, worker: ChecksumAddress) -> tuple[str, ...]:
    found = [
        f"a demand: answer it until second {demand.deadline}"
        for desk in (contracts.demands, contracts.shares)
        for demand in desk.demands(plan_id)
        if demand.accused == worker
    ]
    ended = {int(event["number"]) for event in contracts.disputes.events("ClaimDecided", id=plan_id)}
    for event in contracts.disputes.events("ClaimDisputed", id=plan_id):
        if event["worker"] == worker and int(event["number"]) not in ended:
            found.append(f"dispute {int(event['number'])}: make each move in time")
    return tuple(found)
