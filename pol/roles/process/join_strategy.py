"""When a whistleblower joins and when it leaves: what it expects to be paid against what it expects to pay.

A bet of its own: nothing here is a rule of the protocol (docs/spec/incentives.md says what the market makes of it).
"""

from __future__ import annotations

from dataclasses import dataclass

from pol.chain.account.gas_fees import Budget
from pol.chain.desks.task_registry import Terms
from pol.incentives.payouts import CHALLENGER_OF_VERIFIER_STAKE, share_down

GAME_GAS = 1_000_000
"""Of one side in the longest of disputes, with the challenge and the settlement (docs/goals.md)."""
GAME = Budget(1, GAME_GAS)
"""What a party holds before it puts up a stake that it may have to play for."""


@dataclass(frozen=True)
class Estimate:
    """What a party expects of doing something; wei."""

    pay: int
    cost: int

    @property
    def expected(self) -> int:
        """What is left."""
        return self.pay - self.cost

    def __str__(self) -> str:
        return f"it expects {self.pay} wei and {self.cost} wei of costs"


@dataclass(frozen=True)
class Strategy:
    """A whistleblower's beliefs, and the least for which it moves. Amounts in wei."""

    least: int = 0
    """What it has to expect to be left with."""
    wrong: float = 1 / 64
    """Share of profiles and verdicts that it believes to be wrong."""
    loses: float = 1 / 1000
    """How often it believes to lose a dispute over something that it has replayed twice."""
    work_cost: float = 0
    """What executing a unit of work costs it."""

    def checking(self, terms: Terms, work: int, bond: int, gas_price: int) -> Estimate:
        """To execute ``work`` units, and to challenge what turns out to be wrong."""
        challenged = self.challenging(terms, bond, 0, gas_price)
        return Estimate(round(self.wrong * challenged.pay), round(self.wrong * challenged.cost + self.work_cost * work))

    def challenging(self, terms: Terms, bond: int, others: int, gas_price: int) -> Estimate:
        """To challenge what is wrong, as one of ``others`` + 1: who is right, but not first, only has its bond back."""
        reward = share_down(terms.verifier_stake, CHALLENGER_OF_VERIFIER_STAKE)
        pay = (1 - self.loses) * reward / (others + 1)
        return Estimate(round(pay), round(self.loses * bond + GAME_GAS * gas_price))

    def refuses(self, estimate: Estimate) -> str:
        """Why it leaves it; empty if it doesn't."""
        if estimate.expected >= self.least:
            return ""
        return f"{estimate}; it wants {self.least} wei at least to be left"
