"""The prover's key of an exact circuit: a file of points, mapped into memory (docs/spec/zk.md, "Proving key")."""

from __future__ import annotations

import hashlib
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.errors import OperationalError, ProtocolError
from pol.zk.exact import _bn254

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
