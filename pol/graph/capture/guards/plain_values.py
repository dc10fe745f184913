"""Immutable values: numbers, strings, dtypes, and tuples of them."""

from __future__ import annotations

import types
from enum import Enum

import torch

PLAIN = (bool, int, float, complex, str, bytes, Enum, torch.dtype, torch.device, types.NoneType)


def is_same(old: object, new: object) -> bool:
    """Whether two readings of one attribute are the same object, or equal immutable values."""
    return old is new or (is_plain(old) and type(old) is type(new) and repr(old) == repr(new))


def is_plain(value: object) -> bool:
    """Whether a value is immutable and means the same in every step."""
    if isinstance(value, tuple | frozenset):
        return all(is_plain(item) for item in value)
    return isinstance(value, PLAIN)
