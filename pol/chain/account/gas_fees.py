"""Fees of transactions: offers, caps, patience, and the budget of a game. Amounts in wei."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from web3 import Web3

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
    """The remaining moves of one side of a game, the gas of the dearest move, the wei and the bytes that they carry."""

    moves: int
    gas: int
    value: int = 0
    size: int = 0
    """Bytes of all moves: rollups take a fee for them."""

    def most(self, policy: FeePolicy, data_fee: int = 0) -> int:
        """Highest cost of the rest of the game: every move at the cap, and the fee for its bytes on L1."""
        return self.moves * self.gas * policy.cap + self.value + data_fee


ORACLE: Any = "0x420000000000000000000000000000000000000F"
"""GasPriceOracle of chains of the OP Stack."""
DATA_FEE_ROOM = 10
"""Factor by which the fee for data on L1 may rise before what was estimated no longer pays it: a choice."""
ENVELOPE = 160
"""Bytes of an unsigned transaction besides its data."""


def data_fee(web3: Web3, *sizes: int) -> int:
    """The most that transactions with so many bytes of data pay for them on L1 now, wei; 0 where no oracle says it.

    Raises:
        Web3Exception: the node fails.
    """
    if not sizes or not web3.eth.get_code(ORACLE):
        return 0
    # The bound grows by the byte; one call of `getL1FeeUpperBound(uint256)` for all.
    mean = -(-sum(sizes) // len(sizes)) + ENVELOPE
    answer = web3.eth.call({"to": ORACLE, "data": bytes.fromhex(f"f1c7a58b{mean:064x}")})
    return len(sizes) * int.from_bytes(answer, "big")
