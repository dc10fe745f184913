"""Many tasks on a market, some of them in dispute: terms are the shortest that the default policy accepts."""

from __future__ import annotations

from dataclasses import dataclass

from lab.benchmarks.lying_solvers import FALSE, OPPONENTS, LyingSolver
from lab.benchmarks.market_processes import Arena, connect, party
from node_snapshots import order
from pol.chain.deployment_rules import GameRules
from pol.graph.capture import Capture
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from pol.roles.whistleblower.objector import FalseSegment
from pol.roles.whistleblower.whistleblower import Whistleblower

LEAST_GRACES = GameRules(replay_grace=PUBLIC_CHAIN.min_replay_grace, move_grace=PUBLIC_CHAIN.min_move_grace)


@dataclass(frozen=True)
class Setting:
    """How many tasks and disputes there are, and their terms."""

    tasks: int
    disputes: int
    policy: Policy = PUBLIC_CHAIN
    clock: int = PUBLIC_CHAIN.min_clock
    graces: GameRules = LEAST_GRACES

    @property
    def offer(self) -> Offer:
        """Two segments of three steps."""
        return Offer(6, 3, draws=1, clock=self.clock, wei_per_work_unit=20 * GWEI)


FULL = Setting(tasks=200, disputes=20)


def staged(place: Arena, captured: Capture, setting: Setting) -> list[int]:
    """The disputes about objections by the whistleblower, which have just begun.

    Of the other tasks a third is trained or in training, and the rest takes bids.
    """
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
    return [_objection(objector, task_id) for task_id in disputed]


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
    order(role.connection, "anvil_setBalance", role.wallet.address, hex(role.wallet.balance() + amount))
    role.deposit(amount)


def _objection(role: Whistleblower, task_id: bytes) -> int:
    claim = role.own_claim(task_id, FALSE)
    assert claim is not None
    return role.object(task_id, FalseSegment(FALSE, claim))
