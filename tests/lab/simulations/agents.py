"""Agents of a simulation, and the behavior of each kind (docs/spec/game.md, "Simulation")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.abi import abi_hash
from pol.incentives.game.game_inputs import CATCH_TRANSACTIONS, CLAIM_TRANSACTIONS, Fabrication, temptations
from pol.incentives.game.payoffs import Game

LEARNING = 0.2
"""Weight of one observation in a belief."""
EXPLORING = 0.05
"""How often a rational agent tries the action that it believes to be worse."""
SYBIL_ACCOUNTS = 8


class Behavior(StrEnum):
    """Behavior of an agent."""

    HONEST = "honest"
    LAZY = "lazy"
    """Guesses in the seat, sleeps as a watcher."""
    COPYING = "copying"
    """Does its duty in the seat; as a watcher posts the commitment of another."""
    COLLUDING = "colluding"
    """One coalition with all of its kind, solvers too: lies for them, doesn't see their lies, lets a friend win."""
    SYBIL = "sybil"
    """Honest, with its tickets under eight accounts."""
    GRIEFING = "griefing"
    """Challenges verdicts that are right."""
    WITHHOLDING = "withholding"
    """Never discloses a secret."""
    RATIONAL = "rational"
    """Does what it believes to pay best, and learns from what happens."""
    WHISTLEBLOWER = "whistleblower"
    """Watches if that pays, and enrols and resigns for it."""


VERIFIERS = tuple(kind for kind in Behavior if kind is not Behavior.WHISTLEBLOWER)
SOLVERS = (Behavior.HONEST, Behavior.COLLUDING, Behavior.LAZY, Behavior.RATIONAL)
"""Kinds that train: a lazy or colluding solver always fabricates, as many segments as pay best."""


@dataclass
class Beliefs:
    """Shared beliefs, learned from events."""

    lies: float
    """A verdict is false and somebody finds it."""
    caught: float = 0.9
    """A false verdict falls."""
    rejected: float = 0.9
    """A fabricated segment that was drawn leads to a rejection."""

    def learn(self, name: str, happened: bool) -> None:
        """Move a belief towards what has been seen."""
        before = getattr(self, name)
        setattr(self, name, before + LEARNING * (float(happened) - before))


@dataclass
class Agent:
    """One agent: its accounts, the speed of its machine, and its spending on work."""

    name: str
    kind: Behavior
    pace: float = 1.0
    """Its cost of work, as a multiple of the game's costs."""
    enrolled: bool = True
    work: float = 0.0
    accounts: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        count = SYBIL_ACCOUNTS if self.kind is Behavior.SYBIL else 1
        self.accounts = tuple(abi_hash(self.name, number)[:20] for number in range(count))

    def replays(self, game: Game, beliefs: Beliefs, random: Random) -> bool:
        """In the seat: whether it replays what was drawn instead of guessing."""
        if self.kind is not Behavior.RATIONAL:
            return self.kind is not Behavior.LAZY
        fee, work = game.stakes.verifier_fee, game.verification * self.pace
        guess = (1 - beliefs.caught) * fee - beliefs.caught * game.fall
        return (fee - work >= guess) != (random.random() < EXPLORING)

    def expected(self, game: Game, beliefs: Beliefs) -> float:
        """Believed pay of watching one verdict with one ticket."""
        prize = game.share if game.chance else game.reward
        found = game.rate + beliefs.lies
        return found * (prize - CATCH_TRANSACTIONS * game.costs.transaction) - game.verification * self.pace

    def watches(self, game: Game, beliefs: Beliefs) -> bool:
        """Drawn to watch: whether it replays the verdict."""
        if self.kind in (Behavior.LAZY, Behavior.COPYING):
            return False
        if self.kind in (Behavior.RATIONAL, Behavior.WHISTLEBLOWER):
            return self.expected(game, beliefs) > 0
        return True

    def fabricates(self, game: Game, beliefs: Beliefs, random: Random) -> Fabrication | None:
        """As a solver: how it fabricates segments; None if it trains all of them."""
        if self.kind not in (Behavior.LAZY, Behavior.COLLUDING, Behavior.RATIONAL):
            return None
        threat, stakes = game.threat, game.stakes
        # A friend that asks for data brings back a part of a stake that is lost anyhow.
        kept = payouts.data_withheld(game.deal, stood=False).challenger
        total, tempted = stakes.price + stakes.solver_stake - kept, []
        tempting = {
            *temptations(stakes.segments, threat.least, threat.saved_by_one_lie),
            *temptations(stakes.segments, threat.least, 1 / stakes.segments),
        }
        for way in game.fabrications():
            if way.cheated not in tempting:
                continue
            gain = threat.gain if way.cheated >= threat.least else 0
            lost = 1 - (1 - (1 - way.missed) * beliefs.rejected) * way.unseen
            tempted.append((gain + game.costs.training * self.pace * way.saved - lost * total, way.cheated, way))
        value, _, way = max(tempted, key=lambda each: each[:2])
        if self.kind is not Behavior.RATIONAL:
            return way
        return way if (value > 0) != (random.random() < EXPLORING) else None

    def spend(self, game: Game, segments: float, transactions: int) -> None:
        """Pay for replays and for gas."""
        self.work += segments * game.costs.segment * self.pace + transactions * game.costs.transaction

    def spend_in_seat(self, game: Game, replayed: bool) -> None:
        """Pay for a seating."""
        self.spend(game, game.stakes.draws if replayed else 0, CLAIM_TRANSACTIONS)


def people(role: str, counts: Mapping[Behavior, int], kinds: tuple[Behavior, ...], random: Random) -> list[Agent]:
    """Agents of each kind; whistleblowers have machines with half to twice the cost.

    Raises:
        ProtocolError: a kind that has no such role, or fewer than none.
    """
    found = []
    for kind, count in counts.items():
        if kind not in kinds or count < 0:
            raise ProtocolError(f"there are no {count} {kind} {role}s; kinds: {', '.join(kinds)}")
        for number in range(count):
            pace = 0.5 * 4 ** random.random() if kind is Behavior.WHISTLEBLOWER else 1.0
            found.append(Agent(f"{role} {kind} {number}", kind, pace, enrolled=kind is not Behavior.WHISTLEBLOWER))
    if not found and Behavior.WHISTLEBLOWER not in kinds:
        raise ProtocolError(f"somebody has to be {role}")
    return found
