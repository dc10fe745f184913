"""Structs of the contracts as dataclasses, decoded by the types of their members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def decoded(kind: type[T], value: Any) -> T:
    """A value that web3 has decoded, as ``kind``.

    A dataclass has the members of a struct in the same order; a tuple stands for an array; anything else is converted
    by calling its type, so an enum checks its number. `dataclasses.astuple` is the way back.

    Raises:
        ValueError: the struct has another number of members, or an enum has no such number.
    """
    return _decoded(kind, value)  # type: ignore[no-any-return]  # by construction


def _decoded(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        members = value.values() if isinstance(value, Mapping) else value
        return kind(*(_decoded(form, member) for form, member in zip(_members(kind), members, strict=True)))
    if get_origin(kind) is tuple:
        forms = get_args(kind)
        items = zip(repeat(forms[0]), value) if forms[-1] is Ellipsis else zip(forms, value, strict=True)
        return tuple(_decoded(form, item) for form, item in items)
    return kind(value)


@cache
def _members(kind: Any) -> tuple[Any, ...]:
    hints = get_type_hints(kind)
    return tuple(hints[field.name] for field in fields(kind))
