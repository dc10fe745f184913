"""When a whistleblower joins: expected pay against expected cost.

This is private strategy, not a rule of the protocol (see docs/spec/incentives.md for its effect on the market).
"""

from __future__ import annotations

from dataclasses import dataclass

from pol.chain.desks.task_registry import Terms
from pol.incentives.payouts import (
    CHALLENGER_OF_VERIFIER_STAKE,
    MOST_OF_SOLVER_STAKE,
    OBJECTOR_OF_SOLVER_STAKE,
    share_down,
    slashable,
)
from pol.roles.party.dispute_session import GAME_GAS


@dataclass(frozen=True)
class Estimate:
    """Expected pay and cost of an action; wei."""

    pay: int
    cost: int

    @property
    def expected(self) -> int:
        """Pay less cost."""
        return self.pay - self.cost

    def __str__(self) -> str:
        return f"it expects {self.pay} wei and {self.cost} wei of costs"


@dataclass(frozen=True)
class JoinStrategy:
    """A whistleblower's beliefs, and its least expected profit. Amounts in wei."""

    least: int = 0
    """Least expected profit."""
    wrong: float = 1 / 64
    """Believed share of wrong profiles and verdicts."""
    loses: float = 1 / 1000
    """Believed probability to lose a dispute about a segment that it has replayed twice."""
    work_cost: float = 0
    """Cost of executing a work unit."""
    dice: int = 1
    """Segments of each log that are replayed besides those that a screen names."""

    def checking(self, terms: Terms, work: int, bond: int, gas_price: int) -> Estimate:
        """Executing ``work`` units, and challenging a false result."""
        challenged = self.challenging(terms, bond, 0, gas_price)
        return Estimate(round(self.wrong * challenged.pay), round(self.wrong * challenged.cost + self.work_cost * work))

    def challenging(self, terms: Terms, bond: int, others: int, gas_price: int) -> Estimate:
        """Challenging as one of ``others`` + 1. A challenger that is right, but not first, only gets its bond back."""
        reward = share_down(terms.verifier_stake, CHALLENGER_OF_VERIFIER_STAKE)
        pay = (1 - self.loses) * reward / (others + 1)
        return Estimate(round(pay), round(self.loses * bond + GAME_GAS * gas_price))

    def screening(self, terms: Terms, work: int, bond: int, gas_price: int) -> Estimate:
        """Looking at a whole log, executing ``work`` units, and objecting to a false segment."""
        objected = self.objecting(terms, bond, gas_price)
        return Estimate(round(self.wrong * objected.pay), round(self.wrong * objected.cost + self.work_cost * work))

    def objecting(self, terms: Terms, bond: int, gas_price: int) -> Estimate:
        """Objecting to a segment."""
        stake = slashable(terms.solver_stake, terms.verifier_fee, terms.looks, terms.draws)
        # The fund's tax can only lower it to this.
        reward = max(min(bond, share_down(stake, MOST_OF_SOLVER_STAKE)), share_down(stake, OBJECTOR_OF_SOLVER_STAKE))
        return Estimate(round((1 - self.loses) * reward), round(self.loses * bond + GAME_GAS * gas_price))

    def refuses(self, estimate: Estimate) -> str:
        """Why the estimate is too low; empty if it isn't."""
        if estimate.expected >= self.least:
            return ""
        return f"{estimate}; it wants {self.least} wei at least to be left"
