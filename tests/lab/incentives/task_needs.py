"""Needs of a submitter: the value of a task, the costs of work, and the adversary to withstand."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from lab.incentives.amounts import UNIT
from pol.claims.segment_draw import MAX_DRAWS

DAY = 86_400


@dataclass(frozen=True)
class Needs:
    """Needs that parameters have to meet. Amounts are integers in the smallest unit of the asset."""

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
    commit_window: int = 120
    paid_within: int = 12
    """Watches after which a ticket has been paid at least once, with probability 95 %."""
    false_reject: float = 1e-4
    exact: bool = False

    @property
    def training(self) -> int:
        """Cost of the training."""
        return self.verify_cost if self.train_cost is None else self.train_cost

    @property
    def rejects_honest(self) -> float:
        """How often honest work is rejected; never in exact mode."""
        return 0.0 if self.exact else self.false_reject

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


EXAMPLE = Needs(100 * UNIT, 20 * UNIT, 10 * UNIT, transaction=UNIT // 1000, dispute=UNIT // 100)
"""The example of docs/spec/game.md."""
