"""Canonical JSON documents (RFC 8785), decoded strictly: one document has one encoding."""

import collections
import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import rfc8785

from pol.errors import EvidenceError, Fault, ProtocolError
from pol.format_versions import other_version

Document: TypeAlias = dict[str, Any]

MAX_DEPTH = 64
MAX_MEMBERS = 1 << 20
"""Members of all objects together: four for each tensor of a file with 200,000 of them."""

_HASH = re.compile(r"[0-9a-f]{64}")
_HEX = re.compile(r"([0-9a-f]{2})*")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}:]', re.DOTALL)
"""A string (or the rest of the bytes, if it has no end: nothing is looked at twice), a bracket or a colon."""


def encode(document: Document) -> bytes:
    """The canonical bytes of ``document``; integers beyond 2^53 must be given as decimal strings."""
    return rfc8785.dumps(document)


def decode(data: bytes, what: str) -> Document:
    """The document that ``data`` encodes."""
    document = parse(data, what)
    try:
        encoded = rfc8785.dumps(document)
    except (ValueError, rfc8785.CanonicalizationError) as error:
        raise EvidenceError(Fault.MALFORMED, f"{what} isn't valid JSON: {error}") from error
    if not isinstance(document, dict) or encoded != data:
        raise EvidenceError(Fault.MALFORMED, f"{what} isn't a canonical JSON object (RFC 8785)")
    return document


def parse(data: bytes, what: str, *, unique: bool = False) -> Any:
    """The value of a JSON text in UTF-8, canonical or not; ``unique`` refuses an object that has a key twice.

    Depth and members are counted before the parser sees the bytes: it recurses in C and makes an object of each member,
    and a stranger's document must not be able to crash a process or take its memory. Time is linear in the bytes.
    Python's own recursion limit doesn't help: importing the EVM raises it beyond what the stack holds.
    """
    depth = members = 0
    for token in _TOKEN.finditer(data):
        match token[0]:
            case b"[" | b"{":
                depth += 1
            case b"]" | b"}":
                depth -= 1
            case b":":
                members += 1
        if depth > MAX_DEPTH:
            raise EvidenceError(Fault.MALFORMED, f"{what} isn't valid JSON: nested deeper than {MAX_DEPTH}")
        if members > MAX_MEMBERS:
            problem = f"{what} has more members than any document here: {MAX_MEMBERS} at most"
            raise EvidenceError(Fault.MALFORMED, problem)
    try:
        # Decoded here: given bytes, the parser guesses the encoding, and brackets could escape the count above.
        return json.loads(data.decode(), object_pairs_hook=_distinct if unique else None)
    except ValueError as error:
        advice = "it is damaged, half-written or another file"
        raise EvidenceError(Fault.MALFORMED, f"{what} isn't valid JSON: {error}: {advice}") from error


def _distinct(pairs: list[tuple[str, Any]]) -> Document:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        raise ValueError(f"the key {counts.most_common(1)[0][0]!r} stands there twice")
    return found


def require_version(document: object, what: str, kind: str, version: int) -> None:
    """Check kind and version of a document, before its other members: another version may have others."""
    if not isinstance(document, dict):
        raise EvidenceError(Fault.MALFORMED, f"{what} isn't a JSON object")
    if document.get("kind") != kind:
        raise EvidenceError(Fault.MALFORMED, f"{what} isn't a {kind}: its kind is {document.get('kind')!r}")
    if type(found := document.get("version")) is not int or found != version:
        raise EvidenceError(Fault.MALFORMED, other_version(f"{what}, a {kind},", found, version))


class Fields:
    """Typed access to the members of a document; every mistake is a ProtocolError that names the member."""

    def __init__(self, document: object, what: str, names: Iterable[str]):
        if not isinstance(document, dict):
            raise EvidenceError(Fault.MALFORMED, f"{what} isn't a JSON object")
        if set(document) != set(names):
            raise EvidenceError(Fault.MALFORMED, f"{what} has the members {sorted(document)}, expected {sorted(names)}")
        self._document: Document = document
        self._what = what

    @classmethod
    def of_document(cls, data: bytes, what: str, kind: str, version: int, names: Iterable[str]) -> "Fields":
        """The members of a document that states its kind and version besides them."""
        document = decode(data, what)
        require_version(document, what, kind, version)
        return cls(document, what, [*names, "kind", "version"])

    def value(self, name: str) -> Any:
        """The member, of any type."""
        return self._document[name]

    def text(self, name: str) -> str:
        """A string."""
        value = self._document[name]
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def integer(self, name: str, low: int = 0, high: int = (1 << 53) - 1) -> int:
        """An integer in ``[low, high]``."""
        value = self._document[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._wrong(name, f"an integer from {low} to {high}")
        return value

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._document[name]
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def decimal(self, name: str, bits: int) -> int:
        """An unsigned integer below 2^bits, as a decimal string without leading zeros."""
        value = self._document[name]
        if not _is_decimal(value, bits):
            raise self._wrong(name, f"an integer below 2^{bits} as a decimal string")
        return int(value)

    def decimals(self, name: str, bits: int) -> list[int]:
        """An array of unsigned integers below 2^bits, as decimal strings without leading zeros."""
        values = self.items(name)
        if not all(_is_decimal(value, bits) for value in values):
            raise self._wrong(name, f"integers below 2^{bits} as decimal strings")
        return [int(str(value)) for value in values]

    def integers(self, name: str) -> list[int]:
        """An array of integers of any sign."""
        values = [value for value in self.items(name) if isinstance(value, int) and not isinstance(value, bool)]
        if len(values) != len(self.items(name)):
            raise self._wrong(name, "an array of integers")
        return values

    def digest(self, name: str) -> str:
        """64 lower-case hexadecimal digits."""
        value = self._document[name]
        if not isinstance(value, str) or not _HASH.fullmatch(value):
            raise self._wrong(name, "64 lower-case hexadecimal digits")
        return value

    def hash(self, name: str) -> bytes:
        """A 32-byte hash, written as 64 lower-case hexadecimal digits."""
        return bytes.fromhex(self.digest(name))

    def hashes(self, name: str) -> list[bytes]:
        """An array of 32-byte hashes, each written as 64 lower-case hexadecimal digits."""
        values = [value for value in self.items(name) if isinstance(value, str) and _HASH.fullmatch(value)]
        if len(values) != len(self.items(name)):
            raise self._wrong(name, "an array of 64 lower-case hexadecimal digits each")
        return [bytes.fromhex(value) for value in values]

    def octets(self, name: str, *sizes: int) -> bytes:
        """Bytes in lower-case hexadecimal, of one of the sizes if there are any."""
        text = self.text(name)
        if not _HEX.fullmatch(text) or (sizes and len(text) // 2 not in sizes):
            raise self._wrong(
                name, f"{' or '.join(map(str, sizes)) or 'any number of'} bytes in lower-case hexadecimal"
            )
        return bytes.fromhex(text)

    def items(self, name: str) -> list[object]:
        """An array."""
        value = self._document[name]
        if not isinstance(value, list):
            raise self._wrong(name, "an array")
        return value

    def member(self, name: str, names: Iterable[str]) -> "Fields":
        """An object with exactly the members ``names``."""
        return Fields(self._document[name], f"{self._what}.{name}", names)

    def object(self, name: str) -> Document:
        """An object with any members."""
        value = self._document[name]
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def objects(self, name: str) -> dict[str, Document]:
        """An object with objects as values, under any names."""
        value = self.object(name)
        if not all(isinstance(item, dict) for item in value.values()):
            raise self._wrong(name, "an object of objects")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """An object with strings as values, under any names."""
        value = self._document[name]
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise self._wrong(name, "an object of strings")
        return value

    def _wrong(self, name: str, expected: str) -> ProtocolError:
        return EvidenceError(Fault.MALFORMED, f"{self._what}.{name} is {self._document[name]!r}, expected {expected}")


def _is_decimal(value: object, bits: int) -> bool:
    return isinstance(value, str) and re.fullmatch(r"0|[1-9][0-9]{0,79}", value) is not None and int(value) >> bits == 0
