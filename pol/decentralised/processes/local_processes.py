"""Workers as processes of this machine: a group over gloo that meets in a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import start_processes

from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.round_worker import RoundWorker, first_round
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.rounds_log import load_plan
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member, Roster
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

Round = Callable[[RoundWorker], None]
"""What a worker does in a round, such as `pol.decentralised.diloco.diloco_round`."""
Author = Callable[..., ClaimAuthor]
"""`ClaimAuthor`, or one that cheats."""


def local_key(number: int) -> WorkerKey:
    """The key of worker ``number`` of a local run, -1 for the coordinator: known to everybody, worth nothing."""
    return WorkerKey(local_secret(number))


def local_secret(number: int) -> bytes:
    """The secret of `local_key`."""
    return (number + 2).to_bytes(32, "big")


def meeting_file(folder: Path, plan: RoundsPlan) -> Path:
    """Where the processes of a local run form their group."""
    return folder / f"meeting-{plan.digest.hex()[:16]}"


def run_workers(
    folder: Path,
    plan: RoundsPlan,
    do_round: Round,
    workers: int,
    cheats: dict[int, Author] | None = None,
    wired: Callable[[Roster], Roster] | None = None,
) -> None:
    """Train all rounds of a plan in ``folder/store``, with one process a worker, or those that its log doesn't have.

    Functions and classes are given to processes by name: they stand in a module. ``cheats`` are authors by worker.
    ``wired`` gives a roster its partners or routes.

    Raises:
        ProtocolError, OperationalError: as `first_round`.
    """
    first = first_round(Store(f"file://{folder.resolve()}/store"), plan, local_key(-1))
    if first == plan.rounds:
        return
    meeting_file(folder, plan).unlink(missing_ok=True)  # of a run that was killed
    arguments = (str(folder.resolve()), plan.digest.hex(), do_round, workers, dict(cheats or {}), wired, first)
    get_context("forkserver").set_forkserver_preload([__name__])  # torch is imported once for all
    run = partial(start_processes, nprocs=workers, start_method="forkserver")
    run(_work, arguments)


def _work(
    rank: int,
    folder: str,
    digest: str,
    do_round: Round,
    workers: int,
    cheats: dict[int, Any],
    wired: Callable[[Roster], Roster] | None,
    first: int,
) -> None:
    torch.set_num_threads(1)
    store = Store(f"file://{folder}/store")
    plan = load_plan(store, digest)
    meeting = f"file://{meeting_file(Path(folder), plan)}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=workers)
    author = cheats.get(rank, ClaimAuthor)(store, plan, local_key(rank), partial(CpuExecutor, threads=1))
    worker = RoundWorker(author, Exchange(), local_key(-1) if rank == 0 else None)
    members = tuple(Member(local_key(number).name, number) for number in range(workers))
    worker.go_on(first)
    for round_ in range(first, plan.rounds):
        roster = Roster(plan.digest, round_, members)
        worker.begin(roster if wired is None else wired(roster))
        do_round(worker)
        worker.finish()
    dist.destroy_process_group()
