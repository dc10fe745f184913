"""Rounds of drand, the public randomness of the League of Entropy: their times and signatures (docs/spec/beacon.md)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from pol.errors import OperationalError, ProtocolError
from pol.verification.beacon.bls_ciphersuite import G1_BYTES, G2_BYTES, SignatureVerifier

LAST_ROUND = 2**64 - 1


@dataclass(frozen=True)
class DrandNetwork:
    """A drand network; its chain hash fixes it for ever."""

    name: str
    chain_hash: bytes
    public_key: bytes
    """Compressed; where it lies on G2, signatures lie on G1, and the other way round."""
    genesis: int
    """Time of round 1, in seconds since 1970."""
    period: int
    """Seconds from round to round."""
    chained: bool
    """Whether a round signs the signature of the one before as well."""

    @property
    def signature_bytes(self) -> int:
        """Length of a compressed signature."""
        return G1_BYTES if len(self.public_key) == G2_BYTES else G2_BYTES

    def time_of(self, number: int) -> int:
        """The time at which round ``number`` is due. Raises ProtocolError: there is no such round."""
        _require_number(number)
        return self.genesis + (number - 1) * self.period

    def round_at(self, time: int) -> int:
        """The last round that is due at ``time``; 0 before the first."""
        return max(0, (time - self.genesis) // self.period + 1)

    def round_after(self, time: int, delay: int) -> int:
        """The round that binds a claim made at ``time``: the first that is due more than ``delay`` seconds later."""
        if delay < 0:
            raise ProtocolError(f"a delay of {delay} s: a round must not be known before the claim")
        return self.round_at(time + delay) + 1


QUICKNET = DrandNetwork(
    name="quicknet",
    chain_hash=bytes.fromhex("52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"),
    public_key=bytes.fromhex(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
        "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
    genesis=1692803367,
    period=3,
    chained=False,
)
"""Scheme bls-unchained-g1-rfc9380: what the contract verifies."""

DEFAULT = DrandNetwork(
    name="default",
    chain_hash=bytes.fromhex("8990e7a9aaed2ffed73dbd7092123d6f289930540d7651336225dc172e51b2ce"),
    public_key=bytes.fromhex(
        "868f005eb8e6e4ca0a47c8a77ceaa5309a47978a7c71bc5cce96366b5d7a569937c529eeda66c7293784a9402801af31"
    ),
    genesis=1595431050,
    period=30,
    chained=True,
)
"""Scheme pedersen-bls-chained: the oldest network."""

NETWORKS = {network.name: network for network in (QUICKNET, DEFAULT)}


@dataclass(frozen=True)
class Round:
    """A published round, unchecked before `verify_round`."""

    number: int
    signature: bytes
    """Compressed point."""
    previous: bytes = b""
    """Signature of the round before, on a chained network; round 1 has the network's seed of 32 bytes there."""

    @property
    def seed(self) -> bytes:
        """The round's randomness, 32 bytes."""
        return sha256(self.signature).digest()


def signed_message(network: DrandNetwork, published: Round) -> bytes:
    """The message that the network signs for a round, before it is hashed to the curve: 32 bytes."""
    _require_number(published.number)
    if len(published.signature) != network.signature_bytes:
        raise ProtocolError(
            f"a signature of {network.name} has {network.signature_bytes} bytes, not {len(published.signature)}"
        )
    before = (32 if published.number == 1 else network.signature_bytes) if network.chained else 0
    if len(published.previous) != before:
        raise ProtocolError(
            f"round {published.number} of {network.name} signs {before} bytes of the round before, "
            f"not {len(published.previous)}"
        )
    return sha256(published.previous + published.number.to_bytes(8, "big")).digest()


def verify_round(network: DrandNetwork, published: Round, verifier: SignatureVerifier | None = None) -> bytes:
    """The seed of a round, 32 bytes, if the network has signed it.

    ``verifier`` is `bls_arkworks.verify_signature` unless it is given; `bls_reference` has the other.

    Raises:
        ProtocolError: the network has not signed this round.
        OperationalError: the extra ``proof-of-learning[beacon]`` isn't installed.
    """
    signed = signed_message(network, published)
    try:
        (verifier or _arkworks_verifier())(network.public_key, signed, published.signature)
    except ProtocolError as error:
        raise ProtocolError(f"round {published.number} of {network.name}: {error}") from error
    return published.seed


def _arkworks_verifier() -> SignatureVerifier:
    try:
        from pol.verification.beacon.bls_arkworks import verify_signature
    except ImportError as error:
        raise OperationalError(f"can't verify drand: {error}; pip install 'proof-of-learning[beacon]'") from error
    return verify_signature


def _require_number(number: int) -> None:
    if not 1 <= number <= LAST_ROUND:
        raise ProtocolError(f"there is no round {number}: rounds count from 1 to 2^64 - 1")
