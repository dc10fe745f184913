"""A whistleblower that follows many tasks and defends many disputes at once, against opponents that lie and dawdle.

Blocks come by the clock of this machine, and each moves the chain's time by twelve seconds: at two blocks a second the
party has a 24th of the time that it would have on Ethereum. Terms are the shortest that the default policy accepts.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eth_typing import BlockNumber

from lab.benchmarks.figure import Figure
from lab.benchmarks.local_node import local_node
from lab.benchmarks.lying_solvers import BLOCK_SECONDS, FALSE, OPPONENTS, LyingSolver, oppose
from lab.benchmarks.market_processes import Arena, connect, ordered, party
from lab.benchmarks.role_drills import small
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployment_rules import GameRules
from pol.chain.desks.market import Matter
from pol.chain.node.connection import Connection
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.graph.capture import Capture
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.role import Role
from pol.roles.process.party_process import Process
from pol.roles.process.process_loop import ProcessLoop
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from pol.roles.whistleblower.objector import FalseSegment
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

LONGEST = 600.0
"""Seconds of a whole scene."""


LEAST_GRACES = GameRules(replay_grace=PUBLIC_CHAIN.min_replay_grace, move_grace=PUBLIC_CHAIN.min_move_grace)


@dataclass(frozen=True)
class Setting:
    """How many tasks and disputes there are, their terms, and the seconds of this machine between two blocks."""

    tasks: int
    disputes: int
    block: float
    policy: Policy = PUBLIC_CHAIN
    clock: int = PUBLIC_CHAIN.min_clock
    graces: GameRules = LEAST_GRACES

    @property
    def offer(self) -> Offer:
        """Two segments of three steps."""
        return Offer(6, 3, draws=1, clock=self.clock, wei_per_work_unit=20 * GWEI)


FULL = Setting(tasks=200, disputes=20, block=0.5)
ETHER = 10**18


@dataclass(frozen=True)
class Scene:
    """Many tasks, some of them in dispute."""

    place: Arena
    setting: Setting
    numbers: tuple[int, ...]
    """Of the disputes about objections by the whistleblower."""

    def lost(self) -> int:
        """Disputes that the whistleblower hasn't won."""
        game = self._game(self.place.connection)
        return sum(game.winner(number) is not Side.CHALLENGER for number in self.numbers)

    def is_over(self, connection: Connection) -> bool:
        """Whether every dispute has a winner."""
        game = self._game(connection)
        return all(game.winner(number) is not Side.NONE for number in self.numbers)

    def slack(self) -> float:
        """The least share of its clock that the whistleblower had left at any of its moves."""
        game, eth = self._game(self.place.connection), self.place.connection.web3.eth
        own, least = _whistleblower(self.place, self.setting).wallet.address, 1.0
        for number in self.numbers:
            clock = game.params(number).clock
            for event in game.events("Moved", number=number):
                if eth.get_transaction(event["transaction"])["from"] == own:
                    block = int(event["block"])
                    end = game.function("deadline", number).call(block_identifier=BlockNumber(block - 1))
                    least = min(least, (end - self.place.connection.time_of(block)) / clock)
        return least

    def _game(self, connection: Connection) -> DisputeGame:
        return self.place.deployment.market(connection).courts[Matter.OBJECTION].game


@dataclass(frozen=True)
class Played:
    """How it ended."""

    lost: int
    slack: float
    seconds: float


def played(setting: Setting) -> Played:
    """A scene on a node of its own, played to its end.

    Raises:
        OperationalError: it isn't over after ten minutes, or anvil doesn't start.
    """
    with tempfile.TemporaryDirectory() as folder, local_node("osaka") as url:
        scene = staged(Arena(connect(url), Path(folder), setting.graces), small(), setting)
        seconds = defended(scene, LONGEST)
        return Played(scene.lost(), scene.slack(), seconds)


def parallel_figures() -> dict[str, Figure]:
    """200 tasks and 20 disputes at once, and floods of worthless disputes."""
    from lab.benchmarks.dispute_flood import GAS_PRICE, challenges_flood, objections_flood

    end = played(FULL)
    figures = {
        "parallel_disputes_lost": Figure(
            end.lost, f"of {FULL.disputes}, beside {FULL.tasks} tasks; half of the opponents move in the last minutes"
        ),
        "deadline_slack_min": Figure(
            end.slack, f"of its clock left at its latest move; {BLOCK_SECONDS / FULL.block:.0f} times as fast as life"
        ),
    }
    floods = {
        "objections": objections_flood(3, 4, is_played=True),
        "abandoned_objections": objections_flood(3, 4, is_played=False),
        "challenges": challenges_flood(6),
    }
    for name, flood in floods.items():
        count = flood.disputes
        figures |= {
            f"flood_{name}_lost": Figure(flood.lost, f"of {count} worthless disputes"),
            f"flood_{name}_attacker_cost": Figure(flood.attacker_cost / count / ETHER, "ether each, gas at 10 gwei"),
            f"flood_{name}_own_cost": Figure(flood.own_cost / count / ETHER, "ether each; below zero, it pays us"),
            f"flood_{name}_attacker_gas": Figure(flood.attacker_gas / count / GAS_PRICE, "gas each, with the tip"),
            f"flood_{name}_own_gas": Figure(flood.own_gas / count / GAS_PRICE, "gas each, with the tip"),
            f"flood_{name}_own_seconds": Figure(flood.own_seconds / count, "s each, of this machine"),
        }
    return figures


def staged(place: Arena, captured: Capture, setting: Setting) -> Scene:
    """The disputes have just begun. Of the other tasks a third is trained or in training, and the rest takes bids."""
    submitter, honest = place.join(Submitter, "submitter"), place.join(Solver, "solver")
    liars = [_opponent(place, name, setting.policy) for name in OPPONENTS]
    quote = submitter.quote(captured, setting.offer)
    _bring(submitter, setting.tasks * (quote.escrow + quote.jackpot))
    submitter.market.jackpot.donate(submitter.wallet, setting.tasks * quote.jackpot)
    ids = [submitter.submit(captured, setting.offer) for _ in range(setting.tasks)]
    disputed, quiet = ids[: setting.disputes], ids[setting.disputes :: 3]
    solvers: dict[bytes, Solver] = {task_id: liars[number % len(liars)] for number, task_id in enumerate(disputed)}
    solvers |= dict.fromkeys(quiet, honest)
    for solver in (*liars, honest):
        solver.policy = setting.policy
        _bring(solver, setting.tasks * quote.solver_stake)
    for task_id, solver in solvers.items():
        solver.bid(task_id)
    for task_id, solver in solvers.items():
        solver.reveal(task_id)
    for task_id, solver in solvers.items():
        solver.market.registry.award(solver.wallet, task_id)
    for task_id in (*disputed, *quiet[::2]):
        solvers[task_id].train(task_id)
    place.join(Whistleblower, "whistleblower")
    objector = _whistleblower(place, setting)
    _bring(objector, setting.tasks * objector.market.objections.bond_of(disputed[0]))
    return Scene(place, setting, tuple(_objection(objector, task_id) for task_id in disputed))


def defended(scene: Scene, seconds: float) -> float:
    """The whistleblower, begun anew, and its opponents play until all disputes are over; returns the seconds.

    The opponents are processes of their own. What the others do about tasks that nobody disputes is left out.

    Raises:
        OperationalError: it isn't over after so many seconds.
    """
    place, setting, ended = scene.place, scene.setting, threading.Event()
    spawn = multiprocessing.get_context("spawn")
    where = (place.connection.name, place.deployment.to_json(), place.store_url, setting.policy, setting.block)
    ready = spawn.Semaphore(0)
    opponents = [spawn.Process(target=oppose, args=(name, *where, ready), daemon=True) for name in OPPONENTS]
    whistleblower = _whistleblower(place, setting)
    process = Process(whistleblower, next_of_whistleblower, poll=setting.block)
    loop = ProcessLoop(process, setting.block, lambda message: None, ended.wait)
    defender, watching = threading.Thread(target=loop.run), connect(place.connection.name)
    for opponent in opponents:
        opponent.start()
    for _ in opponents:
        if not ready.acquire(timeout=300):
            raise OperationalError("an opponent's process doesn't start")
    began = time.perf_counter()
    with passing(place.connection, setting.block):
        defender.start()
        try:
            while not scene.is_over(watching):
                if time.perf_counter() - began > seconds:
                    raise OperationalError(f"{scene.lost()} disputes aren't won after {seconds:.0f} s")
                time.sleep(setting.block)
        finally:
            ended.set()
            defender.join()
            for opponent in opponents:
                opponent.terminate()
                opponent.join()
    return time.perf_counter() - began


@contextmanager
def passing(connection: Connection, block: float) -> Iterator[None]:
    """Blocks come by themselves, one in ``block`` seconds of this machine."""
    ended = threading.Event()

    def mine() -> None:
        own = connect(connection.name)
        while not ended.wait(block):
            ordered(own, "evm_mine")

    ordered(connection, "evm_setAutomine", False)
    ordered(connection, "anvil_setBlockTimestampInterval", BLOCK_SECONDS)
    miner = threading.Thread(target=mine)
    miner.start()
    try:
        yield
    finally:
        ended.set()
        miner.join()
        ordered(connection, "anvil_removeBlockTimestampInterval")
        ordered(connection, "evm_setAutomine", True)


def _opponent(place: Arena, name: str, policy: Policy) -> LyingSolver:
    solver = place.join(LyingSolver, name)
    solver.policy = policy
    return solver


def _whistleblower(place: Arena, setting: Setting) -> Whistleblower:
    own = connect(place.connection.name)
    role = party(Whistleblower, own, place.deployment, place.store_url, "whistleblower")
    role.policy = setting.policy
    return role


def _bring(role: Role, amount: int) -> None:
    """More money into the vault."""
    ordered(role.connection, "anvil_setBalance", role.wallet.address, hex(role.wallet.balance() + amount))
    role.deposit(amount)


def _objection(role: Whistleblower, task_id: bytes) -> int:
    claim = role.own_claim(task_id, FALSE)
    assert claim is not None
    return role.object(task_id, FalseSegment(FALSE, claim))
