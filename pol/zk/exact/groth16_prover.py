"""Groth16's setup and prover (eprint 2016/260) for rows of `Constraints`; arithmetic of points is native."""

from __future__ import annotations

import hashlib
import mmap
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.errors import OperationalError, ProtocolError
from pol.zk.bn254 import G1, G2, R, coordinates, montgomery, scalars
from pol.zk.exact import _bn254, groth16
from pol.zk.exact.constraints import Constraints, Sum
from pol.zk.exact.groth16 import Proof, VerifyingKey

_MAGIC = b"pol-g16\1"
_HEADER = struct.Struct("<8sQQQ32s")
_POINT, _PAIR = 64, 128
MAX_VARIABLES = 1 << 26


@dataclass(frozen=True)
class ProvingKey:
    """Points of both groups, coordinates in Montgomery form, for a circuit of so many variables and rows.

    ``rows``: a power of two. ``a``, ``b1``, ``b2``: one point for each variable, then the two that hide it. ``c``: one
    for each variable that isn't public, one for each coefficient of the quotient, and the one that hides it.
    """

    variables: int
    public: int
    rows: int
    a: Any
    b1: Any
    b2: Any
    c: Any

    def encode(self) -> bytes:
        """The file's bytes."""
        body = b"".join((self.a, self.b1, self.b2, self.c))
        digest = hashlib.sha256(body).digest()
        return _HEADER.pack(_MAGIC, self.variables, self.public, self.rows, digest) + body

    @classmethod
    def read(cls, path: Path) -> ProvingKey:
        """The key in a file, of which pages are read when they are used.

        Its digest and that all points are on their curve are checked once, here: a second or less for 2**18 rows.
        Raises ProtocolError if it isn't one or is damaged, OperationalError if it can't be read.
        """
        try:
            with path.open("rb") as file:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise OperationalError(f"can't read the proving key {path}: {error}") from error
        wrong = ProtocolError(f"{path} is no proving key, or of another version: remove its folder, and set up again")
        if len(data) < _HEADER.size:
            raise wrong
        magic, variables, public, rows, digest = _HEADER.unpack(data[: _HEADER.size])
        if magic != _MAGIC or not 2 <= public <= variables <= MAX_VARIABLES or not 1 <= rows <= MAX_VARIABLES:
            raise wrong
        sizes = [(variables + 2) * _POINT, (variables + 2) * _POINT, (variables + 2) * _PAIR]
        sizes.append((variables - public + rows) * _POINT)
        body = data[_HEADER.size :]
        if len(body) != sum(sizes) or rows & (rows - 1):
            raise wrong
        if hashlib.sha256(body).digest() != digest:
            raise ProtocolError(f"the proving key {path} is damaged: remove its folder, and set up or copy it again")
        parts = []
        for size in sizes:
            parts.append(body[:size])
            body = body[size:]
        if not all(_bn254.are_on_curve(group, part) for group, part in zip((1, 1, 2, 1), parts, strict=True)):
            raise ProtocolError(f"the proving key {path} has points that are none: don't use it")
        return cls(variables, public, rows, *parts)


_FIRST, _SECOND = montgomery(G1), montgomery(G2)


def setup(system: Constraints) -> tuple[ProvingKey, VerifyingKey]:
    """Both keys of a circuit's rows, of a secret that this process draws and forgets.

    The operator of this machine could keep the secret, and then forge proofs.
    """
    alpha, beta, gamma, delta = (1 + secrets.randbelow(R - 1) for _ in range(4))
    rows = 1 << max(len(system.rows) - 1, 1).bit_length()
    tau, vanishing = 0, 0
    while not vanishing:
        tau = 1 + secrets.randbelow(R - 1)
        vanishing = (pow(tau, rows, R) - 1) % R
    at_rows = _lagrange(tau, vanishing, rows)
    a, b, c = (_at_tau([row[part] for row in system.rows], at_rows, len(system.values)) for part in range(3))
    joined = [(beta * x + alpha * y + z) % R for x, y, z in zip(a, b, c, strict=True)]
    by_gamma, by_delta = pow(gamma, -1, R), pow(delta, -1, R)
    quotient = [vanishing * by_delta % R]
    while len(quotient) < rows - 1:
        quotient.append(quotient[-1] * tau % R)
    private = [value * by_delta for value in joined[system.public :]]
    proving = ProvingKey(
        len(system.values),
        system.public,
        rows,
        _multiples(1, [*a, alpha, delta]),
        _multiples(1, [*b, beta, delta]),
        _multiples(2, [*b, beta, delta]),
        _multiples(1, [*private, *quotient, delta]),
    )
    inputs = coordinates(_multiples(1, [value * by_gamma for value in joined[: system.public]]))
    pairs = tuple(zip(inputs[::2], inputs[1::2], strict=True))
    second = [groth16.from_real_first(coordinates(_multiples(2, [value]))) for value in (beta, gamma, delta)]
    x, y = coordinates(_multiples(1, [alpha]))
    return proving, VerifyingKey((x, y), second[0], second[1], second[2], pairs)


def prove(system: Constraints, key: ProvingKey) -> Proof:
    """A proof that the rows have a solution with these public numbers.

    Raises ProtocolError if they have none, or the key is of another circuit.
    """
    a, b, c = system.check()
    if (key.variables, key.public) != (len(system.values), system.public) or not key.rows // 2 < len(a) <= key.rows:
        raise ProtocolError("the proving key isn't of this circuit: set up its own")
    r, s = secrets.randbelow(R), secrets.randbelow(R)
    values = scalars(system.values)
    idle = bytes(32 * (key.rows - len(a)))
    quotient = _bn254.quotient(*(scalars(part) + idle for part in (a, b, c)))
    first = _bn254.multiexp(1, key.a, values + scalars([1, r]))
    second = _bn254.multiexp(2, key.b2, values + scalars([1, s]))
    also_second = _bn254.multiexp(1, key.b1, values + scalars([1, s]))
    # The quotient's degree is below rows - 1: its last coefficient is zero, and has no point.
    terms = values[32 * system.public :] + quotient[:-32] + scalars([-r * s])
    third = _bn254.multiexp(1, key.c, terms)
    third = _bn254.multiexp(1, third + first + also_second, scalars([1, s, r]))
    (ax, ay), (cx, cy) = coordinates(first), coordinates(third)
    return Proof((ax, ay), groth16.from_real_first(coordinates(second)), (cx, cy))


def _multiples(group: int, values: Sequence[int]) -> bytes:
    return _bn254.multiples(group, _FIRST if group == 1 else _SECOND, scalars(values))


def _lagrange(tau: int, vanishing: int, rows: int) -> list[int]:
    """Values at tau of the polynomials that are one at a single root of unity: vanishing / rows * root / (tau - root).

    With one inversion for all of them.
    """
    step = pow(5, (R - 1) // rows, R)
    roots, before, product = [1], list[int](), 1
    while len(roots) < rows:
        roots.append(roots[-1] * step % R)
    for root in roots:
        before.append(product)
        product = product * (tau - root) % R
    inverse, factor = pow(product, -1, R), vanishing * pow(rows, -1, R) % R
    values = [0] * rows
    for place in range(rows - 1, -1, -1):
        values[place] = factor * roots[place] % R * inverse % R * before[place] % R
        inverse = inverse * (tau - roots[place]) % R
    return values


def _at_tau(sums: Sequence[Sum], at_rows: Sequence[int], variables: int) -> list[int]:
    """Values at tau of each variable's polynomial, which has the variable's coefficient of a row at that row's root."""
    values = [0] * variables
    for terms, at_row in zip(sums, at_rows, strict=False):
        for place, factor in terms.items():
            values[place] += factor * at_row
    return [value % R for value in values]
