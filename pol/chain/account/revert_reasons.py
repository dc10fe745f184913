"""Explanations of the contracts' custom errors for the party that meets them: the meaning, and what to do.

Errors that only a faulty program can meet have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pol.chain.times import utc


def explained(error: str, arguments: tuple[Any, ...]) -> str:
    """The explanation of a custom error; empty if it has none."""
    meaning = _MEANINGS.get(error)
    if meaning is None:
        return ""
    try:
        return meaning(*arguments)
    except (TypeError, ValueError):
        # Two contracts share the name with other arguments; the explanation belongs to one of them.
        return ""


def _fund_short(available: int, wanted: int) -> str:
    return (
        f"the jackpot's fund has {available} wei free and this task reserves {wanted}, so nobody can win it: "
        f"anybody adds the difference by `pol stake donate {wanted - available}wei`"
    )


def _short(account: str, available: int, wanted: int) -> str:
    return (
        f"of {account} the vault has {available} wei for this, and it takes {wanted}: if free money is missing, bring "
        f"it by `pol stake deposit {wanted - available}wei`"
    )


def _unrecorded(number: int) -> str:
    return f"round {number} of the beacon isn't on chain: record it first (--relay for drand)"


def _invalid_terms(field: str) -> str:
    return f"the market's rules don't admit this {field}; docs/spec/market.md, \"Terms\", has the bounds"


_STANDINGS = ("no worker of this plan", "a worker already", "leaving", "no worker any more", "slashed")


def _wrong_standing(account: str, standing: int) -> str:
    return f"{account} is {_STANDINGS[standing]}: only workers of a plan answer for claims, and none joins twice"


def _not_openable(start: int) -> str:
    if start >= 1 << 64:
        return "all settlements of the plan have been opened"
    return f"only the coordinator may open the next settlement before {utc(start)}"


_MEANINGS: dict[str, Callable[..., str]] = {
    "FundShort": _fund_short,
    "Short": _short,
    "InvalidTerms": _invalid_terms,
    "PriceTooHigh": lambda maximum: f"work times unit price is above {maximum} wei: lower the unit price",
    "TooFewTickets": lambda account, available, wanted: f"{account} has {available} tickets, not {wanted}",
    "StakeLocked": lambda until: f"the stake is free at {utc(until)}",
    "NotYet": lambda until: f"it is possible from {utc(until)} on",
    "TooEarly": lambda until: f"it is possible after {utc(until)}",
    "TooLate": lambda until: f"it was possible until {utc(until)}",
    "DeadlinePassed": lambda deadline: f"it was possible until {utc(deadline)}",
    "DeadlineNotPassed": lambda deadline: f"it is possible after {utc(deadline)}",
    "Contestable": lambda deadline: f"others may contest it until {utc(deadline)}",
    "SolverFirst": lambda until: f"only the solver may do this until {utc(until)}",
    "PublisherFirst": lambda until: f"only the publisher may do this until {utc(until)}",
    "NotExpired": lambda deadline: f"the other side may still move until {utc(deadline)}",
    "OutOfTime": lambda deadline: f"this side's clock ran down at {utc(deadline)}",
    "DisputesOpen": lambda count: f"{count} disputes are open: it is possible once they are settled",
    "DemandsOpen": lambda count: f"{count} demands for data are open: it is possible once they have ended",
    "HasBids": lambda bids: f"{bids} solvers have bid: a round with bids can't be canceled, wait for its award",
    "NotWatched": lambda task_id: "its watch isn't open, or commitments aren't taken yet: they are in its last seconds",
    "NotDrawn": lambda account, ticket: f"ticket {ticket} of {account} isn't drawn for this watch",
    "IsParty": lambda task_id, account: f"{account} is a party of this task, and parties don't watch it",
    "RoundNotReached": lambda number: f"round {number} of the beacon isn't due yet: wait for it",
    "RoundNotRecorded": _unrecorded,
    "DutyUnknown": _unrecorded,
    "RoundStands": lambda number: f"round {number} of the beacon is on chain: go on with it",
    "Beaten": lambda rank: "another ticket has a better rank for this seat: leave the seat to it",
    "BondTooHigh": lambda bond: f"the bond is {bond} wei now, more than this party was ready to put up",
    "VerdictFell": lambda task_id: "the verdict has fallen already: there is nothing left to challenge",
    "ProfileFell": lambda task_id: "the profile has fallen already: there is nothing left to challenge",
    "AlreadyBid": lambda bidder: f"{bidder} has bid in this round already",
    "BidderIsParty": lambda bidder: f"{bidder} is a party of this task, and parties don't bid for it",
    "ScoreTooHigh": lambda score, maximum: f"the bid's score {score} is above the task's maximum {maximum}",
    "WrongStanding": _wrong_standing,
    "AccusationsOpen": lambda count: f"{count} accusations of this worker are open: it is possible once they end",
    "SettlementsAhead": lambda plan_id: "the coordinator leaves after it has opened all settlements: open them first",
    "InvalidPlan": lambda field: f'the rules don\'t admit this {field}; docs/spec/rounds.md, "On a chain", has them',
    "NotOpenable": _not_openable,
    "BadLine": lambda index: f"claim {index} of the line is out of order or was counted before: leave it out",
    "NothingWrong": lambda: "what was signed and what is shown agree: there is nothing to slash",
    "NoWorker": lambda signer: f"{signer} has no stake in this plan: a source leads to a claim of somebody who has",
    "NotTheAuthor": lambda signer: f"{signer} has signed the claim, and it names another worker: leave it out",
    "NotLogged": lambda: "the entry isn't in the log of this head, or isn't the claim's: show another head",
    "NotAnnounced": lambda digest: "it has to be announced in an earlier block: announce it, then send it again",
}
