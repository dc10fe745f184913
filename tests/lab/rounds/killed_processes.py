"""Processes of trainings that are killed in the middle of a round: a coordinator, and a worker of a group."""

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from unittest import mock

from pol.arithmetic.primitives import Words
from pol.decentralised.elastic.coordination import Patience
from pol.decentralised.elastic.member_processes import (
    ElasticMember,
    ElasticRound,
    MemberProcesses,
    keep_rounds,
    open_meeting,
)
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.decentralised.processes.local_processes import Round
from pol.decentralised.processes.round_worker import RoundWorker
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace

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
    port, joins = int(open_meeting(0, 1.0).port), {member.number: member.joins for member in members}
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


BEGUN, SHARED, JOURNALED = "begun", "shared", "journaled"
"""When it dies: its round has begun; its claims are signed and shared; all is in the journal and not in the log."""


def dying_round(do_round: Round, flag: str, rank: int, when: str, worker: RoundWorker, round_: int = 1) -> None:
    """``do_round``, in whose round ``round_`` process ``rank`` dies, unless it has died before (``flag``)."""
    is_last = worker.exchange.rank == rank and worker.round == round_ and not Path(flag).exists()
    if is_last and when == BEGUN:
        _die(flag)
    do_round(worker)
    if is_last and when == SHARED:
        _die(flag)
    if is_last and when == JOURNALED:
        mock.patch.object(JournaledKeeper, "_sign_head", partial(_die, flag)).start()


class DyingOnce(ClaimAuthor):
    """Its process is killed in the midst of its second piece of work, once in a training."""

    flag = "died.json"

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        if place.round and self.store.create(self.flag, b"{}"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(place, start, first_step, steps)


def _die(flag: str) -> None:
    Path(flag).touch()
    os.kill(os.getpid(), signal.SIGKILL)
