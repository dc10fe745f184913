"""Populations that play the game of docs/spec/game.md for money: seeded, the same on every machine.

Amounts are moved by the code that mirrors the contracts: the settlement table (`payouts`), draws (`sortition`),
planted errors (`forced_errors`) and the jackpot. What is simulated is what parties do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lab.simulations.agents import SOLVERS, VERIFIERS, Agent, Behavior, Beliefs, people
from lab.simulations.simulated_seating import (
    DONOR,
    FUND,
    OBJECTOR,
    PROFILING,
    SUBMITTER,
    Epoch,
    SimulatedMarket,
    SimulatedSeating,
    profile,
    seat,
)
from lab.simulations.venue import Venue
from pol.claims.segment_draw import draw
from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.abi import abi_hash
from pol.incentives.game.payoffs import Game
from pol.incentives.payouts import Deal

MOST_SEATINGS = 100
"""After so many void seatings of one task the population settles nothing."""
EPOCH = 50
"""Tasks between two looks at whether watching pays."""
RECONSIDERING = 0.3
"""Share of whistleblowers that think about enrolling and resigning in each epoch."""
DONATED = 10
"""Jackpots that are in the fund when it begins."""
SUSPICION = 0.05
"""How often people believe at first that somebody lies."""


@dataclass(frozen=True)
class Population:
    """The agents of a simulation: kinds and their numbers."""

    verifiers: Mapping[Behavior, int]
    solvers: Mapping[Behavior, int]
    whistleblowers: int = 0
    """That may enrol."""
    tasks: int = 1_000
    seed: int = 1
    upkeep: float = 0.0
    """What one ticket costs its holder for the time of one task: interest."""


@dataclass(frozen=True)
class SimulationResult:
    """Earnings of all agents, and events by epoch."""

    setting: Population
    epochs: Sequence[Epoch]
    parties: Sequence[Agent]
    solvers: Sequence[Agent]
    balances: Mapping[str, int]
    catches: Mapping[str, int]
    """Shares of jackpots by party."""
    most_paid: int
    """By the jackpot for one task."""

    @property
    def total_change(self) -> int:
        """Sum of all balances: zero, as every unit that somebody loses somebody else gets."""
        return sum(self.balances.values())

    def earned(self, party: Agent) -> float:
        """What a party was paid less what its work cost."""
        return self.balances[party.name] - party.work

    def last(self, name: str, of: str, epochs: int = 5) -> float:
        """A count over another at the end of the simulation; 0 if there was nothing to count."""
        counted = sum(getattr(epoch, of) for epoch in self.epochs[-epochs:])
        return sum(getattr(epoch, name) for epoch in self.epochs[-epochs:]) / counted if counted else 0.0


def simulate(game: Game, setting: Population, venue: Venue | None = None) -> SimulationResult:
    """Play ``setting.tasks`` tasks one after the other; without a ``venue`` nothing is needed but this process.

    Raises:
        ProtocolError: a population that can't settle a task, or none.
    """
    if setting.tasks < 1 or setting.whistleblowers < 0:
        raise ProtocolError("a simulation has one task at least, and no negative whistleblowers")
    random = Random(setting.seed)
    parties = people("verifier", setting.verifiers, VERIFIERS, random)
    parties += people(
        "whistleblower", {Behavior.WHISTLEBLOWER: setting.whistleblowers}, (Behavior.WHISTLEBLOWER,), random
    )
    solvers = people("solver", setting.solvers, SOLVERS, random)
    world = SimulatedMarket(game, venue or Venue(setting.seed), random, parties, Beliefs(lies=SUSPICION))
    for party in (*parties, *solvers):
        party.accounts = world.venue.admit(party.name, party.accounts, setting.tasks)
    world.venue.admit(OBJECTOR, (abi_hash(OBJECTOR)[:20],), setting.tasks)
    world.venue.admit(SUBMITTER, (abi_hash(SUBMITTER)[:20],), setting.tasks)
    world.venue.donate(DONATED * game.stakes.jackpot)
    world.balances[FUND] += DONATED * game.stakes.jackpot
    world.balances[DONOR] -= DONATED * game.stakes.jackpot
    for party in parties:
        world.enrol(party)
    epochs: list[Epoch] = []
    for number in range(setting.tasks):
        if number % EPOCH == 0:
            epochs.append(Epoch())
            _reconsider(world, setting.upkeep)
        _task(world, number, solvers, epochs[-1])
        epochs[-1].enrolled = sum(p.enrolled for p in parties if p.kind is Behavior.WHISTLEBLOWER)
        epochs[-1].fund = world.balances[FUND]
    return SimulationResult(setting, epochs, parties, solvers, world.balances, world.catches, world.most_paid)


def _reconsider(world: SimulatedMarket, upkeep: float) -> None:
    """Whistleblowers enrol and resign on what a ticket is believed to earn in the time of a task."""
    for party in world.parties:
        if party.kind is not Behavior.WHISTLEBLOWER or world.random.random() > RECONSIDERING:
            continue
        tickets = max(1, sum(world.tickets.values()))
        drawn = min(1.0, world.game.chance.watchers / tickets) if world.game.chance else 1 / tickets
        pays = drawn * party.expected(world.game, world.beliefs) > upkeep
        if pays != party.enrolled:
            party.enrolled = pays
            world.enrol(party)


def _task(world: SimulatedMarket, number: int, solvers: Sequence[Agent], epoch: Epoch) -> None:
    """One task from its solver to its settlement."""
    game, random, deal, venue = world.game, world.random, world.game.deal, world.venue
    epoch.tasks += 1
    if world.balances[FUND] < game.stakes.jackpot:
        epoch.fund_short += 1
        return
    solver = random.choice(solvers)
    segments = game.stakes.segments
    way = solver.fabricates(game, world.beliefs, random)
    cheated = way.cheated if way else 0
    solver.work += game.costs.training * solver.pace * (1 - (way.saved if way else 0))
    fabricated = set(random.sample(range(segments), cheated))

    world.balances[SUBMITTER] -= deal.escrow
    task_id = venue.submit(number)
    if deal.profiled:
        profile(world, task_id)
    world.balances[solver.name] -= deal.solver_stake
    log = [abi_hash("state", task_id, entry) for entry in range(segments + 1)]
    drawn = draw(venue.train(task_id, solver.accounts[0], log), segments, game.stakes.draws)
    truth = [abi_hash("root", task_id, segment) for segment in drawn]
    hits = frozenset(index for index, segment in enumerate(drawn) if segment in fabricated)
    seatings: list[SimulatedSeating] = []
    while not (seatings and seatings[-1].stands):
        if len(seatings) == MOST_SEATINGS:
            raise ProtocolError(f"{MOST_SEATINGS} seatings of one task were void: this population settles nothing")
        seatings.append(seat(world, task_id, PROFILING + len(seatings) + 1, truth, solver, hits, epoch))
    last, rejects = seatings[-1], bool(seatings[-1].said.rejecting)
    # A jump shows in the log, whatever was drawn and whatever the verdict says.
    seen = way is not None and not rejects and random.random() >= way.unseen
    if seen:
        deal = _object(world, task_id, min(fabricated))
    venue.settle(task_id)
    settled = payouts.rejected(deal) if rejects or seen else payouts.accepted(deal)
    world.pay(settled, solver=solver.name, holder=last.verifier.name)
    if hits:
        world.beliefs.learn("rejected", rejects)
    if cheated >= game.threat.least:
        solver.work -= game.threat.gain
    epoch.fabricated += bool(cheated and not rejects and not seen)
    epoch.objected += seen
    epoch.wrong_rejections += rejects and not hits
    _catches(world, task_id, seatings)
    venue.close(task_id)


def _object(world: SimulatedMarket, task_id: bytes, segment: int) -> Deal:
    """An outsider objects to a false segment and is right; the deal, with what it gains of the solver's stake."""
    game, deal, stakes = world.game, world.game.deal, world.game.stakes
    price = payouts.segment_price(stakes.price, stakes.segments, stakes.verifier_fee, stakes.draws)
    bond = payouts.objection_bond(price + game.costs.dispute, stakes.solver_stake, 0)
    bond = world.venue.object(task_id, segment, bond)
    reward = payouts.objector_reward(stakes.solver_stake, bond, game.tax)
    deal = replace(deal, bond=bond, objected=reward)
    world.balances[OBJECTOR] -= bond
    world.pay(payouts.objector_right(deal), challenger=OBJECTOR)
    return deal


def _catches(world: SimulatedMarket, task_id: bytes, seatings: Sequence[SimulatedSeating]) -> None:
    """The task is closed: commitments that open to what stands in the end are paid, up to the reserve."""
    game, last, catches = world.game, seatings[-1].said, 0
    if game.chance is None:
        return
    paid = payouts.error_found(game.deal)
    for seating in seatings:
        said = seating.said
        for party, made in seating.commitments:
            stands = last.claims[made.index]
            caught = made.opens(task_id) and made.root == stands != said.posted[made.index]
            caught = caught and catches < game.chance.shares
            world.venue.claim(task_id, said, last, made, paid=caught)
            if not caught:
                continue
            catches += 1
            world.catches[party.name] += 1
            world.balances[FUND] -= paid.total
            world.pay(paid, challenger=party.name)
    world.most_paid = max(world.most_paid, catches * paid.total)
