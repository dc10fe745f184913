"""Workers as processes of this machine that may die, or join: before each round the coordinator looks who is there.

A process holds a lock on a file as long as it lives. It says that it takes part in a round by a signed heartbeat; the
coordinator, worker 0, signs the roster of those that do, and these form the group of the round.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch
import torch.distributed as dist
from torch import multiprocessing

from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.local_processes import Author, Round, local_key
from pol.decentralised.processes.round_worker import RoundWorker, first_round
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.rounds.admission import HasStake, anybody
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import Change, MembershipEntry, decode_entry, encode_entry
from pol.rounds.log.rounds_log import load_plan
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

RosterOf: TypeAlias = Callable[[RoundsPlan, int, list[int]], Roster]
"""The roster of a round from the numbers of the workers that are there; worker 0 is its first member."""
_PAUSE = 0.01


def run_pipeline(
    folder: Path,
    plan: RoundsPlan,
    do_round: Round,
    workers: int,
    rosters: RosterOf,
    cheats: Mapping[int, Author] | None = None,
    killed: Mapping[int, int] | None = None,
    has_stake: HasStake = anybody,
) -> None:
    """Train all rounds of a plan in ``folder/store``, or those that its log doesn't have yet.

    ``killed`` says before which round a worker gets a SIGKILL.

    Functions and classes are given to processes by name: they stand in a module. Who has no stake counts as not there
    (``has_stake`` as in `RosterCoordinator`).

    Raises:
        ProtocolError: as `first_round`.
        OperationalError: a process has failed, or one of an earlier run still works.
    """
    _clear_meeting(folder)
    first = first_round(Store(f"file://{folder.resolve()}/store"), plan, local_key(-1))
    if first == plan.rounds:
        return
    dying = dict(killed or {})
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # torch is loaded once for all workers
    processes = []
    for number in range(workers):
        author = (cheats or {}).get(number, ClaimAuthor)
        arguments = (
            number,
            str(folder.resolve()),
            plan.digest.hex(),
            do_round,
            workers,
            rosters,
            author,
            dying.get(number, -1),
            has_stake,
            first,
        )
        processes.append(context.Process(target=_work, args=arguments))
        processes[-1].start()
    while any(process.is_alive() for process in processes):
        failed = [n for n, process in enumerate(processes) if process.exitcode and n not in dying]
        if failed:
            for process in processes:
                process.kill()
            for process in processes:
                process.join()  # its locks are free then
            raise OperationalError(f"worker {failed[0]} has failed: its output says why")
        time.sleep(_PAUSE)


def _work(
    number: int,
    folder: str,
    digest: str,
    do_round: Round,
    workers: int,
    rosters: RosterOf,
    author: Author,
    dies_before: int,
    has_stake: HasStake,
    first: int,
) -> None:
    torch.set_num_threads(1)
    meeting = _Meeting(Path(folder), workers, number, first)
    store = Store(f"file://{folder}/store")
    plan = load_plan(store, digest)
    key = local_key(number)
    made = author(store, plan, key, partial(CpuExecutor, threads=1))
    worker = RoundWorker(made, Exchange(), None if number else local_key(-1), has_stake)
    worker.go_on(first)
    for round_ in range(first, plan.rounds):
        if round_ == dies_before:
            os.kill(os.getpid(), signal.SIGKILL)
        meeting.come(MembershipEntry.signed(key, plan.digest, round_, Change.JOIN))
        if number == 0:
            present = meeting.present(round_)
            begun = worker.begun(round_)
            if begun is None:
                present = [one for one in present if has_stake(local_key(one).name)]
                begun = rosters(plan, round_, present)
                new = {member.worker for member in begun.members if member.joined == round_ > 0}
                for notice in meeting.notices(round_, present):
                    if notice.worker in new:
                        worker.admit(notice)
            require_there(begun, present)
            meeting.announce(begun)
        roster = meeting.roster(round_)
        if not meeting.join(roster, key.name):
            made.rosters[round_] = roster
            continue
        worker.begin(roster)
        worker.enter(MembershipEntry.signed(key, plan.digest, round_, Change.HEARTBEAT))
        do_round(worker)
        worker.finish()
    meeting.leave()


def require_there(roster: Roster, present: list[int]) -> None:
    """Check that all members of a round that has begun before a restart are there: it has no other roster.

    Raises:
        OperationalError: one isn't.
    """
    names = {local_key(number).name for number in present}
    gone = [member.worker for member in roster.members if member.worker not in names]
    if gone:
        raise OperationalError(
            f"round {roster.round} has begun with {gone[0]}, which isn't there any more: start it again as well"
        )


def _clear_meeting(folder: Path) -> None:
    """Remove what processes that were killed have left."""
    for path in (folder / "meeting").glob("lock-*"):
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OperationalError(f"a worker of an earlier run still works in {folder}: end it first") from None
    shutil.rmtree(folder / "meeting", ignore_errors=True)


class _Meeting:
    """A folder in which processes find each other, from round ``first`` on: locks, arrivals and rosters."""

    def __init__(self, folder: Path, workers: int, number: int, first: int) -> None:
        self._folder, self._workers, self._number, self._first = folder, workers, number, first
        self._members: list[str] = []
        (folder / "meeting").mkdir(exist_ok=True)
        self._lock = self._path(f"lock-{number}").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def come(self, notice: MembershipEntry) -> None:
        """Say that this process is there, and would join if it isn't a member."""
        self._show(f"here-{notice.round}-{self._number}", encode_entry(notice))

    def notices(self, round_: int, present: list[int]) -> list[MembershipEntry]:
        """What those who have come have signed."""
        read = [decode_entry(self._path(f"here-{round_}-{number}").read_bytes()) for number in present]
        return [notice for notice in read if isinstance(notice, MembershipEntry)]

    def present(self, round_: int) -> list[int]:
        """The workers that have come; waits for each that lives."""
        return [number for number in range(self._workers) if self._comes(round_, number)]

    def _comes(self, round_: int, number: int) -> bool:
        while not self._path(f"here-{round_}-{number}").exists():
            if self._is_dead(number):
                return False
            time.sleep(_PAUSE)
        return True

    def _is_dead(self, number: int) -> bool:
        """Whether a worker that has been there isn't any more."""
        if not self._path(f"here-{self._first}-{number}").exists():
            return False
        with self._path(f"lock-{number}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def announce(self, roster: Roster) -> None:
        """Show the roster of a round."""
        self._show(f"roster-{roster.round}", roster.encode())

    def roster(self, round_: int) -> Roster:
        """The roster of a round, when it is there."""
        path = self._path(f"roster-{round_}")
        while not path.exists():
            if self._is_dead(0):
                raise OperationalError("the coordinator has died: its log ends with the round before")
            time.sleep(_PAUSE)
        return Roster.decode(path.read_bytes())

    def join(self, roster: Roster, name: str) -> bool:
        """Form the group of a round's members; False if this process isn't one."""
        members = [member.worker for member in roster.members]
        if members != self._members:
            self.leave()
            if name in members:
                method = f"file://{self._path(f'group-{roster.round}')}"
                dist.init_process_group("gloo", init_method=method, rank=members.index(name), world_size=len(members))
            self._members = members
        return name in members

    def leave(self) -> None:
        """Leave the group, if there is one."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def _show(self, name: str, content: bytes) -> None:
        """Write a file that others see only whole."""
        draft = self._path(f"{name}.part")
        draft.write_bytes(content)
        draft.rename(self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / "meeting" / name
