"""The digest of a batch: all of its content, by type (docs/spec/complete_state.md, "Digest of a batch")."""

from __future__ import annotations

import dataclasses
import struct
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pol.commitments.array import array_root
from pol.commitments.keccak import keccak256
from pol.errors import UnsupportedError
from pol.training.state import tensors

MAX_DEPTH = 64
_DENSE = (Tensor, torch.nn.Parameter)
_named: set[str] = set()


def digest(value: object) -> bytes:
    """The digest of a batch. A type whose content can't be read is named once, in a warning, and counts by its name."""
    return _digest(value, ())


def _digest(value: Any, around: tuple[int, ...]) -> bytes:
    """``around``: ids of the values that hold this one."""
    kind = type(value)
    if kind is Tensor and value.dtype in tensors.ELEMENT_TYPES and not (value.is_nested or value.is_meta):
        if value.layout == torch.strided:
            return keccak256(b"tensor\0" + array_root(tensors.of_tensor(value, "a batch")))
    elif kind is np.ndarray and value.dtype.str in tensors.NUMPY:
        return keccak256(b"array\0" + array_root(tensors.of_numpy(value, "a batch")))
    elif value is None or kind in (bool, int):
        return keccak256(f"{kind.__name__}\0{value}".encode())
    elif kind is float:
        return keccak256(b"float\0" + struct.pack(">d", value))
    elif kind is str:
        return keccak256(b"str\0" + value.encode("utf-8", "surrogatepass"))
    elif kind in (bytes, bytearray):
        return keccak256(b"bytes\0" + value)
    elif callable(value) and hasattr(value, "__qualname__"):
        return keccak256(b"name\0" + _name(value))
    if id(value) in around:
        return keccak256(b"holder\0" + struct.pack(">Q", len(around) - around.index(id(value))))
    inside = (*around, id(value))

    def joined(name: bytes, items: Iterable[object], ordered: bool = True) -> bytes:
        parts = [_digest(item, inside) for item in items]
        return keccak256(name + b"\0" + b"".join(parts if ordered else sorted(parts)))

    if kind in (list, tuple):
        return joined(kind.__name__.encode(), value)
    if kind is dict:
        return joined(b"dict", value.items(), ordered=False)
    if kind in (set, frozenset):
        return joined(b"set", value, ordered=False)
    try:
        if len(inside) > MAX_DEPTH:
            raise UnsupportedError("a batch is nested too deep")
        return joined(b"object\0" + _name(kind), _content(value))
    except (UnsupportedError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        name = _name(kind).decode()
        if name not in _named:
            _named.add(name)
            warnings.warn(
                f"batches hold a {name}, whose content can't be read ({error}): at a resumption it isn't compared. "
                "Let the loader give tensors, arrays or plain values in its place",
                stacklevel=2,
            )
        return keccak256(b"unread\0" + name.encode())


def _name(thing: Any) -> bytes:
    return f"{thing.__module__}.{thing.__qualname__}".encode()


def _content(value: Any) -> list[object]:
    """The content of an object as plainer values: of a tensor its dense ones, else what a copy would be made from."""
    if not isinstance(value, Tensor):
        if dataclasses.is_dataclass(value):
            return [{field.name: getattr(value, field.name) for field in dataclasses.fields(value)}]
        made = value.__reduce_ex__(4)
        return [made] if isinstance(made, str) else [list(p) if hasattr(p, "__next__") else p for p in made]
    if value.is_nested:
        return list(value.detach().unbind())
    plain, own = value.detach(), {}
    if type(value) not in _DENSE:
        plain, own = plain.as_subclass(Tensor), vars(value)
    if plain.layout != torch.strided:
        listed = (plain if plain.layout == torch.sparse_coo else plain.to_sparse()).coalesce()
        return [own, str(plain.layout), list(plain.shape), listed.indices(), listed.values()]
    if plain.is_quantized:
        per_channel = plain.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric)
        scale = (
            [plain.q_per_channel_axis(), plain.q_per_channel_scales(), plain.q_per_channel_zero_points()]
            if per_channel
            else [plain.q_scale(), plain.q_zero_point()]
        )
        return [own, *scale, plain.int_repr()]
    if plain.is_complex():
        return [own, torch.view_as_real(plain.resolve_conj())]
    if plain.is_meta or plain.dtype not in tensors.ELEMENT_TYPES:
        raise UnsupportedError(f"a tensor of {plain.dtype} on {plain.device}")
    return [own, plain]
