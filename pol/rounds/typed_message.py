"""Signed structs of rounds: EIP-712 digests without a chain (docs/spec/rounds.md, "Keys")."""

from __future__ import annotations

from collections.abc import Sequence

from pol.commitments.keccak import keccak256

WORD = 32
_DOMAIN_TYPE = keccak256(b"EIP712Domain(string name,string version)")
DOMAIN = keccak256(_DOMAIN_TYPE + keccak256(b"pol rounds") + keccak256(b"1"))
"""Names no chain and no contract: all that is signed names its plan, and a plan is unique."""


def message_digest(type_: str, members: Sequence[bytes | int]) -> bytes:
    """The digest that is signed: of a struct with this type string, whose members are hashes or unsigned integers."""
    words = [member if isinstance(member, bytes) else member.to_bytes(WORD, "big") for member in members]
    struct = keccak256(keccak256(type_.encode()) + b"".join(words))
    return keccak256(b"\x19\x01" + DOMAIN + struct)
