"""What a transaction offers for a unit of gas, what it may offer at most, and what a whole game may cost; wei."""

from __future__ import annotations

from dataclasses import dataclass

GWEI = 10**9


@dataclass(frozen=True)
class Fees:
    """An offer: at most ``most`` for a unit of gas, of which ``tip`` goes to the proposer of the block (EIP-1559)."""

    most: int
    tip: int


@dataclass(frozen=True)
class FeePolicy:
    """Caps in wei for a unit of gas: ``cap`` for the whole price, ``tip_cap`` for the tip in it."""

    cap: int = 2000 * GWEI
    tip_cap: int = 200 * GWEI

    def first(self, base: int, tip: int) -> Fees:
        """An offer that holds until the base fee has doubled, or the cap."""
        return self._capped(2 * base + tip, tip)

    def raised(self, last: Fees, base: int, tip: int) -> Fees | None:
        """An offer that nodes take in the place of ``last`` and that follows the base fee; None beyond the caps.

        Nodes want both fields raised by an eighth (12.5 %) at most; what is paid is the base fee and the tip.
        """
        least = Fees(_eighth_more(last.most), _eighth_more(last.tip))
        tip = max(least.tip, tip)
        offer = self._capped(max(least.most, 2 * base + tip), tip)
        return offer if offer.most >= least.most and offer.tip >= least.tip else None

    def _capped(self, most: int, tip: int) -> Fees:
        most = min(most, self.cap)
        return Fees(most, min(tip, self.tip_cap, most))


FEES = FeePolicy()
"""What transactions may cost, if nobody says otherwise."""


def _eighth_more(wei: int) -> int:
    return max(-(-wei * 9 // 8), wei + 1)


@dataclass(frozen=True)
class InclusionPolicy:
    """How long a transaction may wait.

    It is replaced when ``blocks`` blocks or ``seconds`` seconds went by without it; a call gives up after ``timeout``
    seconds, its transaction stays; a transaction is done when ``confirmations`` blocks hold it, its own counts.
    """

    blocks: int = 3
    seconds: float = 60
    timeout: float = 180
    confirmations: int = 1


@dataclass(frozen=True)
class Budget:
    """The moves that a game may still ask of one side, the gas of the dearest, and the wei that they carry."""

    moves: int
    gas: int
    value: int = 0

    def most(self, policy: FeePolicy) -> int:
        """What the rest of the game may cost at most: every move at the cap; wei."""
        return self.moves * self.gas * policy.cap + self.value
