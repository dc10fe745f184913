"""Elastic workers as processes of this machine, which meet in a TCPStore; killed ones are started again.

The store of the meeting stands in the coordinator's process. When that is killed, workers wait for one on its port.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.distributed import DistNetworkError, TCPStore  # type: ignore[attr-defined]  # torch exports it without a list

from pol.decentralised.elastic.coordination import Patience, coordinate
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.decentralised.processes.local_processes import Author, local_key
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.rounds_log import load_plan
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

LOOPBACK = "127.0.0.1"
_PAUSE = 0.1
ElasticRound = Callable[[ElasticWorker], None]
"""What a worker does in a round, such as `pol.decentralised.diloco.diloco_round`."""


@dataclass(frozen=True)
class ElasticMember:
    """One worker: the rounds from which it takes part and before which it leaves; its author, or one that cheats.

    When its process is killed, it is started again at once, as an honest one; with ``absent``, only after the
    round in which it was killed has ended.
    """

    number: int
    joins: int = 0
    leaves: int | None = None
    author: Author = ClaimAuthor
    worker: type[ElasticWorker] = ElasticWorker
    absent: bool = False


def run_members(
    folder: Path,
    plan: RoundsPlan,
    do_round: ElasticRound,
    members: Sequence[ElasticMember],
    shared: tuple[str, Sequence[str]],
    *,
    seats: int,
    patience: Patience,
    coordinator: type[RosterCoordinator] = RosterCoordinator,
    restarted: Callable[[int], None] = lambda number: None,
) -> None:
    """Train all rounds of a plan in ``folder/store``; this process coordinates. ``shared`` is as in `coordinate`.

    If the process is killed, its workers end; called again, it goes on where it was. ``restarted`` hears of each worker
    that was killed and is started again.

    Raises:
        ProtocolError, OperationalError: as `coordinate`; a worker has failed.
    """
    meeting, store = open_meeting(0, patience.limit), Store(f"file://{folder}/store")
    keeper = coordinator(store, plan, local_key(-1), seats)
    present = [member for member in members if member.leaves is None or keeper.round < member.leaves]
    expect_members(keeper, {member.number: member.joins for member in present})
    processes = MemberProcesses(folder, plan, meeting.port, do_round, present, patience, keeper, restarted)
    try:
        coordinate(keeper, Mailbox(meeting, patience.limit), shared, patience, processes.look)
        processes.join(patience.limit)
    finally:
        processes.stop()


def keep_rounds(
    folder: Path,
    plan: RoundsPlan,
    shared: tuple[str, Sequence[str]],
    joins: Mapping[int, int],
    port: int,
    *,
    seats: int,
    patience: Patience,
    coordinator: type[RosterCoordinator] = RosterCoordinator,
) -> None:
    """As `run_members`, the coordinator alone: workers are processes of others that meet at ``port``.

    If the process is killed, workers wait; called again, it goes on where it was. ``joins`` are the rounds from which
    workers take part.
    """
    store = Store(f"file://{folder}/store")
    keeper = coordinator(store, plan, local_key(-1), seats)
    expect_members(keeper, joins)
    mailbox = Mailbox(open_meeting(port, patience.limit), patience.limit)
    coordinate(keeper, mailbox, shared, patience)
    members = () if keeper.roster is None else keeper.roster.members
    mailbox.await_departures([member.worker for member in members], patience.members)


def open_meeting(port: int, seconds: float) -> TCPStore:
    """A store in this process, at a port of this machine, 0 for any that is free.

    Raises:
        OperationalError: the port isn't free.
    """
    try:
        listening = socket.create_server((LOOPBACK, port))  # by itself a TCPStore listens on all interfaces
    except OSError as error:
        raise OperationalError(f"can't listen at port {port} ({error}): does another coordinator run?") from error
    port, handle, wait = listening.getsockname()[1], listening.detach(), timedelta(seconds=seconds)
    return TCPStore(LOOPBACK, port, is_master=True, wait_for_workers=False, timeout=wait, master_listen_fd=handle)


def join_meeting(port: int, seconds: float) -> TCPStore:
    """The store that a coordinator has opened at a port, waited for.

    Raises:
        OperationalError: none is there in so many seconds.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((LOOPBACK, port), timeout=seconds).close()
            return TCPStore(LOOPBACK, port, is_master=False, timeout=timedelta(seconds=seconds))
        except (OSError, DistNetworkError) as error:
            if time.monotonic() > until:
                problem = f"no coordinator is at port {port} in {seconds:.0f} s: start it again, then this worker"
                raise OperationalError(problem) from error
            time.sleep(_PAUSE)


def expect_members(keeper: RosterCoordinator, joins: Mapping[int, int]) -> None:
    """Have a coordinator wait for workers, however slowly they start, before the rounds from which they take part."""
    for number, round_ in joins.items():
        keeper.expect(local_key(number).name, round_)


class MemberProcesses:
    """Workers that run, as processes; ``keeper`` is their coordinator, if it is in this process."""

    def __init__(
        self,
        folder: Path,
        plan: RoundsPlan,
        port: int,
        do_round: ElasticRound,
        members: Sequence[ElasticMember],
        patience: Patience,
        keeper: RosterCoordinator | None = None,
        restarted: Callable[[int], None] = lambda number: None,
    ) -> None:
        self._work = (str(folder.resolve()), plan.digest.hex(), port, do_round, patience.limit)
        self._keeper, self._restarted = keeper, restarted
        self._context = multiprocessing.get_context("forkserver")  # imports torch once
        self._context.set_forkserver_preload([__name__])
        self._members = {member.number: member for member in members}
        self._running = {member.number: self._start(member, is_first=True) for member in members}
        self._killed_in: dict[int, int] = {}

    def look(self) -> None:
        """Start those again that were killed. Raises OperationalError: one has failed by itself."""
        for number, process in self._running.items():
            if process.exitcode is None or process.exitcode == 0:
                continue
            if process.exitcode > 0:
                raise OperationalError(f"worker {number} has failed with status {process.exitcode}: see its output")
            if self._may_return(number):
                self._running[number] = self._start(self._members[number], is_first=False)
                self._restarted(number)

    def _may_return(self, number: int) -> bool:
        keeper = self._keeper
        if keeper is None or not self._members[number].absent:
            return True
        died = self._killed_in.setdefault(number, keeper.round)
        keeper.lose(local_key(number).name)
        return keeper.roster is None or keeper.roster.round > died or not keeper.is_begun

    def join(self, seconds: float) -> None:
        """Wait for all."""
        for number, process in self._running.items():
            process.join(seconds)
            if process.exitcode is None or process.exitcode > 0:
                raise OperationalError(f"worker {number} hasn't ended well: see its output")

    def stop(self) -> None:
        """End those that still run."""
        for process in self._running.values():
            process.kill()

    def _start(self, member: ElasticMember, is_first: bool) -> Any:
        process = self._context.Process(target=_work, args=(*self._work, member, is_first), daemon=True)
        process.start()
        return process


def _work(
    folder: str, digest: str, port: int, do_round: ElasticRound, seconds: float, member: ElasticMember, is_first: bool
) -> None:
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connect = partial(join_meeting, port, seconds)
    store = Store(f"file://{folder}/store")
    plan = load_plan(store, digest)
    kind = member.author if is_first else ClaimAuthor
    author = kind(store, plan, local_key(member.number), partial(CpuExecutor, threads=1))
    worker = (member.worker if is_first else ElasticWorker)(author, Mailbox(connect(), seconds, connect))
    worker.take_part(do_round, member.joins if is_first else 0, member.leaves)


def _end_with_parent() -> None:
    """End when the process is gone that has started this one: started again, that starts another worker of this key."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
