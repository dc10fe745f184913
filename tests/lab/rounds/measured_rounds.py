"""What a training in rounds costs and finds: times inside workers, bytes that they send, losses, and drawn lies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pol.arithmetic.primitives import Words
from pol.decentralised.parts import small_gpt
from pol.decentralised.processes.local_processes import Author, Round, local_key, run_workers
from pol.decentralised.processes.round_worker import RoundWorker
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end, load_phase
from pol.rounds.auditing.round_audit import findings_by_roots
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

PlanOf = Callable[[Store, str, bytes], RoundsPlan]
"""The plan in a store, of a coordinator and a nonce."""


class TimedAuthor(ClaimAuthor):
    """Counts the processor time of its programs; all else that a worker does is what proofs and messages cost."""

    seconds = 0.0

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        began = time.process_time()
        end = super().run(place, start, first_step, steps)
        self.seconds += time.process_time() - began
        return end


@dataclass(frozen=True)
class WorkerCost:
    """Of a worker and a round: processor seconds, those of its programs among them, and bytes sent."""

    seconds: float
    program_seconds: float
    sent: float


def timed_round(do_round: Round, folder: str, worker: RoundWorker) -> None:
    """A round whose start is written down: processor time, that of programs, bytes sent."""
    seconds = worker.author.seconds if isinstance(worker.author, TimedAuthor) else 0.0
    with open(f"{folder}/cost-{worker.exchange.rank}", "a") as file:
        file.write(json.dumps([time.process_time(), seconds, worker.exchange.sent]) + "\n")
    do_round(worker)


def trained(
    folder: Path,
    plan_of: PlanOf,
    do_round: Round,
    workers: int,
    cheats: dict[int, Author],
    wired: Callable[[Roster], Roster] | None = None,
) -> LoggedRounds:
    """The rounds that processes of this machine have trained."""
    store = Store(f"file://{folder}/store")
    plan = plan_of(store, local_key(-1).name, bytes(32))
    run_workers(folder, plan, do_round, workers, cheats, wired)
    return read_rounds(store, *load_head(store))


def timed(
    folder: Path,
    plan_of: PlanOf,
    do_round: Round,
    workers: int,
    wired: Callable[[Roster], Roster] | None = None,
) -> tuple[LoggedRounds, list[WorkerCost]]:
    """An honest training and what each worker spent in a round, as `worker_costs`."""
    authors: dict[int, Author] = dict.fromkeys(range(workers), TimedAuthor)
    rounds = trained(folder, plan_of, partial(timed_round, do_round, str(folder)), workers, authors, wired)
    return rounds, worker_costs(folder, workers)


def worker_costs(folder: Path, workers: int) -> list[WorkerCost]:
    """What `timed_round` has written of each worker, without the first round (compilers) and the last one (no end)."""
    costs = []
    for worker in range(workers):
        lines = [json.loads(line) for line in (folder / f"cost-{worker}").read_text().splitlines()]
        first, last, between = lines[1], lines[-1], len(lines) - 2
        costs.append(WorkerCost(*((b - a) / between for a, b in zip(first, last, strict=True))))
    return costs


def ddp_bytes(parameters: int, workers: int, steps: int) -> float:
    """Bytes that a worker sends in a ring's all-reduce of float32 gradients, for so many steps."""
    return steps * 2 * (workers - 1) / workers * 4 * parameters


def found_share(rounds: LoggedRounds, liars: Mapping[int, str]) -> float:
    """The share of liars, with the phase of their lie, that roots or a replay of their claims of that phase show.

    Anybody else who is accused makes it 0.
    """
    guilty = {(local_key(number).name, phase) for number, phase in liars.items()}
    drawn = [c for c in rounds.claims.values() if (c.worker, rounds.plan.phases[c.claim.phase].name) in guilty]
    accused = {(f.worker, f.phase) for f in findings_by_roots(rounds)}
    accused |= {(f.worker, f.phase) for f in findings_by_replay(rounds, drawn, CpuExecutor)}
    return 0.0 if accused - guilty else len(accused & guilty) / len(guilty)


def final_weights(rounds: LoggedRounds, phase: str) -> dict[str, torch.Tensor]:
    """The slots by name that the last claim of a phase has in its file."""
    entries = [e for e in rounds.claims.values() if rounds.plan.phases[e.claim.phase].name == phase]
    last = max(entries, key=lambda entry: entry.claim.place)
    loaded = load_phase(rounds.store, rounds.plan.phases[last.claim.phase])
    return {
        loaded.names.slots[slot]: torch.from_numpy(words.view(np.float32))
        for slot, words in load_end(rounds, last).items()
    }


def gpt_loss(shape: small_gpt.Shape, rows: int, weights: Mapping[str, torch.Tensor]) -> float:
    """The loss of the small GPT with some weights over text that no worker has seen."""
    model = small_gpt.small_gpt(shape)
    model.load_state_dict({name: weights[name] for name, _ in model.named_parameters()})
    return _loss(model, shape, rows)


def plain_loss(
    shape: small_gpt.Shape,
    rows: int,
    orders: Sequence[torch.Tensor],
    rate: float,
    base: Mapping[str, torch.Tensor] | None = None,
) -> float:
    """The loss after `plainly_trained`."""
    return _loss(plainly_trained(shape, rows, orders, rate, base), shape, rows)


def plainly_trained(
    shape: small_gpt.Shape,
    rows: int,
    orders: Sequence[torch.Tensor],
    rate: float,
    base: Mapping[str, torch.Tensor] | None = None,
) -> small_gpt.SmallGpt:
    """Plain AdamW on the same rows: each step takes those of all workers as one batch."""
    model = small_gpt.small_gpt(shape)
    if base is not None:
        model.load_state_dict(dict(base))
    text, following = small_gpt.text_rows(rows, shape.length, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for chosen in torch.cat(list(orders), 1):
        optimizer.zero_grad()
        loss = small_gpt.loss(model(text[chosen]), following[chosen])
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def _loss(model: nn.Module, shape: small_gpt.Shape, rows: int) -> float:
    text, following = small_gpt.text_rows(rows, shape.length, seed=2)
    with torch.no_grad():
        return float(small_gpt.loss(model(text), following))
