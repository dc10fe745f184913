"""A flood of worthless disputes: what it costs its author and the honest party, and that it wins none."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, RPCResponse

from anvil_node import anvil_node
from lab.benchmarks.market_processes import AT_ANY_PRICE, Arena
from lab.benchmarks.role_drills import small
from node_snapshots import order
from pol.chain.desks.market import Matter
from pol.chain.node.connection import Connection
from pol.demo.cheating_parties import BaselessWhistleblower
from pol.demo.lying_players import Lie, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.roles.party.decisions import Mode
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.objector import FalseSegment
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

GAS_PRICE = 10 * GWEI
OFFER = Offer(6, 3, draws=1, wei_per_work_unit=20 * GWEI)
ETHER = 10**18


@dataclass(frozen=True)
class Flood:
    """What disputes have cost; wei. Gas is at `GAS_PRICE` and a tip."""

    disputes: int
    lost: int
    """By the honest party."""
    attacker_gas: int
    attacker_bonds: int
    """Lost."""
    own_gas: int
    own_income: int
    """Shares of lost bonds."""

    @property
    def attacker_cost(self) -> int:
        """Gas and bonds."""
        return self.attacker_gas + self.attacker_bonds

    @property
    def own_cost(self) -> int:
        """Gas less income: negative where a flood pays."""
        return self.own_gas - self.own_income


class PricedProvider(HTTPProvider):
    """Gas has one price, in whatever block."""

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """The answer."""
        if method == "eth_sendRawTransaction":
            super().make_request(RPCEndpoint("anvil_setNextBlockBaseFeePerGas"), [hex(GAS_PRICE)])
        return super().make_request(method, params)


class Flooder(BaselessWhistleblower):
    """Objects to true segments and challenges true verdicts, by an execution that is wrong in one bit."""

    @cached_property
    def _lies(self) -> dict[tuple[bytes, int], Lie]:
        return {}

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The same lie each time."""
        honest = super(BaselessWhistleblower, self).execute(task_id, segment)
        key = task_id, segment
        if key not in self._lies:
            self._lies[key] = draw_lie(honest, range(len(honest.program.nodes)), Random(segment))
        return LyingTrace(honest, self._lies[key])


def _priced(url: str) -> Connection:
    connection = Connection(Web3(PricedProvider(url)), url)
    order(connection, "anvil_setNextBlockBaseFeePerGas", hex(GAS_PRICE))
    order(connection, "evm_mine")
    return connection


def objections_flood(tasks: int, each: int, is_played: bool) -> Flood:
    """``each`` objections to the honest log of each of so many tasks, at once; abandoned unless they are played."""
    with tempfile.TemporaryDirectory() as folder, anvil_node(hardfork="osaka") as url:
        place = Arena(_priced(url), Path(folder))
        submitter, solver = place.join(Submitter, "submitter"), place.join(Solver, "solver")
        ids = [submitter.submit(small(), OFFER) for _ in range(tasks)]
        for task_id in ids:
            solver.bid(task_id)
        for task_id in ids:
            solver.reveal(task_id)
            solver.market.registry.award(solver.wallet, task_id)
            solver.train(task_id)
        return _flooded(place, solver, next_of_solver, ids, each, is_played, Matter.OBJECTION)


def challenges_flood(each: int) -> Flood:
    """So many challenges of an honest verdict, all of them played."""
    with tempfile.TemporaryDirectory() as folder, anvil_node(hardfork="osaka") as url:
        place = Arena(_priced(url), Path(folder))
        verifier = place.join(Verifier, "verifier")
        task_id = place.challengeable(small(), OFFER, verifier)
        return _flooded(place, verifier, next_of_verifier, [task_id], each, True, Matter.VERDICT)


def _flooded(
    place: Arena, honest: Role, decide: Any, ids: list[bytes], each: int, is_played: bool, matter: Matter
) -> Flood:
    place.join(Flooder, "flooder")
    flooder = place.join(Flooder, "flooder")
    flooder.strategy = AT_ANY_PRICE
    order(place.connection, "anvil_setBalance", flooder.wallet.address, hex(10_000 * ETHER))
    flooder.deposit(5_000 * ETHER)
    parties = (flooder, honest)
    before = [(role.wallet.gas_paid, role.market.vault.free(role.wallet.address)) for role in parties]
    for task_id in ids:
        for number in range(each):
            if matter is Matter.VERDICT:
                (finding,) = flooder.check(task_id)
                flooder.challenge(task_id, finding)
                continue
            segment = number % (OFFER.steps // OFFER.interval)
            claim = flooder.own_claim(task_id, segment)
            assert claim is not None
            flooder.object(task_id, FalseSegment(segment, claim))
    court = place.deployment.market(place.connection).courts[matter]
    desk, game = court.desk, court.game
    processes: list[Process[Any]] = [Process(honest, decide, Mode.DEFEND)]
    if is_played:
        processes.append(Process(flooder, next_of_whistleblower, Mode.DEFEND))
    numbers = [int(event[desk.EVENTS.number]) for event in desk.events(desk.EVENTS.challenged)]
    while running := [number for number in numbers if not desk.dispute(number).is_settled]:
        taken = [made for process in processes for made in process.turn()]
        if all(made.result is not DecisionResult.DONE for made in taken):
            # Somebody has left: the clock that runs down next.
            place.connection.wait_until(min(game.deadline(number) for number in running))
    after = [(role.wallet.gas_paid, role.market.vault.free(role.wallet.address)) for role in parties]
    (attacker_gas, attacker_free), (own_gas, own_free) = (
        (gas[0] - was[0], gas[1] - was[1]) for gas, was in zip(after, before, strict=True)
    )
    lost = sum(game.winner(number) is not Side.ASSERTER for number in numbers)
    return Flood(len(numbers), lost, attacker_gas, -attacker_free, own_gas, own_free)
