"""Oobleck: after a failure, pipelines are built anew from templates, and stages go on from the state that they had.

Jang et al., Oobleck: Resilient Distributed Training of Large Models Using Pipeline Templates, 2309.08125. There are two
templates: two workers with a stage each, and one worker with both. The state of a stage has one root, whoever holds it:
the rule ``holder:K`` binds the next start to it, so that no partition changes a bit.
"""

from __future__ import annotations

from pol.decentralised.parts.flat_adam import MOMENTS
from pol.decentralised.pipelines.pipeline import update
from pol.decentralised.processes.local_processes import local_key
from pol.errors import ProtocolError
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.message import slots_of
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member, Roster

STAGES = 2


def pipelines(workers: int) -> list[tuple[int, int]]:
    """The places of both stages in each pipeline: pairs, and one worker alone if their number is odd.

    Raises:
        ProtocolError: nobody is left.
    """
    if workers < 1:
        raise ProtocolError("no worker is left: start again from what the log's newest round has published")
    pairs = [(place, place + 1) for place in range(0, workers - 1, 2)]
    return [*pairs, (workers - 1, workers - 1)] if workers % 2 else pairs


def template_roster(plan: RoundsPlan, round_: int, present: list[int], parts: int) -> Roster:
    """The roster of local workers; micro-batches are dealt to the pipelines in turn."""
    members = tuple(Member(local_key(number).name, number) for number in present)
    lanes = pipelines(len(members))
    return Roster(plan.digest, round_, members, routes=tuple(lanes[part % len(lanes)] for part in range(parts)))


def state_roots(rounds: LoggedRounds, round_: int, stages: int = STAGES) -> list[tuple[bytes, ...]]:
    """The roots of weights and moments of each stage after a round: the whole state, independent of its partition.

    Raises:
        ProtocolError: holders of a stage claim different states, or nobody claims one.
    """
    return [_only(_ends(rounds, round_, stage), f"stage {stage} after round {round_}") for stage in range(stages)]


def start_roots(rounds: LoggedRounds, round_: int, stages: int = STAGES) -> list[tuple[bytes, ...]]:
    """As `state_roots`, the roots that the round's updates start from.

    Raises:
        ProtocolError: holders of a stage start from different states, or nobody holds one.
    """
    found = []
    for stage in range(stages):
        starts = set()
        for entry in _updates(rounds, round_, stage):
            sources = rounds.sources(entry)
            starts.add(tuple(sources[slot].root for slot in _slots(rounds, entry)))
        found.append(_only(starts, f"stage {stage} before round {round_}"))
    return found


def _ends(rounds: LoggedRounds, round_: int, stage: int) -> set[tuple[bytes, ...]]:
    found = set()
    for entry in _updates(rounds, round_, stage):
        end = rounds.end(entry)
        found.add(tuple(end[slot].root for slot in _slots(rounds, entry)))
    return found


def _updates(rounds: LoggedRounds, round_: int, stage: int) -> list[ClaimEntry]:
    phases = rounds.plan.phases
    entries = rounds.claims.values()
    return [e for e in entries if e.claim.round == round_ and phases[e.claim.phase].name == update(stage)]


def _slots(rounds: LoggedRounds, entry: ClaimEntry) -> list[int]:
    names = load_phase(rounds.store, rounds.plan.phases[entry.claim.phase]).names
    return slots_of(names, ["weights", *MOMENTS])


def _only(found: set[tuple[bytes, ...]], what: str) -> tuple[bytes, ...]:
    if len(found) != 1:
        raise ProtocolError(f"{what} has {len(found)} states: replay the claims of its holders")
    return found.pop()
