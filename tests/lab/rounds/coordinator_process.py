"""A coordinator in a process of its own that is killed in the middle of a round, and started again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pol.decentralised.elastic.coordination import Patience
from pol.decentralised.elastic.member_processes import (
    ElasticMember,
    ElasticRound,
    MemberProcesses,
    keep_rounds,
    open_meeting,
)
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.rounds.plan.rounds_plan import RoundsPlan

_PAUSE = 0.05


class Interrupted(RosterCoordinator):
    """Honest; its process is killed in round 1, when a receipt is signed and kept, and nobody has it yet."""

    def keep(self) -> None:
        super().keep()
        if self.round == 1 and self.delivered > 0:
            os.kill(os.getpid(), signal.SIGKILL)


def train_apart(
    folder: Path,
    plan: RoundsPlan,
    do_round: ElasticRound,
    members: Sequence[ElasticMember],
    shared: tuple[str, Sequence[str]],
    coordinators: Sequence[type[RosterCoordinator]],
    *,
    seats: int,
    patience: Patience,
) -> int:
    """Train all rounds; ``coordinators`` follow each other when one is killed. How many were."""
    port, joins = _free_port(), {member.number: member.joins for member in members}
    context, killed = multiprocessing.get_context("forkserver"), 0

    def started(number: int) -> multiprocessing.process.BaseProcess:
        given = {"seats": seats, "patience": patience, "coordinator": coordinators[number]}
        process = context.Process(target=keep_rounds, args=(folder, plan, shared, joins, port), kwargs=given)
        process.start()
        return process

    coordinator = started(0)
    processes = MemberProcesses(folder, plan, port, do_round, members, patience)
    try:
        while coordinator.exitcode != 0:
            processes.look()
            if coordinator.exitcode == -signal.SIGKILL:
                killed += 1
                coordinator = started(killed)
            assert coordinator.exitcode in (None, 0), "the coordinator has failed"
            time.sleep(_PAUSE)
        processes.join(patience.limit)
    finally:
        coordinator.kill()
        processes.stop()
    return killed


def _free_port() -> int:
    return int(open_meeting(0, 1.0).port)
