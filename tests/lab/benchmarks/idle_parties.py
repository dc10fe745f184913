"""What a party asks of its node and of its processor while nothing is to be done about many open tasks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests

from anvil_node import anvil_node
from lab.benchmarks.figure import Figure
from lab.benchmarks.market_processes import ETHER, Arena, fund, party
from lab.benchmarks.role_drills import INTERVAL, STEPS, small
from node_snapshots import order
from pol.chain.node.connection import Connection
from pol.roles.party.decisions import Decision, Mode
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
BLOCK, BLOCKS, WARM = 12, 20, 3
"""Seconds of a block; blocks that are measured, and those before them."""
OFFER = Offer(STEPS, INTERVAL, draws=1)
PARTIES: tuple[tuple[str, type[Role], Callable[[Any, bytes], Decision]], ...] = (
    ("submitter", Submitter, next_of_submitter),
    ("solver", Solver, next_of_solver),
    ("verifier", Verifier, next_of_verifier),
    ("whistleblower", Whistleblower, next_of_whistleblower),
)


def idle_figures(tasks: int = 200) -> dict[str, Figure]:
    """Requests and processor time of a block, the most of any role: half of the tasks take bids, half are trained."""
    with tempfile.TemporaryDirectory() as folder, anvil_node() as url:
        place = Arena(Connection.to(url), Path(folder))
        open_tasks(place, tasks)
        found = [idle(place, url, kind, name, decide) for name, kind, decide in PARTIES]
    asked, share, decided = (max(column) for column in zip(*found, strict=True))
    return {
        "requests_per_block": Figure(asked, f"of the busiest role, {tasks} open tasks"),
        "idle_cpu_share": Figure(share, f"of a core, blocks of {BLOCK} s, {tasks} open tasks"),
        "decide_milliseconds": Figure(decided * 1e3, f"of processor time, a decision about each of {tasks} tasks"),
    }


def open_tasks(place: Arena, tasks: int) -> None:
    """Submit tasks; a stranger wins every second one, and trains."""
    submitter, solver = place.join(Submitter, "submitter"), place.join(Solver, "stranger")
    fund(place.connection, submitter.wallet)
    captured, long = small(), replace(OFFER, bid_window=30 * DAY, training_window=30 * DAY)
    for number in range(tasks):
        if number % 2:
            submitter.submit(captured, long)
            continue
        task_id = submitter.submit(captured, replace(long, bid_window=600))
        solver.bid(task_id)
        solver.reveal(task_id)
        solver.market.registry.award(solver.wallet, task_id)


def idle(
    place: Arena, url: str, kind: type[Role], name: str, decide: Callable[[Any, bytes], Decision]
) -> tuple[float, float, float]:
    """Requests of a block, share of a core, and seconds of all decisions at one block, of a party with nothing to do."""
    place.join(kind, name)
    role = party(kind, Connection.to(url), place.deployment, place.store_url, name)
    process = Process(role, decide, Mode.DEFEND, poll=BLOCK)
    loop = ProcessLoop(process, BLOCK, print, lambda seconds: True)
    posts, asked, total, spent = requests.Session.post, 0, 0, 0.0

    def counted(session: requests.Session, *arguments: Any, **options: Any) -> requests.Response:
        nonlocal asked
        asked += 1
        return posts(session, *arguments, **options)

    requests.Session.post = counted  # type: ignore[method-assign, assignment]
    try:
        for number in range(WARM + BLOCKS):
            order(place.connection, "evm_increaseTime", BLOCK)
            order(place.connection, "evm_mine")
            before, began = asked, time.process_time()
            loop.turn()
            if number >= WARM:
                total, spent = total + asked - before, spent + time.process_time() - began
    finally:
        requests.Session.post = posts  # type: ignore[method-assign]
    with role.connection.cached():
        known = list(process.tasks())
        for task_id in known:
            decide(role, task_id)
        began = time.process_time()
        for task_id in known:
            decide(role, task_id)
        decided = time.process_time() - began
    return total / BLOCKS, spent / BLOCKS / BLOCK, decided
