"""The workers of the decentralised demo: one joins late, one is killed and goes on from the store, one cheats."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pol.decentralised.diloco import MESSAGE, SENT, DiLoCo, diloco_round
from pol.decentralised.elastic.coordination import Patience
from pol.decentralised.elastic.member_processes import ElasticMember, run_members
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.demo.cheating_workers import Mortal, Sandbagger
from pol.rounds.log.log_entries import RosterEntry
from pol.rounds.plan.rounds_plan import RoundsPlan


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
