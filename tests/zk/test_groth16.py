"""The native prover against py_ecc: points, sums, quotients; bad keys, those of another circuit, and no solution."""

import hashlib
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from py_ecc import optimized_bn128 as curve

from pol.errors import OperationalError, ProtocolError
from pol.zk.bn254 import G1, G2, Q, R, coordinates, montgomery, scalars
from pol.zk.exact import _bn254, groth16, groth16_prover
from pol.zk.exact.constraints import Constraints
from pol.zk.exact.groth16 import VerifyingKey
from pol.zk.exact.groth16_prover import ProvingKey

EDGES = [0, 1, 2, 255, 256, R - 1, R - 2, 1 << 253, (1 << 64) - 1, 1 << 64]


def expected(group: int, multiple: int) -> list[int]:
    point = curve.multiply(curve.G1 if group == 1 else curve.G2, multiple)
    if curve.is_inf(point):
        return [0] * (2 * group)
    return [
        int(number)
        for part in curve.normalize(point)
        for number in (part.coeffs if group == 2 else [part])
    ]  # fmt: skip


@pytest.mark.parametrize(("group", "generator"), [(1, G1), (2, G2)])
def test_multiples_and_their_sums_are_py_eccs(group: int, generator: tuple[int, ...]) -> None:
    random, size = Random(group), 64 * group
    factors = EDGES + [random.randrange(R) for _ in range(4)]
    points = _bn254.multiples(group, montgomery(generator), scalars(factors))
    for place, factor in enumerate(factors):
        assert coordinates(points[size * place : size * (place + 1)]) == expected(group, factor)
    assert _bn254.are_on_curve(group, points)
    # Bits and small numbers as in a witness, equal points, opposite ones, and points at infinity.
    for count in (1, 2, 7, 100, 700):
        chosen = [random.randrange(len(factors)) for _ in range(count)]
        weights = [random.choice([0, 1, 1, R - 1, *EDGES, random.randrange(R)]) for _ in range(count)]
        given = b"".join(points[size * place : size * (place + 1)] for place in chosen)
        total = sum(factors[place] * weight for place, weight in zip(chosen, weights, strict=True)) % R
        for threads in (1, 3):
            found = _bn254.multiexp(group, given, scalars(weights), threads)
            assert coordinates(found) == expected(group, total)
    one = points[size : 2 * size]
    assert coordinates(_bn254.multiexp(group, one * 3, scalars([1, 1, R - 2]))) == [0] * (2 * group)
    assert _bn254.multiexp(group, b"", b"") == bytes(size)


def test_other_points_and_numbers_are_refused() -> None:
    assert not _bn254.are_on_curve(1, montgomery([1, 1]))
    assert not _bn254.are_on_curve(2, montgomery([*G2[:3], 1]))
    # The same point in another form: a coordinate that isn't below the modulus.
    x = int.from_bytes(montgomery([1]), "little") + Q
    assert not _bn254.are_on_curve(1, x.to_bytes(32, "little") + montgomery([2]))
    for bad in (
        lambda: _bn254.multiples(1, montgomery(G1), R.to_bytes(32, "little")),
        lambda: _bn254.multiples(1, montgomery(G1), b"\1"),
        lambda: _bn254.multiples(2, montgomery(G1), scalars([1])),
        lambda: _bn254.multiexp(1, montgomery(G1), scalars([1, 2])),
        lambda: _bn254.multiexp(1, montgomery(G1)[:-1], scalars([1])),
        lambda: _bn254.quotient(scalars([1, 2, 3]), scalars([1, 2, 3]), scalars([1, 2, 3])),
        lambda: _bn254.quotient(scalars([1, 2]), scalars([1, 2]), scalars([1])),
    ):
        with pytest.raises(ValueError, match=r"scalar|point|values"):
            bad()


@pytest.mark.parametrize("log", [1, 2, 5])
def test_the_quotient_is_the_polynomials(log: int) -> None:
    """a b - c = h (X^n - 1) at a number that isn't a root of unity, by Lagrange's formula."""
    random, count = Random(log), 1 << log
    root = pow(5, (R - 1) // count, R)
    a, b = ([random.randrange(R) for _ in range(count)] for _ in range(2))
    c = [x * y % R for x, y in zip(a, b, strict=True)]
    found = _bn254.quotient(scalars(a), scalars(b), scalars(c))
    h = [int.from_bytes(found[begin : begin + 32], "little") for begin in range(0, len(found), 32)]
    at = random.randrange(R)
    vanishing = pow(at, count, R) - 1

    def interpolated(values: list[int]) -> int:
        parts = (value * pow(root, i, R) * pow(at - pow(root, i, R), -1, R) for i, value in enumerate(values))
        return vanishing * pow(count, -1, R) * sum(parts) % R

    left = interpolated(a) * interpolated(b) - interpolated(c)
    assert left % R == vanishing * sum(value * pow(at, i, R) for i, value in enumerate(h)) % R
    assert h[-1] == 0


def rows(x: int, publish: int | None = None) -> Constraints:
    """x^3 + x + 5 is public, and x a number of eight bits."""
    system = Constraints()
    (shown,) = system.publish([x**3 + x + 5 if publish is None else publish])
    variable = system.variable(x)
    system.bits(variable, 8)
    cube = system.product(system.product(variable, variable), variable)
    system.require({**cube, 0: 5, next(iter(variable)): 1}, {0: 1}, shown)
    return system


@pytest.fixture(scope="module")
def keys() -> tuple[ProvingKey, VerifyingKey]:
    return groth16_prover.setup(rows(1))


def test_proofs_hold_for_what_they_show_alone(keys: tuple[ProvingKey, VerifyingKey]) -> None:
    proving, verifying = keys
    one, again = (groth16_prover.prove(rows(3), proving) for _ in range(2))
    assert one != again
    assert groth16.verify(verifying, one, [35])
    assert groth16.verify(verifying, again, [35])
    assert not groth16.verify(verifying, one, [36])
    assert not groth16.verify(verifying, replace(one, a=again.a), [35])
    other, _ = groth16_prover.setup(rows(1))
    assert not groth16.verify(verifying, groth16_prover.prove(rows(3), other), [35])
    for bad in (rows(3, publish=36), rows(300), rows(-1)):
        with pytest.raises(ProtocolError, match="no solution"):
            groth16_prover.prove(bad, proving)
    larger = rows(3)
    larger.product({1: 1}, {1: 1})
    with pytest.raises(ProtocolError, match="isn't of this circuit"):
        groth16_prover.prove(larger, proving)


def test_a_solution_of_no_rows_makes_no_proof_that_holds(
    keys: tuple[ProvingKey, VerifyingKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prover that skips its own check: the pairing finds what the rows would have said."""
    proving, verifying = keys
    bad = rows(3, publish=36)
    a, b, c = ([bad.value(row[part]) for row in bad.rows] for part in range(3))
    monkeypatch.setattr(bad, "check", lambda: (a, b, c))
    assert not groth16.verify(verifying, groth16_prover.prove(bad, proving), [36])
    # Nor with products that are made to fit.
    fitted = [x * y for x, y in zip(a, b, strict=True)]
    monkeypatch.setattr(bad, "check", lambda: (a, b, fitted))
    assert not groth16.verify(verifying, groth16_prover.prove(bad, proving), [36])


def test_a_key_is_read_as_it_was_written(keys: tuple[ProvingKey, VerifyingKey], tmp_path: Path) -> None:
    proving, verifying = keys
    path = tmp_path / "proving.key"
    good = proving.encode()
    path.write_bytes(good)
    read = ProvingKey.read(path)
    assert read.encode() == good
    assert groth16.verify(verifying, groth16_prover.prove(rows(7), read), [355])

    def refused(data: bytes, why: str) -> None:
        path.write_bytes(data)
        with pytest.raises(ProtocolError, match=why):
            ProvingKey.read(path)

    refused(good[:-1], "is no proving key")
    refused(good + bytes(64), "is no proving key")
    refused(good[:20], "is no proving key")
    refused(b"other" + good[5:], "is no proving key")
    refused(good[:8] + b"\xff" * 24 + good[32:], "is no proving key")
    refused(good[:-1] + bytes([good[-1] ^ 1]), "is damaged")
    body = good[64:-64] + montgomery([1, 1])
    refused(good[:32] + hashlib.sha256(body).digest() + body, "points that are none")
    path.write_bytes(b"")
    with pytest.raises(OperationalError, match="can't read"):
        ProvingKey.read(path)
    with pytest.raises(OperationalError, match="can't read"):
        ProvingKey.read(tmp_path / "none")
