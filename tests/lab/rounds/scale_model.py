"""What a training of many workers weighs: its log, its proofs, its chain and its stakes, by exact sizes of entries.

`PYTHONPATH=tests python -m lab.rounds.scale_model` writes the tables of docs/guides/rounds.md, "At scale".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, encode_entry
from pol.rounds.log.rounds_log import CHAPTER, PAGE
from pol.rounds.roster import Member, Roster
from pol.rounds.round_claim import END_SIZE, SOURCE_SIZE, RoundClaim

WORKERS, ROUNDS = 1_000, 1_000_000
LENGTH = 4
"""Bytes before each entry of a page."""
WORD = 32
PIECE = 93
"""Bytes of a chapter or a page in the head: its object and its round."""
BLOCK_GAS, BLOCK_SECONDS = 36_000_000, 12
DISPUTE_GAS = 431_479
"""Of a whole dispute about 20 steps of the small GPT, both sides together (`pol demo --decentralised`)."""
SAVED = 0.6
"""Of a claim's work, by a worker that does two fifths of its steps."""
LIARS = 100
SHARES = (0.001, 0.01, 0.05, 0.1)
"""Of the claims, replayed by somebody."""


@dataclass(frozen=True)
class Topology:
    """How workers merge: ``slots`` of each claim of a worker and a round, and the receipts that it signs in it."""

    name: str
    slots: Callable[[int], Sequence[int]]
    receipts: Callable[[int], int]


def diloco(model_slots: int = 29, sent: int = 2) -> Topology:
    """DiLoCo as it is built: each worker receives all messages, and merges them in one claim."""

    def slots(workers: int) -> list[int]:
        return [3 * model_slots, 2 * model_slots + sent, model_slots + 1 + sent * workers]

    return Topology("all with all (DiLoCo)", slots, lambda workers: workers - 1)


def grouped(size: int, model_slots: int = 29, sent: int = 2) -> Topology:
    """Merges in groups, then of groups, and so on: a message and a merge for each level."""

    def levels(workers: int) -> int:
        return ceil(log2(workers) / log2(size) - 1e-9)

    def slots(workers: int) -> list[int]:
        return [3 * model_slots, *[2 * model_slots + sent, model_slots + 1 + sent * size] * levels(workers)]

    return Topology(f"groups of {size}", slots, lambda workers: (size - 1) * levels(workers))


def pairs(model_slots: int = 29, sent: int = 2) -> Topology:
    """One drawn partner a round, as NoLoCo has it."""
    slots = [3 * model_slots, 2 * model_slots + sent, model_slots + 1 + sent * 2]
    return Topology("a drawn partner (NoLoCo)", lambda workers: slots, lambda workers: 1)


def tiny() -> Topology:
    """The training of `lab.rounds.tiny_training`."""
    return Topology("tiny", lambda workers: [2, 1 + workers], lambda workers: workers - 1)


@dataclass(frozen=True)
class Weight:
    """What a training weighs; bytes."""

    entries: int
    log: int
    """Of all entries."""
    objects: int
    """Of rosters, sources and roots of ends of one round, which an audit by roots reads."""
    head: int
    """The one file that is written anew each round."""
    inclusion: int
    """The proof that an entry is in the log."""
    source: int
    """The greatest proof that a slot of a start comes from a slot of an end: two branches."""
    one_audit: int
    """What somebody reads who checks one claim of each phase of one worker: pages of two rounds, objects."""


def weight(topology: Topology, workers: int, rounds: int) -> Weight:
    """The weight of a training, by its topology."""
    slots = topology.slots(workers)
    claims, receipts = workers * len(slots), workers * topology.receipts(workers)
    round_ = rounds - 1
    claim_bytes, receipt_bytes, roster_bytes = (LENGTH + len(encode_entry(e)) for e in _entries(round_))
    entries = rounds * (1 + claims + receipts)
    of_round = roster_bytes + claims * claim_bytes + receipts * receipt_bytes
    objects = workers * sum(slots) * (SOURCE_SIZE + END_SIZE) + _roster_bytes(workers, round_)
    pieces = entries // (PAGE * CHAPTER) + (entries // PAGE) % CHAPTER + 1
    return Weight(
        entries,
        rounds * of_round,
        objects,
        PIECE * pieces,
        WORD * _height(entries),
        2 * WORD * _height(max(slots)),
        2 * of_round + sum(slots) * (SOURCE_SIZE + END_SIZE),
    )


def least_stake(share: float, saved: float = SAVED) -> float:
    """The stake, in costs of a claim, above which no lie pays if a share of the claims is replayed at random.

    Who lies in every claim saves ``saved`` each time until it is found, which is after ``(1 - share) / share`` lies
    that pass; what it saves has to be less than its stake.
    """
    return saved * (1 - share) / share


def caught(share: float, liars: int, seed: int = 0) -> list[int]:
    """The round in which each of so many workers is caught, drawn, if it lies in its local claim of every round."""
    return sorted((np.random.default_rng(seed).geometric(share, liars) - 1).tolist())


def gains(share: float, stake: float, liars: int, seed: int = 0, saved: float = SAVED) -> float:
    """The mean gain of workers that lie until they are found, in costs of a claim, drawn."""
    passed = np.random.default_rng(seed).geometric(share, liars) - 1
    return float(np.mean(passed * saved - stake))


def table() -> str:
    """The tables of the guide."""
    head = "| workers | rounds | merges | entries | log a round | objects a round | head | inclusion | source |"
    lines = [head, "| --- " * 9 + "|"]
    for workers, topology in [
        (16, diloco()),
        (WORKERS, diloco()),
        (WORKERS, grouped(32)),
        (WORKERS, grouped(10)),
        (WORKERS, pairs()),
    ]:
        found = weight(topology, workers, ROUNDS)
        sizes = (found.log // ROUNDS, found.objects, found.head, found.inclusion, found.source)
        shown = " | ".join(_shown(size) for size in sizes)
        lines.append(f"| {workers:,} | {ROUNDS:,} | {topology.name} | {found.entries:,} | {shown} |")
    head = "replayed | least stake, in costs of a claim | lies until found | last caught in round | disputes in a round"
    lines += ["", f"| {head} |", "| --- " * 5 + "|"]
    for share in SHARES:
        rounds = caught(share, LIARS)
        most = max(rounds.count(round_) for round_ in set(rounds))
        shown = f"{least_stake(share):,.1f} | {1 / share:,.0f} | {rounds[-1]:,} | {most} at most"
        lines.append(f"| {share:.1%} of the claims | {shown} |")
    everybody = WORKERS * DISPUTE_GAS
    blocks = ceil(everybody / BLOCK_GAS)
    lines += [
        "",
        f"The last two columns are drawn, for {LIARS} liars among {WORKERS:,} workers, who lie in every round.",
        f"A dispute about 20 steps of the small GPT takes {DISPUTE_GAS:,} gas. If each of {WORKERS:,} workers were",
        f"disputed once, that would fill {blocks} blocks of {BLOCK_GAS / 1e6:.0f} million gas, "
        f"{blocks * BLOCK_SECONDS} seconds of the chain.",
    ]
    return "\n".join(lines)


def _entries(round_: int) -> tuple[LogEntry, LogEntry, LogEntry]:
    """A claim, a receipt and a roster of a round."""
    zeros, name, signature, digest = bytes(32), "0x" + "0" * 40, bytes(65), "0" * 64
    place = (zeros, name, round_, 0, 0)
    claim = RoundClaim(*place, zeros, zeros, zeros, round_, 1, zeros, zeros, zeros)
    return (
        ClaimEntry(claim, signature, digest, digest, digest),
        DeliveryEntry(zeros, round_, zeros, name, signature),
        RosterEntry(digest, signature),
    )


def _roster_bytes(workers: int, round_: int) -> int:
    members = tuple(Member(f"0x{seat:040x}", seat) for seat in range(workers))
    return len(Roster(bytes(32), round_, members).encode())


def _height(leaves: int) -> int:
    return ceil(log2(max(1, leaves)))


def _shown(size: int) -> str:
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_:
            return f"{size / bytes_:.3g} {unit}"
    return f"{size} B"


if __name__ == "__main__":
    print(table())
