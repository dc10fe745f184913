"""Placements that a coordinator announces: honest ones, favored ones, false costs."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pol.decentralised.placement import BEST_EXCHANGE, COST, Network, network, placement_plan
from pol.decentralised.processes.local_processes import local_key
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import load_end
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.log_entries import RosterEntry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import LogKeeper, load_head
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store

COORDINATOR = local_key(-1)


def drawn_network(seed: int, pipelines: int, stages: int) -> Network:
    """Workers in two regions: near ones are fast to each other."""
    generator = torch.Generator().manual_seed(seed)
    workers = pipelines * stages
    region = torch.arange(workers) % 2
    is_far = region.unsqueeze(0) != region.unsqueeze(1)
    jitter = torch.randint(0, 500, (workers, workers), generator=generator)
    jitter = jitter + jitter.T
    latency = torch.where(is_far, 40_000, 1_000) + jitter
    bandwidth = torch.where(is_far, 12_500, 125_000)
    return network(latency, bandwidth, pipelines, stages, gradients=4_000_000, activations=100_000)


def announced(folder: Path, net: Network, assignment: Tensor, lied_cost: int | None = None) -> LoggedRounds:
    store = Store(f"file://{folder}/store")
    plan = placement_plan(store, net, assignment, COORDINATOR.name, bytes(32))
    author = ClaimAuthor(store, plan, COORDINATOR, CpuExecutor)
    roster = Roster(plan.digest, 0, (Member(COORDINATOR.name, 0, role="coordinator"),))
    author.rosters[0] = roster
    place = ClaimPlace(COORDINATOR.name, 0, 0, 0)
    sources, start = author.start(place)
    end = author.run(place, start, 0, 1)
    if lied_cost is not None:
        end[1] = np.full_like(end[1], lied_cost)
    keeper = LogKeeper(store, plan.digest, COORDINATOR)
    keeper.append(RosterEntry(store.put(roster.encode()), COORDINATOR.sign(roster.digest)), 0)
    keeper.append(author.sign(place, sources, end).entry, 0)
    keeper.publish()
    return read_rounds(store, plan, load_head(store)[1])


def end_of(rounds: LoggedRounds) -> dict[str, Tensor]:
    (entry,) = rounds.claims.values()
    held = load_end(rounds, entry)
    return {name: torch.from_numpy(held[slot].view(np.int32)) for slot, name in ((1, COST), (2, BEST_EXCHANGE))}
