"""A whistleblower meets all clocks beside many tasks, and floods of worthless disputes cost their authors more."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, RPCResponse

import chosen_rows
from anvil_node import anvil_node
from lab.benchmarks.dispute_flood import challenges_flood, objections_flood
from lab.benchmarks.lying_solvers import BLOCK_SECONDS, OPPONENTS, LyingSolver
from lab.benchmarks.market_processes import Arena, connect, party
from lab.benchmarks.parallel_disputes import FULL, Setting, staged
from lab.benchmarks.role_drills import small
from node_snapshots import order
from pol.chain.deployment_rules import GameRules
from pol.chain.node.connection import Connection
from pol.dispute.position import Side
from pol.roles.party.decisions import Mode
from pol.roles.party.policy import TEST_NETWORK
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process
from pol.roles.solver.solver import Solver
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

LOOK, TURNS = 60, 2000
"""Seconds of the chain between two turns of an opponent, and turns of the party."""


class Paced(HTTPProvider):
    """A node that lets ``pace`` seconds pass with each request, and calls ``on_look`` once in `LOOK` seconds."""

    def __init__(self, url: str, pace: float) -> None:
        super().__init__(url)
        self.pace, self.now, self._mined, self._looked = pace, 0.0, 0.0, 0.0
        self.on_look: Callable[[], None] = lambda: None

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        self.now += self.pace
        if (passed := int(self.now - self._mined)) >= BLOCK_SECONDS:
            latest = super().make_request(RPCEndpoint("eth_getBlockByNumber"), ["latest", False])["result"]
            time = int(latest["timestamp"], 16) + passed
            super().make_request(RPCEndpoint("evm_setNextBlockTimestamp"), [time])
            super().make_request(RPCEndpoint("evm_mine"), [])
            self._mined += passed
        if self.now >= self._looked + LOOK:
            self._looked = self.now
            self.on_look()
        return super().make_request(method, params)


class Opponent(Process[Solver]):
    """Looks at its own tasks only, and keeps until when it waits."""

    untils: tuple[int, ...] = ()

    def turn(self) -> list[LoggedDecision]:
        taken = super().turn()
        self.untils = tuple(made.until for made in taken if made.until is not None)
        return taken

    @cached_property
    def _own(self) -> list[bytes]:
        registry = self.role.market.registry
        return [each for each in super().tasks() if registry.task(each).solver == self.role.wallet.address]

    def tasks(self) -> list[bytes]:
        return self._own


def lost(place: Arena, setting: Setting, pace: float) -> int:
    """The disputes that a whistleblower at this pace loses against solvers that lie and dawdle."""
    url, numbers = place.connection.name, staged(place, small(), setting)
    game = place.deployment.market(place.connection).objection_game
    node, opponents = Paced(url, pace), [_opponent(place, name, setting) for name in OPPONENTS]
    own = Connection(Web3(node), url)
    defender = party(Whistleblower, own, place.deployment, place.store_url, "whistleblower")
    defender.policy = setting.policy

    def oppose() -> None:
        for opponent in opponents:
            opponent.turn()

    # Nobody's transactions take time, but for the second between two blocks.
    order(place.connection, "anvil_setBlockTimestampInterval", 1)
    node.on_look = oppose
    process = Process(defender, next_of_whistleblower, poll=BLOCK_SECONDS, clock=lambda: node.now)
    for _ in range(TURNS):
        taken = process.turn()
        winners = [game.winner(number) for number in numbers]
        if Side.ASSERTER in winners or Side.NONE not in winners:
            return winners.count(Side.ASSERTER)
        if any(made.result is DecisionResult.DONE for made in taken):
            continue
        # Nothing was due: the time passes until that of the next opponent comes.
        oppose()
        now = place.connection.now()
        node.now += min((until - now for each in opponents for until in each.untils if until > now), default=0)
    raise AssertionError(f"not over after {TURNS} turns")


def _opponent(place: Arena, name: str, setting: Setting) -> Opponent:
    liar = party(LyingSolver, connect(place.connection.name), place.deployment, place.store_url, name)
    liar.policy = setting.policy
    return Opponent(liar, OPPONENTS[name], Mode.DEFEND)


pytestmark = pytest.mark.long

FEW = Setting(12, 4, TEST_NETWORK, clock=900, graces=GameRules(replay_grace=120, move_grace=120))


@pytest.mark.slow  # of ten runs one failed, for a reason that isn't known yet
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("setting", "pace"), [(FEW, 0.5), (FULL, 0.1)], ids=["few", "many"])
def test_no_clock_is_missed(setting: Setting, pace: float, tmp_path: Path) -> None:
    """Disputes come before other tasks: a party that took all in turn would lose every one of the few."""
    with anvil_node(hardfork="osaka") as url:
        assert lost(Arena(connect(url), tmp_path, setting.graces), setting, pace) == 0


@pytest.mark.parametrize("is_played", chosen_rows.first([True, False], 1, others=pytest.mark.slow))
def test_a_flood_of_objections_costs_its_author_more_and_wins_nothing(is_played: bool) -> None:
    flood = objections_flood(2, 4, is_played)
    assert (flood.disputes, flood.lost) == (8, 0)
    assert flood.attacker_bonds >= 2 * flood.own_income > 0
    assert flood.own_cost < 0 < flood.attacker_cost


def test_a_flood_of_challenges_costs_its_author_more_and_wins_nothing() -> None:
    flood = challenges_flood(4)
    assert (flood.disputes, flood.lost) == (4, 0)
    assert flood.own_cost < flood.attacker_cost
