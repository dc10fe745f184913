"""Contract hashes: keccak-256 over ``abi.encode``."""

from __future__ import annotations

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError

WORD = 32
ADDRESS = 20


def abi_hash(*values: int | bytes | str) -> bytes:
    """The keccak-256 of ``abi.encode(values)``: 32 bytes.

    Integers are unsigned, 20 bytes are an address, 32 bytes a word, text is a string. Structs and fixed-size arrays are
    passed as their members.
    """
    head, tail = b"", b""
    for value in values:
        if isinstance(value, str):
            text = value.encode()
            head += (len(values) * WORD + len(tail)).to_bytes(WORD, "big")
            tail += len(text).to_bytes(WORD, "big") + text + bytes(-len(text) % WORD)
        else:
            head += _word(value)
    return keccak256(head + tail)


def _word(value: int | bytes) -> bytes:
    if isinstance(value, int):
        if not 0 <= value < 1 << 256:
            raise ProtocolError(f"{value} is not an unsigned integer of 256 bits")
        return value.to_bytes(WORD, "big")
    if len(value) not in (ADDRESS, WORD):
        raise ProtocolError(f"{len(value)} bytes are neither an address (20) nor a word (32)")
    return value.rjust(WORD, b"\0")
