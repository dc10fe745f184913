"""The workers of the decentralised demo: one joins late, one is killed and goes on from the store, one cheats."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pol.arithmetic.primitives import Words
from pol.decentralised.diloco import LOCAL, MESSAGE, SENT, DiLoCo, diloco_round
from pol.decentralised.elastic.coordination import Patience
from pol.decentralised.elastic.member_processes import ElasticMember, run_members
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import RosterEntry
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace


class Sandbagger(ClaimAuthor):
    """Does two fifths of the steps of one round, goes on in the same direction, and adds a little noise."""

    def __init__(self, *given: Any, lying_round: int = 1) -> None:
        super().__init__(*given)
        self.lying_round = lying_round

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end of a phase's program, or what looks like it."""
        if self.plan.phases[place.phase].name != LOCAL or place.round != self.lying_round:
            return super().run(place, start, first_step, steps)
        done = 2 * steps // 5
        end = super().run(place, start, first_step, done)
        noise = np.random.default_rng(0)
        return [_extrapolated(before, after, steps / done, noise) for before, after in zip(start, end, strict=True)]


class Mortal(ClaimAuthor):
    """Honest; its process is killed in a round, when its work is signed and its message isn't sent yet."""

    def __init__(self, *given: Any, last_round: int) -> None:
        super().__init__(*given)
        self.last_round = last_round

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end of a phase's program, or no end at all."""
        if self.plan.phases[place.phase].name == MESSAGE and place.round == self.last_round:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(place, start, first_step, steps)


def _extrapolated(before: Words, after: Words, times: float, noise: np.random.Generator) -> Words:
    start, end = before.view(np.float32), after.view(np.float32)
    moved = start + (end - start) * np.float32(times)
    return (moved * (1 + 1e-3 * noise.standard_normal(moved.shape))).astype(np.float32).view(np.uint32)


def patience() -> Patience:
    """Of the coordinator, which has imported what members have to import first; four of them may share a core.

    Members are never given up in the story: its processes are known to come back.
    """
    imported = time.process_time()
    return Patience(members=max(90.0, 50 * imported), least=3, limit=max(180.0, 100 * imported))


@dataclass(frozen=True)
class Cast:
    """Workers by number, and the rounds in which something happens to them."""

    honest: int = 0
    liar: int = 1
    victim: int = 2
    joiner: int = 3
    join_round: int = 1
    kill_round: int = 2
    lying_round: int = 3

    @property
    def members(self) -> tuple[ElasticMember, ...]:
        """The workers as processes."""
        return (
            ElasticMember(self.honest),
            ElasticMember(self.liar, author=partial(Sandbagger, lying_round=self.lying_round)),
            ElasticMember(self.victim, author=partial(Mortal, last_round=self.kill_round)),
            ElasticMember(self.joiner, joins=self.join_round),
        )


def run_cast(
    folder: Path,
    plan: RoundsPlan,
    options: DiLoCo,
    cast: Cast,
    tell: Callable[[str], None],
    advance: Callable[[int, int], None],
) -> None:
    """Train all rounds of a plan in ``folder/store``; this process coordinates.

    ``tell`` hears of joins and restarts, ``advance(done, total)`` of the end of each round.

    Raises:
        OperationalError: a worker has failed, or is silent for too long.
    """

    class Narrated(RosterCoordinator):
        def begin_round(self) -> RosterEntry:
            entry = super().begin_round()
            members = () if self.roster is None else self.roster.members
            for member in members:
                if member.joined == self.round > 0:
                    tell(f"Worker {member.worker[:10]}.. joins in round {self.round}: it has signed that it does.")
            return entry

        def end_round(self) -> RosterEntry:
            entry = super().end_round()
            advance(self.round + 1, plan.rounds)
            return entry

    def restarted(number: int) -> None:
        tell(
            f"SIGKILL: the process of worker {number} is gone, between its signed work and its message. It is started "
            "again with nothing but the store, and signs nothing else than before."
        )

    run_members(
        folder,
        plan,
        diloco_round,
        cast.members,
        (MESSAGE, SENT),
        seats=options.seats,
        patience=patience(),
        coordinator=Narrated,
        restarted=restarted,
    )
