"""One seating of a simulated task: draw, verdict, watch and challenges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from random import Random

from lab.incentives.ticket_weights import Weights
from lab.simulations.agents import Agent, Behavior, Beliefs
from lab.simulations.venue import SimulatedVerdict, Venue, WatchCommitment
from pol.incentives import payouts
from pol.incentives.abi import abi_hash
from pol.incentives.forced_errors import Assignment
from pol.incentives.game.game_inputs import CATCH_TRANSACTIONS
from pol.incentives.game.payoffs import Game
from pol.incentives.jackpot import watch_commitment
from pol.incentives.payouts import Payout
from pol.incentives.sortition import DrawnDuty, TicketDraw

TICKETS = 8
"""Of each party; a sybil has one under each of its accounts."""
VOLUNTEERS = 7
"""Tickets that are asked to look, on average, where there is no jackpot."""
PROFILING = 1
"""Number of the first seating, a profiler's."""
PROFILE_TRANSACTIONS = 2
"""Of a profiler: claim of the seat, profile."""
SUBMITTER, TREASURY, FUND, DONOR, OBJECTOR = "submitter", "treasury", "fund", "donor", "objector"


@dataclass
class Epoch:
    """What happened in some tasks."""

    tasks: int = 0
    fund_short: int = 0
    """Tasks that nobody could be seated for."""
    fabricated: int = 0
    """Tasks whose solver hadn't trained all of it, and was paid."""
    objected: int = 0
    """Tasks whose solver lost its stake by an objection to what no verdict had rejected."""
    wrong_rejections: int = 0
    seatings: int = 0
    lies: int = 0
    """Verdicts that were false after the disclosure, and those of them that fell."""
    lies_caught: int = 0
    planted: int = 0
    planted_caught: int = 0
    drawn: int = 0
    """Parties that were drawn to watch, and those of them that replayed."""
    watches: int = 0
    enrolled: int = 0
    """Whistleblowers at the end."""
    fund: int = 0


@dataclass
class SimulatedSeating:
    """A verdict and the commitments against it."""

    verifier: Agent
    said: SimulatedVerdict
    stands: bool = True
    """It was disclosed, and no dispute was lost."""
    commitments: list[tuple[Agent, WatchCommitment]] = field(default_factory=list)


@dataclass
class SimulatedMarket:
    """All agents, their money and their beliefs."""

    game: Game
    venue: Venue
    random: Random
    parties: Sequence[Agent]
    beliefs: Beliefs
    weights: Weights = field(default_factory=Weights)
    balances: Counter[str] = field(default_factory=Counter)
    catches: Counter[str] = field(default_factory=Counter)
    most_paid: int = 0
    holders: dict[bytes, Agent] = field(default_factory=dict)
    tickets: dict[bytes, int] = field(default_factory=dict)

    def enrol(self, party: Agent) -> None:
        """Give a party its tickets, or take them back."""
        for account in party.accounts:
            self.holders[account] = party
            tickets = TICKETS // len(party.accounts) if party.enrolled else 0
            if tickets != self.tickets.get(account, 0):
                self.weights.set(account, tickets, self.venue.enrol(account, tickets))
                self.tickets[account] = tickets

    def seated(self, draw: TicketDraw) -> tuple[bytes, int, Agent]:
        """Account, ticket and party that rank first: everybody claims."""
        _, account, ticket = self.weights.ranked(draw)[0]
        return account, ticket, self.holders[account]

    def pay(self, paid: Payout, *, solver: str = "", holder: str = "", challenger: str = "") -> None:
        """Credit a row of the settlement table to those who are named."""
        names = (SUBMITTER, solver, holder, challenger, FUND, TREASURY)
        for name, amount in zip(names, astuple(paid), strict=True):
            if amount:
                self.balances[name] += amount


def profile(world: SimulatedMarket, task_id: bytes) -> None:
    """The first seat is a profiler's. It replays as often as a verifier, whose fee it gets, and its profile is true."""
    opened = world.venue.open_seat(task_id, PROFILING)
    account, ticket, profiler = world.seated(TicketDraw(DrawnDuty.SEAT, task_id, PROFILING, *opened))
    world.venue.profile(task_id, account, ticket)
    world.balances[profiler.name] -= world.game.deal.verifier_stake
    profiler.spend(world.game, world.game.stakes.draws, PROFILE_TRANSACTIONS)
    world.pay(payouts.profile_concluded(world.game.deal), holder=profiler.name)


def seat(
    world: SimulatedMarket,
    task_id: bytes,
    number: int,
    truth: Sequence[bytes],
    solver: Agent,
    hits: frozenset[int],
    epoch: Epoch,
) -> SimulatedSeating:
    """From the draw to the end of the challenges.

    ``truth`` are the roots of the drawn segments; ``hits`` those of them that were fabricated.
    """
    game, deal, venue = world.game, world.game.deal, world.venue
    account, ticket, verifier = world.seated(
        TicketDraw(DrawnDuty.SEAT, task_id, number, *venue.open_seat(task_id, number))
    )
    world.balances[verifier.name] -= deal.verifier_stake
    replayed = verifier.replays(game, world.beliefs, world.random)
    verifier.spend_in_seat(game, replayed)
    lies = not replayed or bool(hits and verifier.kind is solver.kind is Behavior.COLLUDING)
    secret = abi_hash("secret", account, task_id, number)
    duty = Assignment(venue.sit(task_id, number, account, ticket, secret), task_id, number, secret)
    planted = duty.index(len(truth)) if game.chance and duty.is_forced(game.chance.rate) else None
    claims = [abi_hash("guess", root, number) for root in truth] if lies else list(truth)
    # Who has replayed nothing has no ground to reject.
    said = SimulatedVerdict(account, duty, claims, planted, frozenset() if lies else hits)
    seating = SimulatedSeating(verifier, said)
    found = _watch(world, task_id, seating, truth, hits, epoch)
    epoch.seatings += 1
    epoch.lies += lies
    if planted is not None:
        epoch.planted += 1
        epoch.planted_caught += any(index == planted for _, index in found)
    # Once the secret is out everybody sees which of the found errors are lies.
    accusers = [party for party, index in found if claims[index] != truth[index]]
    world.beliefs.learn("lies", bool(accusers))
    if verifier.kind is Behavior.WITHHOLDING:
        venue.withhold(task_id)
        world.pay(payouts.secret_withheld(deal))
        seating.stands = False
        return seating
    venue.disclose(task_id, said)
    if not lies:
        _grieve(world, task_id, seating)
        return seating
    world.beliefs.learn("caught", bool(accusers))
    if accusers:
        # A verifier can't challenge itself.
        friends = [p for p in world.parties if p.kind is verifier.kind is Behavior.COLLUDING and p is not verifier]
        challenger = (friends or accusers)[0]
        challenger.spend(game, 0, 1)
        venue.challenge(task_id, said, challenger.accounts[0], right=True)
        world.balances[challenger.name] -= deal.bond
        world.pay(payouts.challenger_right(deal), challenger=challenger.name)
        seating.stands = False
        epoch.lies_caught += 1
    return seating


def _watch(
    world: SimulatedMarket,
    task_id: bytes,
    seating: SimulatedSeating,
    truth: Sequence[bytes],
    hits: frozenset[int],
    epoch: Epoch,
) -> list[tuple[Agent, int]]:
    """Which parties have found which wrong claim by work of their own; commitments are noted."""
    game, said, number = world.game, seating.said, seating.said.duty.seating
    watching = TicketDraw(DrawnDuty.WATCH, task_id, number, *world.venue.post(task_id, said))
    drawn: dict[str, list[tuple[bytes, int]]] = {}
    for account, ticket in world.weights.watching(watching, game.chance.watchers if game.chance else VOLUNTEERS):
        if account != said.account:
            drawn.setdefault(world.holders[account].name, []).append((account, ticket))
    found: list[tuple[Agent, int]] = []
    seen = b""
    for tickets in drawn.values():
        party = world.holders[tickets[0][0]]
        epoch.drawn += 1
        index, told = None, party.kind is Behavior.COLLUDING and seating.verifier.kind is Behavior.COLLUDING
        if told:
            # It knows where the planted error is, and sees no lies.
            index = said.planted
        elif party.watches(game, world.beliefs):
            epoch.watches += 1
            index = _look(world, party, said.posted, truth)
            if index is not None:
                found.append((party, index))
        for account, ticket in tickets:
            salt = abi_hash("salt", account, task_id)
            # A copy can't be opened: what it was made of is another's account.
            at = index or 0
            entry = world.venue.entry(task_id, at, truth[at], at in hits)
            if index is not None:
                seen = watch_commitment(account, task_id, number, index, entry, salt)
            elif not (party.kind is Behavior.COPYING and seen):
                continue
            made = WatchCommitment(account, ticket, number, at, truth[at], entry, salt, seen)
            world.venue.watch(task_id, made)
            seating.commitments.append((party, made))
        if index is not None or (party.kind is Behavior.COPYING and seen):
            party.spend(game, 0, CATCH_TRANSACTIONS * len({account for account, _ in tickets}))
    return found


def _look(world: SimulatedMarket, party: Agent, posted: Sequence[bytes], truth: Sequence[bytes]) -> int | None:
    """Replay in an order of one's own up to the first claim that is wrong."""
    order = world.random.sample(range(len(truth)), len(truth))
    index = next((place for place in order if posted[place] != truth[place]), None)
    party.spend(world.game, len(order) if index is None else order.index(index) + 1, 0)
    return index


def _grieve(world: SimulatedMarket, task_id: bytes, seating: SimulatedSeating) -> None:
    """Challenges without a ground: each doubles the bond, and each is lost."""
    game, deal, verifier, earlier = world.game, world.game.deal, seating.verifier, 0
    for party in world.parties:
        if party.kind is not Behavior.GRIEFING or party is verifier:
            continue
        bond = payouts.bond_after(deal.bond, deal.verifier_stake, earlier)
        world.venue.challenge(task_id, seating.said, party.accounts[0], right=False)
        world.balances[party.name] -= bond
        party.work += game.costs.dispute
        verifier.work += game.costs.dispute + (0 if earlier else game.costs.segment)
        world.pay(payouts.challenger_wrong(replace(deal, bond=bond)), holder=verifier.name)
        earlier += 1
