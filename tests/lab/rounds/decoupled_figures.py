"""Figures of asynchronous DiLoCo, whose workers have no round in common."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.benchmarks.figure import Figure
from lab.rounds.decoupled_cheats import LyingServer, Shouting, StaleMerge
from lab.rounds.measured_rounds import TimedAuthor, ddp_bytes, final_weights, gpt_loss, plain_loss
from lab.rounds.system_figures import system_figures
from pol.arithmetic.primitives import Words
from pol.decentralised.arrival_server import Sent
from pol.decentralised.decoupled import Decoupled, decoupled_plan, run_decoupled
from pol.decentralised.diloco import LOCAL, MERGE, MESSAGE, SENT, data_order
from pol.decentralised.parts.small_gpt import Shape
from pol.decentralised.processes.local_processes import local_key
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end
from pol.rounds.auditing.round_audit import findings_by_roots
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.log_entries import encode_entry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.round_claim import BoundSlot
from pol.training.storage.store import Store

OPTIONS = Decoupled(rounds=12, steps=60, seats=2, batch=16, shape=Shape(3, 64, 4, 32))
SMALL = Decoupled(rounds=7, steps=3, seats=3, quorum=2)


class NotedAuthor(TimedAuthor):
    """Writes down processor times whenever it signs: all of the process's, and those of programs."""

    def __init__(self, folder: str, *given: Any) -> None:
        super().__init__(*given)
        self._folder = folder

    def sign(self, place: ClaimPlace, sources: Sequence[BoundSlot], end: Sequence[Words]) -> MadeClaim:
        made = super().sign(place, sources, end)
        with open(f"{self._folder}/cost-{self.name}", "a") as file:
            file.write(json.dumps([time.process_time(), self.seconds]) + "\n")
        return made


def decoupled_figures(folder: Path) -> dict[str, Figure]:
    """Its four figures; the overhead is that of a worker, from its first signature to its last."""
    honest = _trained(folder / "honest", OPTIONS, {n: partial(NotedAuthor, str(folder)) for n in (1, 2)})
    weights = final_weights(honest, MERGE)
    del weights["momentum"]
    steps = (OPTIONS.rounds - 1) * OPTIONS.quorum * OPTIONS.steps // OPTIONS.seats
    orders = [data_order(OPTIONS, seat)[:steps] for seat in range(OPTIONS.seats)]
    return system_figures(
        max(_overhead(folder / f"cost-{local_key(number).name}") for number in (1, 2)),
        _sent(honest),
        ddp_bytes(sum(weight.numel() for weight in weights.values()), OPTIONS.seats, OPTIONS.steps),
        gpt_loss(OPTIONS.shape, OPTIONS.rows, weights),
        plain_loss(OPTIONS.shape, OPTIONS.rows, orders, OPTIONS.rate),
        _found(_trained(folder / "lying", SMALL, {0: StaleMerge, 2: Shouting}, LyingServer)),
    )


def _trained(folder: Path, options: Decoupled, authors: dict[int, Any], *server: Any) -> LoggedRounds:
    store = Store(f"file://{folder}/store")
    plan = decoupled_plan(store, options, local_key(-1).name, bytes(32))
    run_decoupled(folder, plan, options, authors, *server)
    return read_rounds(store, *load_head(store))


def _overhead(file: Path) -> float:
    lines: list[tuple[float, float]] = [json.loads(line) for line in file.read_text().splitlines()]
    seconds, programs = (last - first for first, last in zip(lines[1], lines[-1], strict=True))
    return 1 - programs / seconds


def _sent(rounds: LoggedRounds) -> float:
    """Bytes of a message with the claim of its steps."""
    plan = rounds.plan
    named = {plan.phases[entry.claim.phase].name: entry for entry in rounds.claims.values()}
    entry, end = named[MESSAGE], tuple(rounds.end(named[MESSAGE]))
    made = MadeClaim(entry, end, load_end(rounds, entry))
    author = ClaimAuthor(rounds.store, plan, local_key(0), CpuExecutor)
    return len(Sent(MESSAGE, SENT).encode(author, made)) + len(encode_entry(named[LOCAL]))


def _found(rounds: LoggedRounds) -> float:
    """The share of the four lies that roots or replays show; 0 if anybody else is accused."""
    server, liar = local_key(-1).name, local_key(2).name
    told = {(found.worker, found.lie, found.phase) for found in findings_by_roots(rounds)}
    told |= {
        (found.worker, found.lie, found.phase)
        for found in findings_by_replay(rounds, rounds.claims.values(), CpuExecutor)
    }
    accused = {worker for worker, _, _ in told}
    return 0.0 if accused - {server, liar} else len(told) / 4
