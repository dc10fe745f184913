"""Immutable values: numbers, strings, dtypes, and tuples of them; and tensors of a trace."""

from __future__ import annotations

import types
from enum import Enum

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_flatten

PLAIN = (bool, int, float, complex, str, bytes, Enum, torch.dtype, torch.device, types.NoneType)


def is_same(old: object, new: object) -> bool:
    """Whether two readings of one attribute are the same object, or equal immutable values."""
    return old is new or (is_plain(old) and type(old) is type(new) and repr(old) == repr(new))


def is_plain(value: object) -> bool:
    """Whether a value is immutable and means the same in every step."""
    if isinstance(value, tuple | frozenset):
        return all(is_plain(item) for item in value)
    return isinstance(value, PLAIN)


def form_of(value: object) -> object:
    """The form of a tensor of a trace, or of a container of such tensors and immutable values; None of anything else.

    Equal forms differ in the numbers of tensors alone.
    """
    leaves, tree = tree_flatten(value)
    parts: list[object] = []
    for leaf in leaves:
        if isinstance(leaf, FakeTensor) and not isinstance(leaf, nn.Parameter):
            parts.append((leaf.dtype, tuple(leaf.shape)))
        elif is_plain(leaf):
            parts.append((type(leaf), repr(leaf)))
        else:
            return None
    return tree, parts
