"""Shapes of results that torch states for a trace only where the numbers are known, or for other types."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_LIBRARY = torch.library.Library("aten", "FRAGMENT")  # type: ignore[no-untyped-call]  # torch declares no types


def _ctc(scores: Tensor, targets: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    time, examples, _classes = scores.shape
    return scores.new_empty(examples), scores.new_empty(examples, time, 2 * targets.shape[-1] + 1)


def _ctc_backward(_gradient: Tensor, scores: Tensor, *_: Any, **__: Any) -> Tensor:
    return torch.empty_like(scores)


def _grouped(left: Tensor, right: Tensor, offs: Tensor | None = None, *_: Any, **keywords: Any) -> Tensor:
    matrices = 3
    lead = [] if offs is None or left.dim() != right.dim() else [offs.shape[0]]
    if left.dim() == right.dim() == matrices:
        lead = [left.shape[0]]
    return left.new_empty(*lead, left.shape[-2], right.shape[-1], dtype=keywords.get("out_dtype"))


for _name, _shaped in (
    ("_ctc_loss", _ctc),
    ("_ctc_loss.Tensor", _ctc),
    ("_ctc_loss_backward", _ctc_backward),
    ("_ctc_loss_backward.Tensor", _ctc_backward),
    ("_grouped_mm", _grouped),
):
    torch.library.register_fake(f"aten::{_name}", _shaped, lib=_LIBRARY, allow_override=True)
