"""Needs of a submitter: the value of a task, the costs of work, and the adversary to withstand."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite

from pol.claims.segment_draw import MAX_DRAWS
from pol.errors import ProtocolError

DAY = 86_400


@dataclass(frozen=True)
class Needs:
    """Needs that parameters have to meet. Amounts are integers in the smallest unit of the asset.

    Raises:
        ProtocolError: a number is out of range; the message says which.
    """

    task_value: int
    """Value of the trained model to its submitter."""
    verify_cost: int
    """Cost of replaying the whole training."""
    cheat_gain: int
    """Gain of a solver whose fabricated work passes, beside the saved work."""
    train_cost: int | None = None
    """Cost of the training; that of its replay by default."""
    segments: int = 100
    cheat_fraction: float = 0.05
    """Least fabricated part of the training that brings the gain."""
    saved_by_one_lie: float = 1.0
    """Largest part of the training that one fabricated segment saves: all of it, unless a jump to a state from which
    training is free is impossible or shows. Less than a segment counts as one."""
    objectors: float = 0.0
    """Probability that somebody outside of the coalition looks at the whole log, and objects to a jump in it."""
    confidence: float = 0.99
    """Probability that a party outside of the coalition finds a false verdict."""
    detection: float = 0.0
    """Least probability that the least cheat is drawn, whatever the stake."""
    coalition: float = 0.25
    """Largest share of all tickets in one hand."""
    beacon_bits: int = 0
    """Bits of the beacon's seed that an adversary can choose: 0 with drand, 1 for a proposer that can skip one slot."""
    margin: float = 0.2
    """Relative margin on every bound."""
    most_draws: int = MAX_DRAWS
    most_stake: int | None = None
    """Highest stake of a solver; twice the value of the task by default."""
    transaction: int = 0
    dispute: int = 0
    """Cost of all moves of one side of a dispute."""
    capital: float = 0.10
    """Yearly interest on locked money."""
    train_seconds: int = DAY
    slowest: float = 4.0
    """Time of the slowest party's replay, as a multiple of the replay on the training machine."""
    fastest: float = 4.0
    """Speed of the fastest party's replay, as a multiple of the same."""
    side_seconds: float = 0.0
    """Time of all moves of one side of a dispute on the training machine; that of a replay of a segment at least."""
    replay_seconds: float = 0.0
    """Time of the longest of them where a segment or a step is executed; the same at least."""
    move_seconds: float = 0.0
    """Time of the longest other one."""
    commit_window: int = 120
    paid_within: int = 12
    """Watches after which a ticket has been paid at least once, with probability 95 %."""
    false_reject: float = 1e-4
    exact: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float) and not isfinite(value):
                raise ProtocolError(f"{name} has to be a number, not {value}")
        for name in ("task_value", "verify_cost", "segments", "train_seconds", "commit_window", "paid_within"):
            if getattr(self, name) < 1:
                raise ProtocolError(f"{name} has to be above zero")
        seconds = ("side_seconds", "replay_seconds", "move_seconds")
        for name in ("cheat_gain", "transaction", "dispute", "margin", "capital", "beacon_bits", *seconds):
            if getattr(self, name) < 0:
                raise ProtocolError(f"{name} is negative")
        bounds = (("cheat_fraction", 0.0, 1.0), ("confidence", 0.5, 0.9999999), ("margin", 0.001, 10.0))
        for name, least, most in bounds:
            if not least < getattr(self, name) <= most:
                raise ProtocolError(f"{name} has to be above {least} and at most {most}")
        shares = (("saved_by_one_lie", 1.0), ("objectors", 1.0))
        fractions = (("coalition", 0.95), ("false_reject", 0.5), ("detection", 0.9999999), *shares)
        for name, most in fractions:
            if not 0 <= getattr(self, name) <= most:
                raise ProtocolError(f"{name} has to be from 0 to {most}")
        if self.slowest < 1 or self.fastest < 1:
            raise ProtocolError("slowest and fastest are factors of 1 or more")
        if not 1 <= self.most_draws <= MAX_DRAWS:
            raise ProtocolError(f"most_draws: a task has 1 to {MAX_DRAWS} draws on chain")
        if self.beacon_bits > 6:
            raise ProtocolError("a choice of more than 64 seeds controls the beacon: use another beacon")

    @property
    def training(self) -> int:
        """Cost of the training."""
        return self.verify_cost if self.train_cost is None else self.train_cost

    @property
    def rejects_honest(self) -> float:
        """How often honest work is rejected; never in exact mode."""
        return 0.0 if self.exact else self.false_reject

    @property
    def paid_beside(self) -> str:
        """The parties that are paid beside the solver and the watchers."""
        return "verifier" if self.exact else "profiler, verifier"

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
        """Number of seeds that an adversary chooses from."""
        return 1 << self.beacon_bits
