"""DiLoCo with two workers: what proofs cost, what workers send, what the model learns; and honest rounds at random."""

import json
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.benchmarks.figure import Figure
from lab.rounds.membership_drill import MembershipDrill
from pol.arithmetic.primitives import Words
from pol.decentralised.diloco import MERGE, DiLoCo, data_order, diloco_plan, diloco_round
from pol.decentralised.parts import small_gpt
from pol.decentralised.processes.local_processes import local_key, run_workers
from pol.decentralised.processes.round_worker import RoundWorker
from pol.rounds.auditing.claim_replay import load_end, load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.logged_rounds import read_rounds
from pol.rounds.log.rounds_log import load_head
from pol.rounds.plan.source_rules import ClaimPlace
from pol.training.storage.store import Store

OPTIONS = DiLoCo(rounds=4, steps=100, seats=2, sizes=(2,), batch=16, shape=small_gpt.Shape(3, 64, 4, 32))
DRILLED = 1000
"""Rounds."""


class TimedAuthor(ClaimAuthor):
    """Counts the processor time of its programs; all else that a worker does is what proofs and messages cost."""

    seconds = 0.0

    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        """The end, as ever."""
        began = time.process_time()
        end = super().run(place, start, first_step, steps)
        self.seconds += time.process_time() - began
        return end


def rounds_figures() -> dict[str, Figure]:
    """A share of a round's processor time, bytes of a worker and a round, losses; whom honest rounds accuse."""
    with tempfile.TemporaryDirectory() as name:
        folder, seats = Path(name), OPTIONS.seats
        store = Store(f"file://{folder}/store")
        plan = diloco_plan(store, OPTIONS, local_key(-1).name, bytes(32))
        run_workers(folder, plan, partial(_noted, name), seats, dict.fromkeys(range(seats), TimedAuthor))
        costs = [_cost(folder / f"cost-{local_key(number).name}") for number in range(seats)]
        rounds = read_rounds(store, *load_head(store))
        merges = [e for e in rounds.claims.values() if plan.phases[e.claim.phase].name == MERGE]
        last = max(merges, key=lambda entry: entry.claim.place)
        names = load_phase(store, plan.phases[last.claim.phase]).names.slots
        weights = {
            names[slot]: torch.from_numpy(words.view(np.float32)) for slot, words in load_end(rounds, last).items()
        }
    trained = small_gpt.small_gpt(OPTIONS.shape)
    trained.load_state_dict({name: weights[name] for name, _ in trained.named_parameters()})
    loss, plain, sent = _loss(trained), _loss(_plainly_trained()), max(sent for _, _, sent in costs)
    parameters = sum(parameter.numel() for parameter in trained.parameters())
    ring = OPTIONS.steps * 2 * (seats - 1) / seats * 4 * parameters
    overhead = max(1 - programs / seconds for seconds, programs, _ in costs)
    return {
        "diloco_overhead": Figure(overhead, "of the processor time of a round"),
        "diloco_bytes_vs_ddp": Figure(
            sent, "bytes of a worker and a round", "all-reduced float32 gradients", sent / ring
        ),
        "diloco_loss_vs_plain": Figure(loss, "nats, text not seen", "plain AdamW on the same rows", loss / plain),
        **drill_figures(),
    }


def _noted(folder: str, worker: RoundWorker) -> None:
    """A round whose start is written down: processor time so far, that of programs, bytes sent."""
    programs = worker.author.seconds if isinstance(worker.author, TimedAuthor) else 0.0
    with open(f"{folder}/cost-{worker.author.name}", "a") as file:
        file.write(json.dumps([time.process_time(), programs, worker.exchange.sent]) + "\n")
    diloco_round(worker)


def _cost(file: Path) -> tuple[float, ...]:
    """The mean of a round, without the first one, in which kernels are made, and the last one, which has no end."""
    lines = [json.loads(line) for line in file.read_text().splitlines()][1:]
    return tuple((last - first) / (len(lines) - 1) for first, last in zip(lines[0], lines[-1], strict=True))


def _plainly_trained() -> nn.Module:
    """Plain AdamW on the same rows: each step takes those of all workers as one batch."""
    model = small_gpt.small_gpt(OPTIONS.shape)
    text, following = small_gpt.text_rows(OPTIONS.rows, OPTIONS.shape.length, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=OPTIONS.rate)
    for chosen in torch.cat([data_order(OPTIONS, seat) for seat in range(OPTIONS.seats)], 1):
        optimizer.zero_grad()
        loss = small_gpt.loss(model(text[chosen]), following[chosen])
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def _loss(model: nn.Module) -> float:
    text, following = small_gpt.text_rows(OPTIONS.rows, OPTIONS.shape.length, seed=2)
    with torch.no_grad():
        return float(small_gpt.loss(model(text), following))


def drill_figures() -> dict[str, Figure]:
    """Joins, leaves, deaths and delays of honest workers: whom roots, receipts and replays of all claims accuse."""
    with tempfile.TemporaryDirectory() as folder:
        drill = MembershipDrill.of(Store(f"file://{folder}"), HashStore(), DRILLED, seed=1)
        drill.play()
        accused = {finding.worker for finding in drill.findings()}
        return {
            f"honest_accused_in_{DRILLED}_rounds": Figure(len(accused), "workers and coordinators"),
            "drill_claims": Figure(len(drill.rounds().claims), "claims"),
            "drill_deaths": Figure(drill.happened["dies"] + drill.happened["dies and is back"], "deaths"),
            "drill_joins": Figure(drill.happened["joins"], "joins"),
        }
