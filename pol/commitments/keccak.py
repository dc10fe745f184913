"""keccak-256 with the original padding: the hash of every commitment and of the EVM."""

from __future__ import annotations

from pol.commitments import _hashing

HASH_SIZE = 32
Keccak256 = _hashing.Keccak256
"""The hash of a message that comes piece by piece: ``update(piece)``, then ``digest()``."""


def keccak256(message: bytes | bytearray) -> bytes:
    """The 32-byte keccak-256 digest of the message."""
    return _hashing.keccak256(message)
