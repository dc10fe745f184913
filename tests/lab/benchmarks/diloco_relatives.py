"""Figures of DiLoCo's relatives: elastic trainings, lo-fi, NoLoCo; whom a thousand honest rounds accuse."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.benchmarks.figure import Figure
from lab.rounds.diloco_cheats import Magnifier
from lab.rounds.elastic_cheats import Equivocator, IdleJoiner
from lab.rounds.lofi_cheats import BaseSender, Copycat
from lab.rounds.measured_rounds import (
    TimedAuthor,
    WorkerCost,
    ddp_bytes,
    final_weights,
    found_share,
    gpt_loss,
    plain_loss,
    plainly_trained,
    timed,
    trained,
)
from lab.rounds.membership_drill import MembershipDrill
from lab.rounds.noloco_cheats import Loner
from lab.rounds.system_figures import system_figures
from pol.decentralised.diloco import LOCAL, MERGE, MESSAGE, SENT, DiLoCo, data_order, diloco_plan, diloco_round
from pol.decentralised.elastic.coordination import Patience
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.member_processes import ElasticMember, run_members
from pol.decentralised.lofi import MEAN, TUNED, LoFi, lofi_plan, lofi_round
from pol.decentralised.noloco import MIXED, NoLoCo, noloco_plan, noloco_round, with_drawn_partners
from pol.decentralised.parts.local_training import seat_order
from pol.decentralised.parts.small_gpt import Shape, small_gpt
from pol.decentralised.processes.local_processes import local_key
from pol.decentralised.processes.round_worker import PhaseWorker, RoundWorker
from pol.demo.cheating_workers import Sandbagger
from pol.rounds.auditing.claim_replay import load_start
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.published_claim import published_claim
from pol.training.storage.store import Store

LARGE, SMALL = Shape(3, 64, 4, 32), Shape(1, 16, 2, 8)
PARAMETERS = sum(parameter.numel() for parameter in small_gpt(LARGE).parameters())
DRILLED = 1000
"""Rounds."""


def elastic_figures(folder: Path) -> dict[str, Figure]:
    """DiLoCo with members that change: costs of two that stay; lies of four, one of which joins late."""
    large = DiLoCo(rounds=4, steps=100, seats=2, sizes=(1, 2), batch=16, shape=LARGE)
    honest = [ElasticMember(number, author=TimedAuthor) for number in range(2)]
    noted = partial(_noted, diloco_round, str(folder))
    rounds = _elastic(folder / "honest", large, honest, noted)
    costs = [_cost(folder, local_key(number).name, first=1) for number in range(2)]
    small = DiLoCo(rounds=4, steps=5, seats=4, sizes=(1, 2, 3, 4), shape=SMALL)
    liars = [
        ElasticMember(0, author=Sandbagger),
        ElasticMember(1, author=Magnifier),
        ElasticMember(2, worker=Equivocator),
        ElasticMember(3, joins=2, author=IdleJoiner),
    ]
    lying = _elastic(folder / "lying", small, liars, diloco_round)
    joining = [*map(ElasticMember, range(3)), ElasticMember(3, joins=2)]
    joined = _elastic(folder / "joined", small, joining, diloco_round)
    orders = [data_order(large, seat) for seat in range(large.seats)]
    figures = system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(PARAMETERS, large.seats, large.steps),
        gpt_loss(large.shape, large.rows, final_weights(rounds, MERGE)),
        plain_loss(large.shape, large.rows, orders, large.rate),
        found_share(lying, {0: LOCAL, 1: MESSAGE, 2: MESSAGE, 3: LOCAL}),
    )
    return figures | {"late_joiner_root_equal": Figure(float(_starts_from_merge(joined, 3)), "1 if it is")}


def lofi_figures(folder: Path) -> dict[str, Figure]:
    """Fine-tunings of a model that was trained before, and their mean."""
    large = LoFi(parts=4, steps=100, seats=2, batch=16, shape=LARGE)
    before = plainly_trained(LARGE, large.rows, [seat_order(large.rows, 1, 0, 300, large.batch)], 3e-3)
    base = {name: parameter.detach() for name, parameter in before.named_parameters()}

    def plan_of(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
        return lofi_plan(store, large, coordinator, nonce, base)

    authors = dict.fromkeys(range(large.seats), TimedAuthor)
    noted = partial(_noted_lofi, large, str(folder))
    rounds = trained(folder / "honest", plan_of, noted, large.seats, {**authors})
    costs = [_cost(folder, local_key(number).name, first=0) for number in range(large.seats)]
    small = LoFi(parts=2, steps=3, shape=SMALL)
    lying = trained(
        folder / "lying",
        lambda *given: lofi_plan(given[0], small, *given[1:]),
        partial(lofi_round, small),
        small.seats,
        {1: BaseSender, 2: Copycat},
    )
    steps = large.parts * large.steps
    orders = [seat_order(large.rows, large.seats, seat, steps, large.batch) for seat in range(large.seats)]
    return system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(PARAMETERS, large.seats, steps),
        gpt_loss(LARGE, large.rows, final_weights(rounds, MEAN)),
        plain_loss(LARGE, large.rows, orders, large.rate, base),
        found_share(lying, {1: TUNED, 2: TUNED}),
    )


def noloco_figures(folder: Path) -> dict[str, Figure]:
    """Outer steps with one drawn partner."""
    large = NoLoCo(rounds=4, steps=100, seats=2, batch=16, shape=LARGE)

    def plan_of(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
        return noloco_plan(store, large, coordinator, nonce)

    rounds, costs = timed(folder / "honest", plan_of, noloco_round, large.seats, with_drawn_partners)
    small = NoLoCo(rounds=3, steps=3, seats=2, shape=SMALL)
    lying = trained(
        folder / "lying",
        lambda *given: noloco_plan(given[0], small, *given[1:]),
        noloco_round,
        small.seats,
        {1: Loner},
        with_drawn_partners,
    )
    steps = large.rounds * large.steps
    orders = [seat_order(large.rows, large.seats, seat, steps, large.batch) for seat in range(large.seats)]
    return system_figures(
        max(1 - cost.program_seconds / cost.seconds for cost in costs),
        max(cost.sent for cost in costs),
        ddp_bytes(PARAMETERS, large.seats, large.steps),
        gpt_loss(LARGE, large.rows, final_weights(rounds, MIXED)),
        plain_loss(LARGE, large.rows, orders, large.rate),
        found_share(lying, {1: MIXED}),
    )


def drill_figures(folder: Path) -> dict[str, Figure]:
    """Joins, leaves, deaths and delays of honest workers: whom roots, receipts and replays of all claims accuse."""
    drill = MembershipDrill.of(Store(f"file://{folder}"), HashStore(), DRILLED, seed=1)
    drill.play()
    accused = {finding.worker for finding in drill.findings()}
    return {
        f"honest_accused_in_{DRILLED}_rounds": Figure(len(accused), "workers and coordinators"),
        "claims": Figure(len(drill.rounds().claims), "claims"),
        "deaths": Figure(drill.happened["dies"] + drill.happened["dies and is back"], "deaths"),
        "joins": Figure(drill.happened["joins"], "joins"),
    }


def _elastic(
    folder: Path, options: DiLoCo, members: list[ElasticMember], do_round: Callable[[ElasticWorker], None]
) -> LoggedRounds:
    store = Store(f"file://{folder}/store")
    plan = diloco_plan(store, options, local_key(-1).name, bytes(32))
    least = sum(not member.joins for member in members)
    patience = Patience(members=600, least=least, limit=1800)
    run_members(folder, plan, do_round, members, (MESSAGE, SENT), seats=options.seats, patience=patience)
    return read_rounds(store, *load_head(store))


def _note(folder: str, worker: ElasticWorker | RoundWorker) -> None:
    sent = worker.mailbox.sent if isinstance(worker, ElasticWorker) else worker.exchange.sent
    programs = worker.author.seconds if isinstance(worker.author, TimedAuthor) else 0.0
    with open(f"{folder}/cost-{worker.author.name}", "a") as file:
        file.write(json.dumps([time.process_time(), programs, sent]) + "\n")


def _noted(do_round: Callable[[PhaseWorker], None], folder: str, worker: ElasticWorker) -> None:
    _note(folder, worker)
    do_round(worker)


def _noted_lofi(options: LoFi, folder: str, worker: RoundWorker) -> None:
    """As `lofi_round`; the first part, in which kernels are made, isn't counted."""
    worker.make(TUNED, 0)
    _note(folder, worker)
    parts = [worker.make(TUNED, part) for part in range(1, options.parts)]
    worker.share(parts[-1], [name for name, _ in small_gpt(options.shape).named_parameters()])
    worker.make(MEAN)
    _note(folder, worker)


def _cost(folder: Path, name: str, first: int) -> WorkerCost:
    """The mean cost of what lies between notes, from one on."""
    lines = [json.loads(line) for line in (folder / f"cost-{name}").read_text().splitlines()][first:]
    return WorkerCost(*((b - a) / (len(lines) - 1) for a, b in zip(lines[0], lines[-1], strict=True)))


def _starts_from_merge(rounds: LoggedRounds, number: int) -> bool:
    """Whether a late joiner has started from the first member's merge, where the plan inherits, and from zeros else."""
    name = local_key(number).name
    joined = min(place.round for place in rounds.places if place.worker == name)
    (before,) = rounds.before(joined)
    phase = rounds.plan.phase_index(MERGE, len(before.members))
    merged = published_claim(rounds, rounds.places[ClaimPlace(before.members[0].worker, joined - 1, phase, 0)])
    start = load_start(rounds, rounds.places[ClaimPlace(name, joined, 0, 0)])
    rules = rounds.plan.phases[0].sources
    return joined > 0 and all(
        bool((words == merged.words[rule.slot]).all()) if rule.inherits else not words.any()
        for words, rule in zip(start, rules, strict=True)
    )
