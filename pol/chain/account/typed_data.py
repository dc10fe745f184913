"""Types and domains of EIP-712 signatures."""

from __future__ import annotations

from typing import Any

from eth_typing import ChecksumAddress


def signed_struct(name: str, members: str) -> dict[str, list[dict[str, str]]]:
    """The type of a signed message; ``members`` as in Solidity: ``"address to, uint256 value"``."""
    pairs = (member.split() for member in members.split(", "))
    return {name: [{"name": member, "type": kind} for kind, member in pairs]}


def signing_domain(name: str, version: str, chain_id: int, contract: ChecksumAddress) -> dict[str, Any]:
    """A domain without a salt."""
    return {"name": name, "version": version, "chainId": chain_id, "verifyingContract": contract}
