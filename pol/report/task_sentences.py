"""The state of a task in sentences: whose turn it is, until when, and what comes next."""

from __future__ import annotations

from pol.chain.desks.task_registry import MarketTask, Status, TaskOutcome, Terms
from pol.report.elements.page_parts import ether, moment, span
from pol.roles.monitor.market_view import TaskView

NEXT = {
    Status.PROFILING: "a verifier's profile says how far honest runs diverge; if it stands, solvers bid.",
    Status.BIDDING: "the lowest bid wins, and its solver trains.",
    Status.TRAINING: "the solver commits to all checkpoints, and a beacon draws segments. If it is late, its stake is "
    "lost and the task is up for bids again.",
    Status.COMMITTED: "a verifier takes the seat and replays the drawn segments.",
    Status.VERIFYING: "the verifier posts its verdict, and watchers are drawn. If it is late, its stake is lost and "
    "the seat is open again.",
    Status.WATCHED: "the verifier says whether it had to err, and then anybody may challenge the verdict.",
    Status.CONTESTED: "what nobody refutes is settled: everybody is paid, and who has lied loses the stake.",
}
"""What comes after each status, if everybody does what they have to."""
ENDS = {
    TaskOutcome.ACCEPTED: "The training was accepted: the solver has been paid {price}.",
    TaskOutcome.REJECTED: "The training was rejected: the solver isn't paid, and its stake is lost.",
    TaskOutcome.CANCELLED: "The submitter has taken the task back before it had a solver.",
    TaskOutcome.ABANDONED: "The beacon was silent for too long: nobody is to blame, and stakes went back.",
    TaskOutcome.NONE: "The task is closed.",
}
STAGES = {
    Status.PROFILING: "profile",
    Status.BIDDING: "auction",
    Status.TRAINING: "training",
    Status.COMMITTED: "draw",
    Status.VERIFYING: "replay",
    Status.WATCHED: "watch",
    Status.CONTESTED: "challenge",
    Status.CLOSED: "settled",
}
"""The stages of a task's life in their order."""


def standing(task: TaskView, now: int) -> str:
    """Whose turn it is and until when: the first sentence about a task."""
    if task.task.status is Status.CLOSED:
        return ENDS[task.task.outcome].format(price=ether(task.task.price))
    waits = task.waits[:1].upper() + task.waits[1:]
    if task.until is None:
        return f"{waits}."
    if task.until <= now:
        return f"{waits}: due now."
    return f"{waits} until {moment(task.until)}, {span(task.until - now)} from now."


def following(task: TaskView) -> str:
    """What comes next: the second sentence; empty for a task that is over."""
    told = NEXT.get(task.task.status)
    if told is None:
        return ""
    if task.objections.open:
        return f"Next: open objections to the log are decided; if one is right, the proof falls. Then {told}"
    return f"Next: {told}"


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
