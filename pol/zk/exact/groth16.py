"""Groth16 over BN254 (eprint 2016/260) for exact circuits: verifying keys, proofs, and a verifier by py_ecc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.zk.bn254 import Q, R

G1 = tuple[int, int]
G2 = tuple[int, int, int, int]
"""Coordinates of a point of the second group as the chain takes them: imaginary parts first (EIP-197)."""

_WORD = 32
PROOF_BYTES = 8 * _WORD


@dataclass(frozen=True)
class VerifyingKey:
    """The key of verifiers: four points, and one for each public number and for the number one.

    Raises ProtocolError for a coordinate outside the field.
    """

    alpha: G1
    beta: G2
    gamma: G2
    delta: G2
    inputs: tuple[G1, ...]

    def __post_init__(self) -> None:
        points: list[tuple[int, ...]] = [self.alpha, self.beta, self.gamma, self.delta, *self.inputs]
        if not all(0 <= coordinate < Q for point in points for coordinate in point) or len(self.inputs) < 2:
            raise ProtocolError("a verifying key has coordinates below the field's modulus, and a public number")

    def encode(self) -> bytes:
        """All coordinates as words of 32 bytes; what the verifier contract is made with."""
        points = [self.alpha, self.beta, self.gamma, self.delta, *self.inputs]
        return b"".join(coordinate.to_bytes(_WORD) for point in points for coordinate in point)

    @property
    def digest(self) -> bytes:
        """keccak-256 of `encode`."""
        return keccak256(self.encode())

    @classmethod
    def decode(cls, data: bytes) -> VerifyingKey:
        """The key in these bytes; ProtocolError for any others."""
        if len(data) % (2 * _WORD) or len(data) < 18 * _WORD:
            raise ProtocolError(f"{len(data)} bytes are no verifying key")
        words = [int.from_bytes(data[begin : begin + _WORD]) for begin in range(0, len(data), _WORD)]
        pairs = tuple((words[place], words[place + 1]) for place in range(14, len(words), 2))
        g2 = [(words[place], words[place + 1], words[place + 2], words[place + 3]) for place in (2, 6, 10)]
        return cls((words[0], words[1]), g2[0], g2[1], g2[2], pairs)


@dataclass(frozen=True)
class Proof:
    """Three points. Raises ProtocolError for a coordinate outside the field."""

    a: G1
    b: G2
    c: G1

    def __post_init__(self) -> None:
        if not all(0 <= coordinate < Q for coordinate in (*self.a, *self.b, *self.c)):
            raise ProtocolError("a proof's coordinates are below the field's modulus")

    def encode(self) -> bytes:
        """256 bytes: what the verifier contract takes."""
        return b"".join(coordinate.to_bytes(_WORD) for coordinate in (*self.a, *self.b, *self.c))

    @classmethod
    def decode(cls, data: bytes) -> Proof:
        """The proof in these bytes; ProtocolError for any others."""
        if len(data) != PROOF_BYTES:
            raise ProtocolError(f"a proof has {PROOF_BYTES} bytes, not {len(data)}")
        x = [int.from_bytes(data[begin : begin + _WORD]) for begin in range(0, PROOF_BYTES, _WORD)]
        return cls((x[0], x[1]), (x[2], x[3], x[4], x[5]), (x[6], x[7]))


def from_real_first(point: Sequence[int]) -> G2:
    """A point of the second group of coordinates whose real parts come first."""
    x0, x1, y0, y1 = point
    return x1, x0, y1, y0


def verify(key: VerifyingKey, proof: Proof, public: Sequence[int]) -> bool:
    """Whether a proof holds, by py_ecc's pairing: the reference, in pure Python, some two seconds.

    Raises ProtocolError for a wrong number of public numbers, one outside the field, or a point that isn't one.
    """
    from py_ecc import optimized_bn128 as curve

    if len(public) + 1 != len(key.inputs) or not all(0 <= value < R for value in public):
        raise ProtocolError(f"the key takes {len(key.inputs) - 1} public numbers below the order of the field")
    total = _point1(key.inputs[0])
    for value, point in zip(public, key.inputs[1:], strict=True):
        total = curve.add(total, curve.multiply(_point1(point), value))
    pairs = (
        (_point2(proof.b), curve.neg(_point1(proof.a))),
        (_point2(key.beta), _point1(key.alpha)),
        (_point2(key.gamma), total),
        (_point2(key.delta), _point1(proof.c)),
    )
    product = curve.FQ12.one()
    for second, first in pairs:
        product = product * curve.pairing(second, first, final_exponentiate=False)
    return bool(curve.final_exponentiate(product) == curve.FQ12.one())


def _point1(point: G1) -> Any:
    from py_ecc import optimized_bn128 as curve

    # On the chain, zeros encode infinity, which no honest proof contains.
    result = (curve.FQ(point[0]), curve.FQ(point[1]), curve.FQ(1))
    if not curve.is_on_curve(result, curve.b):
        raise ProtocolError("a point is not on the curve")
    return result


def _point2(point: G2) -> Any:
    from py_ecc import optimized_bn128 as curve

    result = (curve.FQ2([point[1], point[0]]), curve.FQ2([point[3], point[2]]), curve.FQ2.one())
    if not curve.is_on_curve(result, curve.b2) or not curve.is_inf(curve.multiply(result, curve.curve_order)):
        raise ProtocolError("a point is not in the second group")
    return result
