"""BLS signatures on BLS12-381 by arkworks, for daily use; `bls_reference` is the same in plain Python."""

from __future__ import annotations

from py_arkworks_bls12381 import GT, G1Point, G2Point

from pol.errors import ProtocolError
from pol.verification.beacon.bls_ciphersuite import DST_G1, DST_G2, G1_BYTES


def verify_signature(public_key: bytes, message: bytes, signature: bytes) -> None:
    """Check a signature; the length of the compressed points says which group is whose (48 bytes G1, 96 bytes G2)."""
    if len(signature) == G1_BYTES:
        point, key = _g1(signature, "signature"), _g2(public_key, "public key")
        signed = GT.pairing_check([point, -G1Point.hash_to_curve(message, DST_G1)], [G2Point(), key])
    else:
        key1, point2 = _g1(public_key, "public key"), _g2(signature, "signature")
        signed = GT.pairing_check([G1Point(), -key1], [point2, G2Point.hash_to_curve(message, DST_G2)])
    if not signed:
        raise ProtocolError("the signature is not the network's for this message")


def decompress_g1(data: bytes) -> bytes:
    """The coordinates x and y of a signature on G1, 48 bytes each, big-endian: what the contract takes."""
    return bytes(_g1(data, "signature").to_xy_bytes_be())


def _g1(data: bytes, name: str) -> G1Point:
    try:
        point = G1Point.from_compressed_bytes(data)
    except ValueError as error:
        raise ProtocolError(f"the {name} is no point of G1: {error}") from error
    if point == G1Point.identity() or bytes(point.to_compressed_bytes()) != data:
        raise ProtocolError(f"the {name} is at infinity, or not in canonical form")
    return point


def _g2(data: bytes, name: str) -> G2Point:
    try:
        point = G2Point.from_compressed_bytes(data)
    except ValueError as error:
        raise ProtocolError(f"the {name} is no point of G2: {error}") from error
    if point == G2Point.identity() or bytes(point.to_compressed_bytes()) != data:
        raise ProtocolError(f"the {name} is at infinity, or not in canonical form")
    return point
