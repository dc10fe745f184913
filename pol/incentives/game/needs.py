"""What a submitter needs: the value of a task, the costs of work, and the adversary that its parameters withstand."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite

from pol.claims.sampling import MAX_DRAWS
from pol.errors import ProtocolError

DAY = 86_400


@dataclass(frozen=True)
class Needs:
    """What parameters are for. Amounts are integers in the smallest unit of the asset.

    Raises:
        ProtocolError: a number that makes no sense; it says which.
    """

    task_value: int
    """What the trained model is worth to its submitter."""
    verify_cost: int
    """Replaying the whole training."""
    cheat_gain: int
    """What a solver gains if fabricated work passes, beside the work that it saves."""
    train_cost: int | None = None
    """The training itself; as much as its replay, if it isn't named."""
    segments: int = 100
    cheat_fraction: float = 0.05
    """The least part of the training that brings the gain."""
    saved_by_one_lie: float = 1.0
    """The most of the training that one fabricated segment saves: all of it, unless there is a reason why a jump to a
    state from which going on costs nothing is impossible or shows. Less than a segment counts as one."""
    confidence: float = 0.99
    """How surely somebody of no coalition finds a false verdict."""
    detection: float = 0.0
    """How surely the least cheat has to be drawn, however high the stake is."""
    coalition: float = 0.25
    """Share of all tickets that may be in one hand."""
    beacon_bits: int = 0
    """Bits of the beacon's seed that an adversary can choose: 0 with drand, 1 for a proposer that can skip one slot."""
    margin: float = 0.2
    """By which part more than it has to be everything is paid."""
    most_draws: int = MAX_DRAWS
    most_stake: int | None = None
    """Of a solver; as much as the task is worth, if it isn't named."""
    transaction: int = 0
    dispute: int = 0
    """All moves of one side."""
    capital: float = 0.10
    """Interest on locked money, a year."""
    train_seconds: int = DAY
    slowest: float = 4.0
    """The slowest party takes this many times as long as a replay takes on the machine of the training."""
    fastest: float = 4.0
    """The fastest one this part of it."""
    commit_window: int = 120
    paid_within: int = 12
    """Watches after which a ticket has been paid at least once, with 95 %."""
    false_reject: float = 1e-4
    exact: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float) and not isfinite(value):
                raise ProtocolError(f"{name} has to be a number, not {value}")
        for name in ("task_value", "verify_cost", "segments", "train_seconds", "commit_window", "paid_within"):
            if getattr(self, name) < 1:
                raise ProtocolError(f"{name} has to be above zero")
        for name in ("cheat_gain", "transaction", "dispute", "margin", "capital", "beacon_bits"):
            if getattr(self, name) < 0:
                raise ProtocolError(f"{name} is negative")
        bounds = (("cheat_fraction", 0.0, 1.0), ("confidence", 0.5, 0.9999999), ("margin", 0.001, 10.0))
        for name, least, most in bounds:
            if not least < getattr(self, name) <= most:
                raise ProtocolError(f"{name} has to be above {least} and at most {most}")
        fractions = (("coalition", 0.95), ("false_reject", 0.5), ("detection", 0.9999999), ("saved_by_one_lie", 1.0))
        for name, most in fractions:
            if not 0 <= getattr(self, name) <= most:
                raise ProtocolError(f"{name} has to be from 0 to {most}")
        if self.slowest < 1 or self.fastest < 1:
            raise ProtocolError("slowest and fastest are factors of 1 or more")
        if not 1 <= self.most_draws <= MAX_DRAWS:
            raise ProtocolError(f"most_draws: a task has 1 to {MAX_DRAWS} draws on chain")
        if self.beacon_bits > 6:
            raise ProtocolError("whoever can choose among more than 64 seeds has the beacon: name another beacon")

    @property
    def training(self) -> int:
        """Cost of the training."""
        return self.verify_cost if self.train_cost is None else self.train_cost

    @property
    def segment(self) -> int:
        """Cost of replaying one segment, rounded up."""
        return -(-self.verify_cost // self.segments)

    @property
    def least(self) -> int:
        """The fewest segments whose fabrication brings the gain."""
        return max(1, ceil(self.cheat_fraction * self.segments - 1e-9))

    @property
    def seeds(self) -> int:
        """Among how many seeds an adversary chooses."""
        return 1 << self.beacon_bits
