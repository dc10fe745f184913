"""Sealed bids of the solvers' reverse auction (docs/spec/incentives.md, "The auction")."""

from __future__ import annotations

from dataclasses import dataclass

from pol.commitments.keccak import HASH_SIZE
from pol.errors import ProtocolError
from pol.incentives.abi import ADDRESS, abi_hash


@dataclass(frozen=True)
class Bid:
    """A solver's offer to train for ``price`` (smallest unit of the asset) in ``seconds``."""

    bidder: bytes
    """The account: 20 bytes."""
    price: int
    seconds: int

    def __post_init__(self) -> None:
        require_size("bidder", self.bidder, ADDRESS)
        if not 0 <= self.price < 1 << 128:
            raise ProtocolError("price is not an amount below 2^128")
        if not 0 < self.seconds < 1 << 32:
            raise ProtocolError("seconds is not a positive number below 2^32")


def commitment(round_id: bytes, bid: Bid, salt: bytes) -> bytes:
    """The hash that seals a bid in a round; ``salt`` is 32 secret random bytes."""
    require_size("salt", salt, HASH_SIZE)
    return abi_hash(round_id, bid.bidder, bid.price, bid.seconds, salt)


def require_size(name: str, value: bytes, size: int) -> None:
    """Check the length of a value in bytes. Raises ProtocolError: it has another length."""
    if len(value) != size:
        raise ProtocolError(f"{name} has {len(value)} bytes instead of {size}")
