"""A whistleblower whose node gives old answers and whose store swaps objects stakes on nothing, and does its duty then.

A balancer with a back end that lags answers like this, call by call.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from all_parties import Solver, Verifier, Whistleblower, next_of_whistleblower
from log_market import run
from role_market import Town, disclosed, done, lied, seated_with_duty
from test_watching import AT_ANY_PRICE

from misbehaving_nodes import Gateway, Pass, gateway, honest
from pol.chain.node.connection import Connection
from pol.chain.rpc.rpc_methods import pinned
from pol.errors import OperationalError
from pol.roles.process.party_process import LoggedDecision, Process

pytestmark = pytest.mark.long

JOINED = ((Verifier, "v"), (Verifier, "y"), (Solver, "t"), (Whistleblower, "w"), (Whistleblower, "x"))

TURNS, BLOCKS = 12, 40
"""Of a process behind such a node, and how old its answers may be."""


class OldAnswers:
    """A manner of a gateway: half of the calls are answered as of a block before, the others as they should be."""

    def __init__(self, draw: Random, first: int) -> None:
        self.draw, self.first, self.old = draw, first, 0

    def __call__(self, method: str, params: list[Any], node: Pass) -> Any:
        latest = int(node("eth_blockNumber", []), 16)
        if self.draw.random() < 0.5:
            return node(method, params)
        back = self.draw.randint(self.first, latest)
        self.old += 1
        params = pinned(method, params, lambda: hex(back))
        if method == "eth_blockNumber":
            return hex(back)
        if method == "eth_getLogs":
            query = params[0]
            if int(query["fromBlock"], 16) > back:
                return []
            params = [query | {"toBlock": hex(min(back, int(query["toBlock"], 16)))}]
        answer = node(method, params)
        seen = isinstance(answer, dict) and (answer.get("blockNumber") or answer.get("number"))
        return None if seen and int(seen, 16) > back else answer


@contextmanager
def swapped(folder: Path, aside: Path, draw: Random) -> Iterator[None]:
    """Some objects of a store have each other's names."""
    files = sorted(path for path in folder.glob("??/*") if draw.random() < 0.2)
    shutil.copytree(folder, aside)
    for name, other in zip(files, draw.sample(files, len(files)), strict=True):
        shutil.copyfile(aside / other.relative_to(folder), name)
    yield
    shutil.rmtree(folder)
    aside.rename(folder)


def judged(verifier: Verifier, task_id: bytes, lies: bool = False) -> None:
    """A verdict can be challenged."""
    seated_with_duty(verifier, task_id, forced=False)
    verdicts = verifier.replay(task_id)
    verifier.post(task_id, [lied(verdict, "distances") if lies else verdict for verdict in verdicts])
    disclosed(verifier, task_id)


def felled(town: Town, task_id: bytes) -> None:
    """A verdict was false, and has fallen."""
    judged(town.join(Verifier, "v"), task_id, lies=True)
    other = town.join(Whistleblower, "x")
    other.strategy = AT_ANY_PRICE
    assert run(other, next_of_whistleblower) == ["challenge the verdict"]
    (number,) = other.market.challenges.disputes(task_id)
    other.connection.wait_until(other.market.game.deadline(number))
    assert run(other, next_of_whistleblower)[:2] == ["claim a timeout", "reclaim"]


def faulty(node: Gateway, town: Town, aside: Path, draw: Random, turn: Callable[[], list[LoggedDecision]]) -> int:
    """Turns of a process behind such a node and such a store; how many answers were old."""
    node.manner = manner = OldAnswers(draw, town.connection.block_number() - BLOCKS)
    for _ in range(TURNS):
        with swapped(town.folder, aside, draw), suppress(OperationalError):
            turn()
    node.manner = honest
    return manner.old


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_is_staked_on_old_answers_and_swapped_objects(
    proven: bytes, exact: bytes, town: Town, tmp_path: Path, seed: int
) -> None:
    """Neither on what has fallen nor on what stands, but for demands of data; then a lie is challenged."""
    second, draw = town.join(Verifier, "y"), Random(seed)
    felled(town, proven)
    judged(second, proven)
    town.join(Whistleblower, "w")
    with gateway(town.connection.name) as node:
        here = Town(town.folder, replace(town.ground, connection=Connection.to(node.url)))
        seer = here.join(Whistleblower, "w", evidence=tmp_path / "w")
        seer.strategy = AT_ANY_PRICE
        process, vault, own = Process(seer, next_of_whistleblower), town.ground.market.vault, seer.wallet.address
        asked = {town.ground.market.demands.address, town.ground.market.sortition.address}
        assert faulty(node, town, tmp_path / "aside", draw, process.turn) > 100
        assert {event["desk"] for event in vault.events("Locked", account=own)} <= asked
        judged(second, exact, lies=True)
        assert "challenge the verdict" in done([made for _ in range(3) for made in process.turn()])
        (number,) = seer.market.challenges.disputes(exact)
        assert seer.market.challenges.dispute(number).challenger == own
