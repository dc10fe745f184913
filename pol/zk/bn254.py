"""Numbers of the curve BN254, also called alt_bn128 (EIP-196, EIP-197)."""

from __future__ import annotations

from collections.abc import Iterable

R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
"""Order of the groups, the modulus of a circuit's numbers."""
Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583
"""Modulus of the coordinates of points."""


def to_field(value: int) -> int:
    """An integer, of either sign, as an element of the field."""
    return value % R


def from_field(element: int) -> int:
    """The integer nearest to zero that an element stands for."""
    return element if element <= R // 2 else element - R


G1 = (1, 2)
G2 = (
    10857046999023057135944570762232829481370756359578518086990519993285655852781,
    11559732032986387107991004021392285783925812861821192530917403151452391805634,
    8495653923123431417604973247489272438418190587263600148770280649306958101930,
    4082367875863433681332203403145435568316851327593401208105741076214120093531,
)
"""Generators of both groups; of the second, real parts before imaginary ones."""


def montgomery(coordinates: Iterable[int]) -> bytes:
    """Coordinates of points as the native code takes them: times 2**256, 32 bytes each, little-endian."""
    return b"".join((coordinate % Q * (1 << 256) % Q).to_bytes(32, "little") for coordinate in coordinates)


def coordinates(points: bytes) -> list[int]:
    """The inverse of `montgomery`."""
    back = pow(1 << 256, -1, Q)
    return [int.from_bytes(points[begin : begin + 32], "little") * back % Q for begin in range(0, len(points), 32)]


def scalars(values: Iterable[int]) -> bytes:
    """Numbers of the field as the native code takes them: 32 bytes each, little-endian."""
    return b"".join((value % R).to_bytes(32, "little") for value in values)
