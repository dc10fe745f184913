"""Fees of transactions: offers, caps, patience, and the budget of a game. Amounts in wei."""

from __future__ import annotations

from dataclasses import dataclass

GWEI = 10**9


@dataclass(frozen=True)
class Fees:
    """An offer for a unit of gas: at most ``most``, of which ``tip`` goes to the block's proposer (EIP-1559)."""

    most: int
    tip: int


@dataclass(frozen=True)
class FeePolicy:
    """Caps for a unit of gas: ``cap`` for the whole price, ``tip_cap`` for the tip in it."""

    cap: int = 2000 * GWEI
    tip_cap: int = 200 * GWEI

    def first(self, base: int, tip: int) -> Fees:
        """An offer that holds until the base fee has doubled, or the cap."""
        return self._capped(2 * base + tip, tip)

    def raised(self, last: Fees, base: int, tip: int) -> Fees | None:
        """An offer that replaces ``last`` and follows the base fee; None beyond the caps.

        Nodes ask for a raise of both fields by up to an eighth (12.5 %). Only base fee and tip are paid.
        """
        least = Fees(_eighth_more(last.most), _eighth_more(last.tip))
        tip = max(least.tip, tip)
        offer = self._capped(max(least.most, 2 * base + tip), tip)
        return offer if offer.most >= least.most and offer.tip >= least.tip else None

    def _capped(self, most: int, tip: int) -> Fees:
        most = min(most, self.cap)
        return Fees(most, min(tip, self.tip_cap, most))


FEES = FeePolicy()
"""The default policy."""


def _eighth_more(wei: int) -> int:
    return max(-(-wei * 9 // 8), wei + 1)


@dataclass(frozen=True)
class InclusionPolicy:
    """How long a transaction may wait for its block.

    It is replaced after ``blocks`` blocks or ``seconds`` seconds without it. A call gives up after ``timeout`` seconds;
    its transaction stays. A transaction is done after ``confirmations`` blocks, its own included. It is gone after
    ``depth`` blocks of another one with its nonce: only then the call is made again.
    """

    blocks: int = 3
    seconds: float = 60
    timeout: float = 180
    confirmations: int = 1
    depth: int = 12


@dataclass(frozen=True)
class Budget:
    """The remaining moves of one side of a game, the gas of the dearest move, and the wei that they carry."""

    moves: int
    gas: int
    value: int = 0

    def most(self, policy: FeePolicy) -> int:
        """Highest cost of the rest of the game: every move at the cap."""
        return self.moves * self.gas * policy.cap + self.value
