"""Reads the JSON files of networks and proofs strictly: one value has one file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from pol.commitments import canonical_json
from pol.errors import ProtocolError


class Document(Protocol):
    """A value with a canonical file."""

    def to_json(self) -> bytes:
        """The file."""
        ...


D = TypeVar("D", bound=Document)


def read_document(data: bytes, refusal: str, build: Callable[[Any], D]) -> D:
    """The value that `build` makes of the JSON in an untrusted file.

    Raises ProtocolError, which begins with `refusal`, for anything that its `to_json` would not write.
    """
    raw = canonical_json.parse(data, f"{refusal}: it")
    try:
        found = build(raw)
        is_same = found.to_json() == data
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"{refusal}: {error!r}") from error
    if not is_same:
        raise ProtocolError(f"{refusal}: its JSON isn't canonical, or has unknown fields")
    return found
