"""Groth16 over BN254 (eprint 2016/260) for exact circuits: keys, proofs, and two verifiers that share no code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.zk.bn254 import Q, R
from pol.zk.exact.constraints import Constraints

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


def setup(system: Constraints) -> tuple[bytes, VerifyingKey]:
    """A proving key (zksnake's bytes) and its verifying key, of a secret that this process draws and forgets.

    The operator of this machine could keep the secret, and then forge proofs. Raises OperationalError without zksnake.
    """
    protocol = _protocol(system)
    protocol.setup()
    key = protocol.verifying_key
    verifying = VerifyingKey(
        _g1(key.alpha_1), _g2(key.beta_2), _g2(key.gamma_2), _g2(key.delta_2), tuple(_g1(point) for point in key.ic)
    )
    return bytes(protocol.proving_key.to_bytes()), verifying


def load(proving_key: bytes) -> Any:
    """A proving key to prove many steps with: its points take long to read.

    Raises ProtocolError if the bytes are no proving key, OperationalError without zksnake.
    """
    with _needs_zksnake():
        from zksnake.groth16 import ProvingKey
    try:
        return ProvingKey.from_bytes(proving_key)
    except (AssertionError, ValueError, IndexError) as error:
        raise ProtocolError(f"not a proving key: {error}") from error


def prove(system: Constraints, key: Any) -> Proof:
    """A proof, with a key from `load`, that the rows have a solution with these public numbers.

    Raises ProtocolError if they have none, or the key is of another circuit.
    """
    system.check()
    protocol = _protocol(system)
    protocol.proving_key = key
    try:
        proof = protocol.prove(system.values[: system.public], system.values[system.public :])
    except (AssertionError, ValueError) as error:
        raise ProtocolError(f"the proving key isn't of this circuit: {error}") from error
    return Proof(_g1(proof.A), _g2(proof.B), _g1(proof.C))


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


def _protocol(system: Constraints) -> Any:
    """zksnake's protocol for the rows, as sparse matrices."""
    with _needs_zksnake():
        from zksnake.array import SparseArray
        from zksnake.groth16 import Groth16

    class Rows:
        p = R
        n_public = system.public
        A, B, C = (SparseArray([[]], len(system.rows), len(system.values), R) for _ in range(3))

    for place, row in enumerate(system.rows):
        for matrix, terms in zip((Rows.A, Rows.B, Rows.C), row, strict=True):
            matrix.append([(place, column, factor) for column, factor in terms.items()])
    return Groth16(Rows, "BN254")


@contextmanager
def _needs_zksnake() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise OperationalError("exact proofs need zksnake: pip install 'pol[zk]'") from error


def _g1(point: Any) -> G1:
    return int(point.x), int(point.y)


def _g2(point: Any) -> G2:
    (x0, x1), (y0, y1) = point.x, point.y
    return int(x1), int(x0), int(y1), int(y0)
