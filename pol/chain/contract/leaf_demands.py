"""Demands for leaves, as every contract that takes them tells of them: `Demanded`, then `Answered` or `Expired`."""

from __future__ import annotations

from typing import Any, TypeVar

from pol.chain.contract.contract import Binding

T = TypeVar("T")


def decoded(kind: type[T], fields: Any) -> T:
    """A demand from the struct in an event; ``kind`` has the members in the same order."""
    return kind(*(bytes(value) if isinstance(value, bytes) else value for value in dict(fields).values()))


def open_demands(contract: Binding, kind: type[T], **of: bytes) -> list[T]:
    """All demands that are neither answered nor expired, in order; ``of`` names the run or the task."""
    made = {bytes(e["key"]): decoded(kind, e["demand"]) for e in contract.events("Demanded", **of)}
    ended = [e for name in ("Answered", "Expired") for e in contract.events(name, **of)]
    over = {bytes(e["key"]) for e in ended}
    return [demand for key, demand in made.items() if key not in over]
