"""Whether rounds have taken what has arrived, in the order of its receipts (docs/spec/rounds.md, "Arrivals")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.roster import Roster


@dataclass(frozen=True)
class ArrivalProblem:
    """What is wrong with the arrivals of a round; ``is_left_out``: no round has taken the claim."""

    round: int
    claim: bytes
    is_left_out: bool
    detail: str


def arrival_problems(
    rosters: Mapping[int, Roster], receipts: Sequence[DeliveryEntry], claims: Mapping[bytes, ClaimEntry]
) -> Iterator[ArrivalProblem]:
    """The first problem of each round that takes arrivals.

    ``receipts`` are the coordinator's, in the order of the log: each says which round is to take the claim.
    Receipts for rounds that haven't begun, and rosters without arrivals, show nothing.
    """
    promised: dict[int, list[bytes]] = {}
    for receipt in receipts:
        promised.setdefault(receipt.round, []).append(receipt.claim)
    taken = {
        round_: [(roster.members[arrival.member].worker, arrival.round) for arrival in roster.arrivals]
        for round_, roster in rosters.items()
    }
    rounds_of: dict[tuple[str, int], int] = {}
    for round_, arrivals in sorted(taken.items()):
        if not arrivals:
            continue
        twice = [arrival for arrival in arrivals if arrival in rounds_of]
        rounds_of |= dict.fromkeys(arrivals, round_)
        known = [digest for digest in promised.get(round_, []) if digest in claims]
        expected = [(claims[digest].worker, claims[digest].claim.round) for digest in known]
        missing = [digest for digest, arrival in zip(known, expected, strict=True) if arrival not in arrivals]
        if missing:
            elsewhere = [other for other in taken.values() if _arrival(claims[missing[0]]) in other]
            name = missing[0].hex()[:16]
            problem = "takes it in another round" if elsewhere else "no round takes it"
            detail = f"has acknowledged claim {name} as an arrival of round {round_}, and {problem}"
            yield ArrivalProblem(round_, missing[0], not elsewhere, detail)
        elif expected != arrivals or twice:
            detail = f"takes {len(arrivals)} arrivals, and its receipts give others, or another order"
            yield ArrivalProblem(round_, known[0] if known else bytes(32), False, detail)


def _arrival(entry: ClaimEntry) -> tuple[str, int]:
    return entry.worker, entry.claim.round
