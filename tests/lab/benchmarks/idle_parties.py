"""What a party asks of its node and of its processor while nothing is to be done about many open tasks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import requests

from anvil_node import anvil_node
from lab.benchmarks.figure import Figure
from lab.benchmarks.market_processes import ETHER, Arena, fund, party
from lab.benchmarks.role_drills import INTERVAL, STEPS, small
from node_snapshots import order
from pol.chain.node.connection import Connection
from pol.roles.party.decisions import Decision
from pol.roles.party.role import Role
from pol.roles.process.party_process import Process
from pol.roles.process.process_loop import ProcessLoop
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import Offer, Submitter
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

DAY = 24 * 3600
OPEN, MANY = 200, 1000
"""Tasks at which requests and processor time are measured, and at which decisions are."""
BLOCK, BLOCKS, WARM = 12, 20, 4
"""Seconds of a block; blocks that are measured, and those before them."""
OFFER = Offer(STEPS, INTERVAL, draws=1)
PARTIES: tuple[tuple[str, type[Role], Callable[[Any, bytes], Decision]], ...] = (
    ("submitter", Submitter, next_of_submitter),
    ("solver", Solver, next_of_solver),
    ("verifier", Verifier, next_of_verifier),
    ("whistleblower", Whistleblower, next_of_whistleblower),
)


def idle_figures() -> dict[str, Figure]:
    """Requests and processor time of a block, and of decisions: the most of any role."""
    with tempfile.TemporaryDirectory() as folder, anvil_node() as url:
        place = Arena(Connection.to(url), Path(folder))
        open_tasks(place, OPEN)
        roles = [(joined(place, url, kind, name), decide) for name, kind, decide in PARTIES]
        idle = [blocks(place, role, decide, BLOCKS) for role, decide in roles]
        more_tasks(place, MANY - OPEN)
        busy = [blocks(place, role, decide, WARM) for role, decide in roles]
        decided = [decision_seconds(role, decide) for role, decide in roles]
    return {
        "requests_per_block": Figure(max(asked for asked, _ in idle), f"of the busiest role, {OPEN} open tasks"),
        "requests_per_block_of_many": Figure(max(asked for asked, _ in busy), f"with {MANY} open tasks"),
        "idle_cpu_share": Figure(max(share for _, share in idle), f"of a core, blocks of {BLOCK} s, {OPEN} open tasks"),
        "decide_milliseconds": Figure(max(decided) * 1e3, f"of processor time, once about each of {MANY} tasks"),
    }


def open_tasks(place: Arena, tasks: int) -> None:
    """Submit tasks; a stranger wins every second one, and trains."""
    submitter, solver = place.join(Submitter, "submitter"), place.join(Solver, "stranger")
    captured, long = small(), replace(OFFER, bid_window=30 * DAY, training_window=30 * DAY)
    for number in range(tasks):
        if number % 2:
            submitter.submit(captured, long)
            continue
        task_id = submitter.submit(captured, replace(long, bid_window=600))
        solver.bid(task_id)
        solver.reveal(task_id)
        solver.market.registry.award(solver.wallet, task_id)


def more_tasks(place: Arena, tasks: int) -> None:
    """Submit as many more that take bids, of the same published task."""
    submitter = place.join(Submitter, "submitter")
    fund(place.connection, submitter.wallet)
    submitter.deposit(40 * ETHER)
    registry = submitter.market.registry
    terms = registry.terms(bytes(registry.events("TaskSubmitted")[-1]["taskId"]))
    for _ in range(tasks):
        registry.submit(submitter.wallet, terms)


def joined(place: Arena, url: str, kind: type[Role], name: str) -> Role:
    """A party with a connection of its own, and no money for new stakes."""
    place.join(kind, name)
    role = party(kind, Connection.to(url), place.deployment, place.store_url, name)
    if kind is not Submitter:
        role.withdraw()
    return role


def blocks(place: Arena, role: Role, decide: Callable[[Any, bytes], Decision], count: int) -> tuple[float, float]:
    """Requests of a block, and the share of a core, of a party with nothing to do."""
    process = Process(role, decide, poll=BLOCK)
    loop = ProcessLoop(process, BLOCK, print, lambda seconds: True)
    posts, asked, spent = requests.Session.post, 0, 0.0

    def counted(session: requests.Session, *arguments: Any, **options: Any) -> requests.Response:
        nonlocal asked
        asked += 1
        return posts(session, *arguments, **options)

    for number in range(WARM + count):
        order(place.connection, "evm_increaseTime", BLOCK)
        order(place.connection, "evm_mine")
        began = time.process_time()
        with patch.object(requests.Session, "post", counted):
            loop.turn()
        if number < WARM:
            asked, spent = 0, 0.0
        else:
            spent += time.process_time() - began
    return asked / count, spent / count / BLOCK


def decision_seconds(role: Role, decide: Callable[[Any, bytes], Decision]) -> float:
    """Processor time of a decision about each task, at one block that has been read."""
    with role.connection.cached():
        tasks = list(Process(role, decide).tasks())
        for task_id in tasks:
            decide(role, task_id)
        began = time.process_time()
        for task_id in tasks:
            decide(role, task_id)
        return time.process_time() - began
