"""Views, copies and new tensors of complex numbers on pairs of reals: their last dimension is that of the pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.complex.pairs import (
    COMPLEX,
    RULES,
    Pairs,
    Rule,
    as_pairs,
    pairs_of,
    parts_of,
    require_single,
    rule,
)


@rule("view_as_complex")
def _view_as_complex(pairs: Tensor) -> Pairs:
    return Pairs(pairs)


@rule("view_as_real")
def _view_as_real(z: Pairs) -> Tensor:
    return z.tensor


@rule("clone", "detach", "alias", "lift_fresh_copy", "resolve_conj", "resolve_neg", "contiguous", "_neg_view")
def _same(z: Any, **_: Any) -> Any:
    return z if isinstance(z, complex) else Pairs(z.tensor.clone(memory_format=torch.contiguous_format))


RULES["_neg_view"] = lambda z: Pairs(-z.tensor)
for _view in ("detach", "alias"):
    RULES[_view] = lambda z, **_: Pairs(z.tensor.view(z.tensor.shape))


@rule("_to_copy")
def _to_copy(value: Any, *, dtype: torch.dtype | None = None) -> Any:
    if dtype is None or dtype in COMPLEX:
        require_single(dtype)
        return Pairs(value.tensor.clone()) if isinstance(value, Pairs) else as_pairs(value.float(), value)
    return value.real.to(dtype)


def _created(name: str) -> Rule:
    create = getattr(torch, name)

    def created(size: Sequence[int], *value: Any, dtype: torch.dtype | None = None) -> Pairs:
        require_single(dtype)
        if name == "full":
            real, imag = (float(part or 0) for part in parts_of(value[0]))
            return pairs_of(torch.full(size, real), torch.full(size, imag))
        return pairs_of(create(size, dtype=torch.float32), torch.zeros(size, dtype=torch.float32))

    return created


for _name in ("zeros", "ones", "full"):
    RULES[_name] = _created(_name)
RULES["empty"] = _created("zeros")


@rule("scalar_tensor")
def _scalar(value: Any, dtype: torch.dtype | None = None) -> Pairs:
    return RULES["full"]([], value, dtype=dtype)  # type: ignore[no-any-return]  # pairs


@rule("new_zeros", "new_empty")
def _new_zeros(like: Any, size: Sequence[int], dtype: torch.dtype | None = None) -> Any:
    if dtype is None or dtype in COMPLEX:
        return RULES["zeros"](size, dtype=dtype)
    return torch.zeros(size, dtype=dtype)


@rule("new_empty_strided")
def _new_strided(like: Any, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype | None = None) -> Any:
    return _new_zeros(like, size, dtype)


@rule("zeros_like", "empty_like")
def _zeros_like(z: Any, dtype: torch.dtype | None = None) -> Any:
    real = z.real if isinstance(z, Pairs) else z
    zeros = torch.zeros_like(real, dtype=torch.float32)
    return pairs_of(zeros, zeros) if dtype is None or dtype in COMPLEX else zeros.to(dtype)


@rule("ones_like")
def _ones_like(z: Any, dtype: torch.dtype | None = None) -> Any:
    zeros = _zeros_like(z, dtype)
    return pairs_of(torch.ones_like(zeros.real), zeros.imag) if isinstance(zeros, Pairs) else zeros + 1


@rule("copy")
def _copy(target: Any, source: Any, non_blocking: bool = False) -> Any:
    return as_pairs(source, target.real) if isinstance(target, Pairs) else source.real


@rule("copy_", "fill_")
def _copy_in_place(target: Any, source: Any, non_blocking: bool = False) -> Any:
    if isinstance(target, Pairs):
        target.tensor.copy_(as_pairs(source, target.real).tensor.expand(target.tensor.shape))
    else:
        target.copy_(source.real)
    return target


@rule("zero_")
def _zero_in_place(target: Pairs) -> Pairs:
    target.tensor.zero_()
    return target


@rule("view", "_unsafe_view", "reshape")
def _view_shape(z: Pairs, shape: Sequence[int]) -> Any:
    if isinstance(shape, torch.dtype):
        return NotImplemented
    count = math.prod(z.tensor.shape[:-1])
    known = math.prod(size for size in shape if size != -1)
    given = [count // max(known, 1) if size == -1 else size for size in shape]
    return Pairs(z.tensor.reshape(*given, 2))


@rule("expand")
def _expand(z: Pairs, shape: Sequence[int], implicit: bool = False) -> Pairs:
    return Pairs(z.tensor.expand(*shape, 2))


@rule("permute")
def _permute(z: Pairs, dims: Sequence[int]) -> Pairs:
    return Pairs(z.tensor.permute(*(z.axis(dim) for dim in dims), z.rank))


@rule("transpose", "transpose_")
def _transpose(z: Pairs, first: int, second: int) -> Pairs:
    return Pairs(z.tensor.transpose(z.axis(first), z.axis(second)) if z.rank else z.tensor)


@rule("t", "t_")
def _t(z: Pairs) -> Pairs:
    return Pairs(z.tensor.transpose(0, 1) if z.rank == 2 else z.tensor)


@rule("unsqueeze", "unsqueeze_")
def _unsqueeze(z: Pairs, dim: int) -> Pairs:
    return Pairs(z.tensor.unsqueeze(dim % (z.rank + 1)))


@rule("squeeze", "squeeze_")
def _squeeze(z: Pairs, dims: int | Iterable[int] | None = None) -> Pairs:
    chosen = range(z.rank) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = [axis for axis in {z.axis(dim) for dim in chosen} if z.tensor.shape[axis] == 1 and z.rank]
    return Pairs(z.tensor.squeeze(tuple(gone)) if gone else z.tensor)


@rule("select")
def _select(z: Pairs, dim: int, index: int) -> Pairs:
    return Pairs(z.tensor.select(z.axis(dim), index))


@rule("slice")
def _slice(z: Pairs, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Pairs:
    return Pairs(torch.ops.aten.slice.Tensor(z.tensor, z.axis(dim), start, end, step))


@rule("split_with_sizes", "split")
def _split(z: Pairs, sizes: Any, dim: int = 0) -> list[Pairs]:
    return [Pairs(part) for part in torch.split(z.tensor, sizes, z.axis(dim))]


@rule("unbind")
def _unbind(z: Pairs, dim: int = 0) -> list[Pairs]:
    return [Pairs(part) for part in torch.unbind(z.tensor, z.axis(dim))]
