"""Elastic workers as processes of this machine, which meet in a TCPStore; killed ones are started again."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # torch exports it without a list

from pol.decentralised.elastic.coordination import Patience, coordinate
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.decentralised.processes.local_processes import Author, local_key
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.rounds_plan import DOCUMENT_LIMIT, RoundsPlan
from pol.training.storage.store import Store

LOOPBACK = "127.0.0.1"
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

    ``restarted`` hears of each worker that was killed and is started again.

    Raises:
        ProtocolError, OperationalError: as `coordinate`; a worker has failed.
    """
    wait = timedelta(seconds=patience.limit)
    listening = socket.create_server((LOOPBACK, 0))  # by itself a TCPStore listens on all interfaces
    port, handle = listening.getsockname()[1], listening.detach()
    meeting = TCPStore(LOOPBACK, port, is_master=True, wait_for_workers=False, timeout=wait, master_listen_fd=handle)
    store = Store(f"file://{folder}/store")
    keeper = coordinator(store, plan, local_key(-1), seats)
    work = (str(folder.resolve()), plan.digest.hex(), meeting.port, do_round, patience.limit)
    processes = _Processes(work, members, keeper, restarted)
    try:
        coordinate(keeper, Mailbox(meeting, patience.limit), shared, patience, processes.look)
        processes.join(patience.limit)
    finally:
        processes.stop()


class _Processes:
    def __init__(
        self,
        work: tuple[Any, ...],
        members: Sequence[ElasticMember],
        keeper: RosterCoordinator,
        restarted: Callable[[int], None],
    ) -> None:
        self._work, self._keeper, self._restarted = work, keeper, restarted
        self._context = multiprocessing.get_context("forkserver")  # imports torch once
        self._context.set_forkserver_preload([__name__])
        self._members = {member.number: member for member in members}
        self._running = {member.number: self._start(member, is_first=True) for member in members}
        self._killed_in: dict[int, int] = {}

    def look(self) -> None:
        """Start those again that were killed."""
        for number, process in self._running.items():
            if process.exitcode is None or process.exitcode == 0:
                continue
            if process.exitcode > 0:
                raise OperationalError(f"worker {number} has failed with status {process.exitcode}: see its output")
            member, roster = self._members[number], self._keeper.roster
            died = self._killed_in.setdefault(number, self._keeper.round)
            is_over = roster is None or roster.round > died or not roster.provisional
            if member.absent:
                self._keeper.lose(local_key(number).name)
            if not member.absent or is_over:
                self._running[number] = self._start(member, is_first=False)
                self._restarted(number)

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
    meeting = TCPStore(LOOPBACK, port, is_master=False, timeout=timedelta(seconds=seconds))
    store = Store(f"file://{folder}/store")
    plan = RoundsPlan.decode(store.get(digest, limit=DOCUMENT_LIMIT))
    kind = member.author if is_first else ClaimAuthor
    author = kind(store, plan, local_key(member.number), partial(CpuExecutor, threads=1))
    worker = (member.worker if is_first else ElasticWorker)(author, Mailbox(meeting, seconds))
    worker.take_part(do_round, member.joins if is_first else 0, member.leaves)
