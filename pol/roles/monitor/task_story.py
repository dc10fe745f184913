"""One account of a task for people: its state, whose turn it is and until when, its events, and what comes next.

`pol explain`, pages, monitors and the progress of `pol submit` all tell it from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_typing import ChecksumAddress

from pol.chain.desks.task_registry import MarketTask, Status, TaskOutcome, Terms
from pol.chain.times import duration, utc
from pol.roles.monitor.market_view import TaskState, TaskView
from pol.roles.party.public_calls import public_call
from pol.roles.party.role import PublicCall
from pol.roles.party.task_reader import TaskReader


@dataclass(frozen=True)
class Stage:
    """A stage of a task's life, in words."""

    name: str
    now: str
    """What happens in it."""
    then: str
    """What comes after it, if everybody does what they have to."""


STAGES = {
    Status.PROFILING: Stage(
        "profile",
        "A verifier measures how much honest runs diverge.",
        "a verifier's profile says how far honest runs diverge; if it stands, solvers bid.",
    ),
    Status.BIDDING: Stage("auction", "Solvers bid for the training.", "the lowest bid wins, and its solver trains."),
    Status.TRAINING: Stage(
        "training",
        "A solver has won the auction, and trains.",
        "the solver commits to all checkpoints, and a beacon draws segments. If it is late, its stake is lost and the "
        "task is up for bids again.",
    ),
    Status.COMMITTED: Stage(
        "draw",
        "The training is committed to; a verifier is drawn by the chain's beacon.",
        "a verifier takes the seat and replays the drawn segments.",
    ),
    Status.VERIFYING: Stage(
        "replay",
        "A verifier replays segments that nobody could know before.",
        "the verifier posts its verdict, and watchers are drawn. If it is late, its stake is lost and the seat is open "
        "again.",
    ),
    Status.WATCHED: Stage(
        "watch",
        "The verdict is on chain; watchers replay the same segments.",
        "the verifier says whether it had to err, and then anybody may challenge the verdict.",
    ),
    Status.CONTESTED: Stage(
        "challenge",
        "The verdict is open; anybody may dispute it, or any segment of the training.",
        "what nobody refutes is settled: everybody is paid, and who has lied loses the stake.",
    ),
    Status.CLOSED: Stage("settled", "The task is settled.", ""),
}
"""The stages of a task's life in their order."""
ENDS = {
    TaskOutcome.ACCEPTED: "The training was accepted: the solver has been paid {price}.",
    TaskOutcome.REJECTED: "The training was rejected: the solver isn't paid, and its stake is lost.",
    TaskOutcome.CANCELLED: "The submitter has taken the task back before it had a solver.",
    TaskOutcome.ABANDONED: "The beacon was silent for too long: nobody is to blame, and stakes went back.",
    TaskOutcome.NONE: "The task is closed.",
}
EVENTS: dict[str, tuple[str, str | None]] = {
    "Pinned": ("says which proofs it will take", "submitter"),
    "TaskSubmitted": ("submitted, with an escrow of {escrow}", "submitter"),
    "SeatOpened": ("a seat is open", None),
    "SeatTaken": ("took the seat", "holder"),
    "SeatLeft": ("left the seat", "holder"),
    "ProfilePosted": ("posted a profile", "verifier"),
    "ProfileChallenged": ("challenged the profile", "challenger"),
    "ProfileDisputeSettled": ("a dispute about the profile is settled", None),
    "ProfileGone": ("the profile is gone", None),
    "ProfileConcluded": ("the profile stands", "verifier"),
    "Awarded": ("won the auction at {price}", "solver"),
    "SolverGone": ("was removed", "solver"),
    "ProgressPosted": ("the solver posted checkpoint {size}", None),
    "ProofCommitted": ("the solver committed to {size} checkpoints", None),
    "VerdictPosted": ("posted a verdict: {rejecting} claims reject", "verifier"),
    "WatchOpened": ("watchers are drawn", None),
    "Watched": ("committed to an error", "account"),
    "Disclosed": ("the verifier disclosed whether it had to err", None),
    "DutyBroken": ("lost its stake: broken secret or duty", "verifier"),
    "Challenged": ("challenged the verdict", "challenger"),
    "SettledByProof": ("a zero-knowledge proof ends a dispute about the verdict", None),
    "StepProven": ("step {step} is proved in zero knowledge", None),
    "Tied": ("a state is shown, to tie proofs to it", None),
    "DisputeSettled": ("a dispute about the verdict is settled", None),
    "DisputeMoot": ("a dispute about the verdict is moot", None),
    "Objected": ("objected to segment {segment} of the log", "objector"),
    "ObjectionSettled": ("a dispute about a segment of the log is settled", None),
    "ObjectionMoot": ("an objection is moot", None),
    "ObjectionProven": ("a zero-knowledge proof ends a dispute about a segment", None),
    "ZeroShown": ("showed that entry {entry} of the log is zero", "objector"),
    "Counterclaimed": ("says that the rule rejects a segment of the log", "objector"),
    "Contested": ("contests what an objector says", "challenger"),
    "ContestSettled": ("a dispute about a counterclaim is settled", None),
    "ContestMoot": ("a dispute about a counterclaim is moot", None),
    "CounterclaimConcluded": ("a counterclaim is over", None),
    "ObjectorPaid": ("was paid {amount} for a false segment", "objector"),
    "Demanded": ("data are demanded from the solver", None),
    "Answered": ("answered a demand for data", "answerer"),
    "Expired": ("a demand for data is over", None),
    "LooksPaid": ("paid {amount} for second looks", "solver"),
    "Withheld": ("lost its stake for withheld data", "solver"),
    "Settled": ("settled: the price is {price}, the verifier's fee {verifierFee}", None),
    "TaskClosed": ("closed", None),
    "Caught": ("was paid a watch reward of {amount}", "account"),
}
"""Events of a task in words, and the argument that names the actor."""
_AMOUNTS = ("escrow", "price", "verifierFee", "amount")
COIN = 10**18
"""Smallest units in one coin; for a token, by convention."""


def state_of(reader: TaskReader, task_id: bytes) -> TaskState:
    """The state of a task at the latest block."""
    registry, found = reader.market.registry, public_call(reader, task_id)
    return TaskState(
        task_id=task_id,
        task=registry.task(task_id),
        terms=registry.terms(task_id),
        waits=f"anybody may {found.verb}: {found.why}" if isinstance(found, PublicCall) else found.why,
        until=None if isinstance(found, PublicCall) else found.until,
        call=found.verb if isinstance(found, PublicCall) else "",
        final=not isinstance(found, PublicCall) and found.final,
        unserved=tuple(reader.market.settlement.unserved_by(task_id)),
    )


def standing(task: TaskState, now: int) -> str:
    """Whose turn it is and until when: the first sentence about a task."""
    if task.task.status is Status.CLOSED:
        return ENDS[task.task.outcome].format(price=f"{coins(task.task.price)} ETH")
    waits = task.waits[:1].upper() + task.waits[1:]
    if task.until is None:
        return f"{waits}."
    if task.until <= now:
        return f"{waits}: due now."
    return f"{waits} until {utc(task.until)}, {duration(task.until - now)} from now."


def following(task: TaskView) -> str:
    """What comes next: the second sentence; empty for a task that is over."""
    stage = STAGES.get(task.task.status)
    if stage is None or not stage.then:
        return ""
    if task.objections.open:
        return f"Next: open objections to the log are decided; if one is right, the proof falls. Then {stage.then}"
    return f"Next: {stage.then}"


def on_turn(task: MarketTask) -> str | None:
    """The account that has to act, if it is one that the chain names."""
    if task.status is Status.TRAINING:
        return task.solver
    if task.status in {Status.PROFILING, Status.VERIFYING, Status.WATCHED} and task.is_seated:
        return task.holder
    return None


def stages_of(terms: Terms) -> list[Status]:
    """The stages that a task goes through: an exact one has no profile."""
    return [status for status in STAGES if not (terms.is_exact and status is Status.PROFILING)]


def event_told(name: str, event: dict[str, Any]) -> tuple[str, ChecksumAddress | None]:
    """An event in words, and the account that acted."""
    words, who = EVENTS[name]
    shown = {key: coins(value) if key in _AMOUNTS else value for key, value in event.items()}
    return words.format(**shown), event[who] if who else None


def coins(amount: int) -> str:
    """An amount in coins."""
    return f"{amount / COIN:,.6f}".rstrip("0").rstrip(".")
