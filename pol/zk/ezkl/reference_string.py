"""Structured reference strings for KZG commitments: from a ceremony's file, or of a public secret for tests.

docs/spec/zk.md, "Reference strings". Knowledge of the secret of a string suffices to forge any proof.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.zk.bn254 import G1, G2, R, montgomery, scalars
from pol.zk.exact import _bn254

MAX_LOGROWS = 24
TEST_ONLY_TAG = b"pol: this reference string is for tests only, its secret is the hash of this sentence"
TEST_ONLY_SECRET = int.from_bytes(keccak256(TEST_ONLY_TAG)) % R
TEST_CHAINS = frozenset({1337, 31337, 131277322940537})
"""Chains where verifiers for tests may be deployed (contracts/zk/EzklStepVerifier.sol)."""
GENERATOR = pow(7, (R - 1) >> 28, R)
"""Root of unity of order 2**28 that halo2 takes."""
_CEREMONY_GENERATOR = pow(5, (R - 1) >> 28, R)
_POINT, _PAIR = 64, 128
_BATCH = 1 << 12
_MAGIC = b"ptau"

Progress = Callable[[int, int], None]


def size(logrows: int) -> int:
    """Bytes of the file for 2**logrows rows."""
    return 4 + 2 * _POINT * (1 << logrows) + 2 * _PAIR


def write_test_only(path: Path, logrows: int, progress: Progress = lambda done, of: None) -> None:
    """Write the string of the public secret: the same bytes on every machine.

    It takes some 10 microseconds of a core for each of 2**(logrows + 1) points. Raises ProtocolError if logrows is out
    of range.
    """
    _check_logrows(logrows)
    rows = 1 << logrows
    with _replacing(path) as file:
        file.write(struct.pack("<I", logrows))
        for part, values in enumerate((_powers(rows), lagrange(TEST_ONLY_SECRET, logrows))):
            batch: list[int] = []
            for number, scalar in enumerate(values, 1):
                batch.append(scalar)
                if len(batch) == _BATCH or number == rows:
                    file.write(_bn254.multiples(1, montgomery(G1), scalars(batch)))
                    batch.clear()
                    progress(part * rows + number, 2 * rows)
        file.write(_bn254.multiples(2, montgomery(G2), scalars([1, TEST_ONLY_SECRET])))


def write_from_ceremony(path: Path, ptau: Path, logrows: int) -> None:
    """Write the string of a powers-of-tau file of at least 2**logrows: its points, in halo2's order.

    Raises ProtocolError if the file isn't one or is too small, OperationalError if it can't be read.
    """
    _check_logrows(logrows)
    rows = 1 << logrows
    try:
        with ptau.open("rb") as source, _replacing(path) as file:
            sections = _sections(source, ptau)
            powers, lagrange_points, pairs = (sections.get(kind) for kind in (2, 12, 3))
            if powers is None or lagrange_points is None or pairs is None:
                raise ProtocolError(f"{ptau} isn't prepared for phase 2: it lacks Lagrange points")
            if powers[1] < rows * _POINT or lagrange_points[1] < (2 * rows - 1) * _POINT:
                raise ProtocolError(f"{ptau} is for fewer than 2^{logrows} rows: take a larger ceremony file")
            file.write(struct.pack("<I", logrows))
            file.write(_at(source, powers[0], rows * _POINT))
            points = _at(source, lagrange_points[0] + (rows - 1) * _POINT, rows * _POINT)
            order = _order(logrows)
            file.writelines(points[place * _POINT : (place + 1) * _POINT] for place in order)
            file.write(_at(source, pairs[0], 2 * _PAIR))
    except OSError as error:
        raise OperationalError(f"can't read the ceremony's file: {error}") from error


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex. Raises OperationalError if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OperationalError(f"can't read {path}: {error}") from error


def is_test_only(path: Path) -> bool:
    """Whether a file holds the string of the public secret. Raises ProtocolError if it is no reference string."""
    raw = path.read_bytes()[:4]
    (logrows,) = struct.unpack("<I", raw.ljust(4, b"\0"))
    if not 1 <= logrows <= MAX_LOGROWS or path.stat().st_size != size(logrows):
        raise ProtocolError(f"{path} is no reference string: it has {path.stat().st_size} bytes")
    from py_ecc import optimized_bn128 as curve

    x, y = curve.normalize(curve.multiply(curve.G1, TEST_ONLY_SECRET))
    with path.open("rb") as file:
        second = _at(file, 4 + _POINT, _POINT)
    return second == montgomery([int(x), int(y)])


def lagrange(secret: int, logrows: int) -> Iterable[int]:
    """Values of the Lagrange polynomials of halo2's subgroup of 2**logrows elements at the secret."""
    rows = 1 << logrows
    root = pow(GENERATOR, 1 << (28 - logrows), R)
    vanishing = (pow(secret, rows, R) - 1) * pow(rows, -1, R) % R
    points, point = [], 1
    for _ in range(rows):
        points.append(point)
        point = point * root % R
    inverses = _inverses([(secret - point) % R for point in points])
    return [vanishing * point % R * inverse % R for point, inverse in zip(points, inverses, strict=True)]


def _powers(rows: int) -> Iterable[int]:
    power = 1
    for _ in range(rows):
        yield power
        power = power * TEST_ONLY_SECRET % R


def _inverses(values: list[int]) -> list[int]:
    """All inverses with one inversion (Montgomery's trick)."""
    running, product = [], 1
    for value in values:
        running.append(product)
        product = product * value % R
    inverse = pow(product, -1, R)
    result = [0] * len(values)
    for place in range(len(values) - 1, -1, -1):
        result[place] = inverse * running[place] % R
        inverse = inverse * values[place] % R
    return result


def _order(logrows: int) -> Iterable[int]:
    """The ceremony's position of the Lagrange point of each element of halo2's subgroup: the roots of unity differ."""
    rows = 1 << logrows
    ours = pow(GENERATOR, 1 << (28 - logrows), R)
    theirs = pow(_CEREMONY_GENERATOR, 1 << (28 - logrows), R)
    exponent = 0
    for bit in range(logrows):
        if pow(ours * pow(theirs, -exponent, R) % R, rows >> (bit + 1), R) != 1:
            exponent |= 1 << bit
    return (row * exponent % rows for row in range(rows))


def _sections(file: BinaryIO, path: Path) -> dict[int, tuple[int, int]]:
    """Offset and length of each section of a ceremony's file."""
    if file.read(4) != _MAGIC:
        raise ProtocolError(f"{path} is no powers-of-tau file: it does not begin with {_MAGIC.decode()}")
    _, count = struct.unpack("<II", file.read(8))
    sections, offset = {}, 12
    for _ in range(min(count, 64)):
        file.seek(offset)
        head = file.read(12)
        if len(head) < 12:
            raise ProtocolError(f"{path} is cut off")
        kind, length = struct.unpack("<IQ", head)
        sections[kind] = (offset + 12, length)
        offset += 12 + length
    return sections


def _at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    data = file.read(length)
    if len(data) != length:
        raise ProtocolError("the file is cut off")
    return data


def _check_logrows(logrows: int) -> None:
    if not 1 <= logrows <= MAX_LOGROWS:
        raise ProtocolError(f"a reference string is for 2^1 to 2^{MAX_LOGROWS} rows, not 2^{logrows}")


class _replacing:  # noqa: N801  # reads as a verb
    """A file that gets its name only when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path, self._part = path, path.with_name(path.name + ".part")

    def __enter__(self) -> BinaryIO:
        self._file = self._part.open("wb")
        return self._file

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._file.close()
        if kind is None:
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)
