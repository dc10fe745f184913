"""Asynchronous DiLoCo: nobody waits for the slowest; a server takes pseudo-gradients in the order of their arrival.

Liu et al., Asynchronous Local-SGD Training for Language Modeling, 2401.09135; with a quorum, the synchronizer of
Decoupled DiLoCo, 2604.21428. What arrives first isn't provable: it is what the server's receipts have promised.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessException, start_processes

from pol.decentralised.arrival_server import ArrivalServer, ArrivalWorker, Sent
from pol.decentralised.diloco import LOCAL, MERGE, MESSAGE, SENT, DiLoCo, data_order, merge_step, message_step
from pol.decentralised.parts import small_gpt
from pol.decentralised.processes.exchange import Exchange
from pol.decentralised.processes.local_processes import Author, local_key, meeting_file
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Loop, capture, to_words
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.rounds_log import HEAD, load_head, load_plan
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member
from pol.training.storage.store import Store

Server = Callable[..., ArrivalServer]
"""`ArrivalServer`, or one that cheats."""


@dataclass(frozen=True)
class Decoupled(DiLoCo):
    """Options of a training; a round is a merge of ``quorum`` arrivals, 1 for one after another.

    An arrival has started from a merge at most ``staleness`` rounds before. Inner optimizers begin anew each time.
    """

    rounds: int = 20
    outer_rate: float = 0.7
    momentum: float = 0.0
    quorum: int = 1
    staleness: int = 4


def decoupled_plan(store: Store, options: Decoupled, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of an asynchronous training of the small GPT, stored. The coordinator is the server."""
    model = small_gpt.small_gpt(options.shape)
    text, following = small_gpt.text_rows(options.rows, options.shape.length, seed=1)
    orders = [data_order(options, seat) for seat in range(options.seats)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    local = capture(model, small_gpt.loss, optimizer, (text, following), orders[0], Loop(clip_norm=1.0))
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    builder = PlanBuilder(store)
    merge = merge_step(weights, options.quorum, options.outer_rate, options.momentum)
    arrived = {
        f"{name}.{k}": From(MESSAGE, name, f"arrival:{k}", lag=options.staleness, starts=True)
        for k in range(options.quorum)
        for name in SENT
    }
    kept = {name: From(MERGE, name, lag=1, starts=True) for name in (*weights, "momentum")}
    builder.phase(MERGE, merge, {**kept, **arrived}, author="member:0")
    newest = {name: From(MERGE, name, "member:0") for name in weights}
    at = local.names.constants.index("order")
    data = [[*local.constants[:at], to_words("order", order), *local.constants[at + 1 :]] for order in orders]
    of_local = {slot: newest.get(slot, ALWAYS) for slot in local.names.slots}
    builder.phase(LOCAL, local, of_local, data=data, steps=options.steps, units=options.steps)
    of_message = {
        **{f"before.{name}": newest[name] for name in weights},
        **{f"after.{name}": From(LOCAL, name) for name in weights},
        **dict.fromkeys(SENT, ALWAYS),
    }
    builder.phase(MESSAGE, message_step(weights), of_message)
    said = {"steps": str(options.steps), "quorum": str(options.quorum), "staleness": str(options.staleness)}
    return builder.build("decoupled diloco", coordinator, nonce, options.rounds, said)


def run_decoupled(
    folder: Path,
    plan: RoundsPlan,
    options: Decoupled,
    authors: dict[int, Author] | None = None,
    server: Server = ArrivalServer,
) -> None:
    """Train in ``folder/store`` with processes of this machine: the server, and one for each seat, from 1 on.

    A training whose processes were killed goes on: where only some were, all are started again, as long as rounds pass.
    Functions and classes are given to processes by name: they stand in a module. ``authors`` are those that cheat.
    """
    arguments = (str(folder.resolve()), plan.digest.hex(), options, dict(authors or {}), server)
    log, ended = Store(f"file://{folder.resolve()}/store"), -1
    get_context("forkserver").set_forkserver_preload([__name__])  # torch is imported once for all
    run = partial(start_processes, nprocs=1 + options.seats, join=False, start_method="forkserver")
    while True:
        meeting_file(folder, plan).unlink(missing_ok=True)  # of a run that was killed
        context = run(_work, arguments)
        try:
            while not context.join():
                pass
            return
        except ProcessException:  # of a killed one, or of one that has lost it
            size = load_head(log)[1].size if log.holds(HEAD) else 0
            if size == ended or not any(each.exitcode == -signal.SIGKILL for each in context.processes):
                raise
            ended = size


def _work(rank: int, folder: str, digest: str, options: Decoupled, authors: dict[int, Any], server: Server) -> None:
    torch.set_num_threads(1)
    count = 1 + options.seats
    store = Store(f"file://{folder}/store")
    plan = load_plan(store, digest)
    meeting = f"file://{meeting_file(Path(folder), plan)}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=count)
    keys = [local_key(-1), *(local_key(number) for number in range(1, count))]
    author = authors.get(rank, ClaimAuthor)(store, plan, keys[rank], partial(CpuExecutor, threads=1))
    weights = tuple(name for name, _ in small_gpt.small_gpt(options.shape).named_parameters())
    merge, message = Sent(MERGE, weights), Sent(MESSAGE, SENT)
    if rank == 0:
        # The server has no data: its seat is the one after those that have.
        places = [options.seats, *range(options.seats)]
        members = [Member(key.name, seat) for key, seat in zip(keys, places, strict=True)]
        server(author, Exchange(), members, merge, message, options.quorum, options.staleness).serve()
    else:
        ArrivalWorker(author, Exchange(), merge, LOCAL, message).work()
    dist.destroy_process_group()
