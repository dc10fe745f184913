"""Numbers of the curve BN254, also called alt_bn128 (EIP-196, EIP-197)."""

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
