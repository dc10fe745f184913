"""One gradient that was there at a checkpoint: whether it was cleared, changed or scaled since."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

ZEROS, NONE, LEFT = "zeros", "none", "left"
"""How it was cleared: by zeros, to None, not."""
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LOOK = 1024
"""Numbers of a gradient that show almost always whether it's zero, or what it was before."""


class Followed:
    """A gradient that wasn't cleared. is_behind: the loop may clear it at a step's end, which it has left out.

    owner: the name of its optimizer, if one is recorded. is_kept: the checkpoint holds it.
    """

    def __init__(self, name: str, parameter: Tensor, gradient: Tensor, is_kept: bool = False) -> None:
        self.name, self.parameter, self.gradient = name, parameter, gradient
        self.owner, self.is_behind, self.was_added, self.is_kept = "", False, False, is_kept
        self._mark, self.version = _mark(gradient), gradient._version
        self._begin, self._sample = _sample(gradient)

    @property
    def is_untouched(self) -> bool:
        """Whether it is in its place, with the same values."""
        return self.parameter.grad is self.gradient and _mark(self.gradient) == self._mark

    @property
    def way(self) -> str:
        """How it was cleared."""
        gradient = self.parameter.grad
        if gradient is None:
            return LEFT if self.is_scaled else NONE  # what clipping has read, it was cleared after
        return ZEROS if _is_zero(gradient) and not self.is_untouched else LEFT

    @property
    def is_scaled(self) -> bool:
        """Whether it is a multiple of what it was, as clipping leaves it; another gradient in its place isn't."""
        if self._sample.count_nonzero() < 2:
            return False
        now = _sample(self.gradient, self._begin)[1]
        multiple = self._sample * ((now @ self._sample) / (self._sample @ self._sample))
        is_same = torch.equal(now, self._sample)
        return not is_same and bool(
            torch.allclose(now, multiple, rtol=4 * torch.finfo(self.gradient.dtype).eps, atol=0)
        )


def kind(gradient: Tensor) -> str:
    """What becomes of it at a resumption, if its values aren't recorded."""
    if gradient.layout != torch.strided:
        return "sparse"
    return ZEROS if _is_zero(gradient) else "used"


def _is_zero(gradient: Tensor) -> bool:
    """Whether all bits are zero."""
    if gradient.layout != torch.strided:
        return gradient._nnz() == 0
    bits = _bits(gradient)
    first = bits.view(-1)[:_LOOK] if bits.is_contiguous() else bits
    return not bool(first.any()) and not bool(bits.any())


def _mark(gradient: Tensor) -> object:
    """What tells a gradient from another one in its place: its version doesn't, as of `gradient.data.zero_()`."""
    if gradient.layout != torch.strided:
        return gradient._version
    bits = _bits(gradient)
    return _is_zero(gradient), int(bits.sum(dtype=bits.dtype))


def has_negative_zeros(gradient: Tensor) -> bool:
    """Whether the sum with zeros is another one: of what was placed, or of what was added to it."""
    if gradient.layout != torch.strided:
        return gradient._nnz() == 0
    bits = _bits(gradient)
    return bool((bits == torch.iinfo(bits.dtype).min).any())


def _sample(gradient: Tensor, begin: int | None = None) -> tuple[int, Tensor]:
    """Some numbers of a gradient, of its greatest block and of its end, and where the block begins."""
    if gradient.layout != torch.strided:
        return 0, torch.zeros(0, dtype=torch.float64)
    values = _values(gradient).reshape(-1)
    if begin is None:
        blocks = values[: values.numel() // _LOOK * _LOOK].view(-1, _LOOK)
        begin = int((blocks.amax(1).abs() + blocks.amin(1).abs()).argmax()) * _LOOK if len(blocks) else 0
    return begin, torch.cat([values[begin : begin + _LOOK], values[-_LOOK:]]).double()


def local(gradient: Tensor) -> Tensor:
    """The part of a spread gradient that is here."""
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient


def _values(gradient: Tensor) -> Tensor:
    values = local(gradient).detach()
    return torch.view_as_real(values) if values.is_complex() else values


def _bits(gradient: Tensor) -> Tensor:
    values = _values(gradient)
    return values.view(INTEGERS[values.element_size()])


@torch.no_grad()
def zeros(parameter: Tensor, kind: str) -> Tensor:
    """A gradient of a parameter without values."""
    if kind != "sparse":
        return torch.zeros_like(parameter, requires_grad=False)
    rows = torch.empty((1, 0), dtype=torch.int64, device=parameter.device)
    return torch.sparse_coo_tensor(
        rows, parameter.new_empty((0, *parameter.shape[1:])), parameter.shape, check_invariants=False
    )
