"""Functions of torch whose own code reads numbers of tensors, replaced before a trace differentiates them.

Operations of the graph are too late for them. Writing by a boolean mask is a choice, whose gradient has a fixed shape;
the Gaussian loss raises for a negative variance. A condition that the user's code only raises by has the value with
which the step goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.overrides import TorchFunctionMode

from pol.graph.capture.replacements.indexing import masks
from pol.graph.capture.replacements.selections import has_selected_rows, of_selected_rows
from pol.graph.capture.replacements.table import FUNCTIONS, replaces_function
from pol.graph.capture.tracing.checks_of_numbers import checked


class ReplacedFunctions(TorchFunctionMode):
    """While active, some functions of torch are replaced."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function, or its replacement."""
        if has_selected_rows(args, kwargs):
            return of_selected_rows(func, args, kwargs or {})
        replacement = FUNCTIONS.get(func)
        if replacement is not None:
            result = replacement(*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


@replaces_function(Tensor.__setitem__)
def _set_item(target: Tensor, index: Any, value: Any) -> Any:
    indices = list(index) if isinstance(index, tuple) else [index]
    if not any(_is_mask(item) for item in indices) or not isinstance(value, Tensor):
        return NotImplemented
    if any(item is Ellipsis for item in indices[1:]):
        return NotImplemented
    if indices[0] is Ellipsis:
        taken = sum(item.dim() if isinstance(item, Tensor) else 1 for item in indices[1:])
        indices = [slice(None)] * (target.dim() - taken) + indices[1:]
    if not all(_is_mask(item) or (isinstance(item, slice) and item == slice(None)) for item in indices):
        return NotImplemented
    return _put(target, [item if isinstance(item, Tensor) else None for item in indices], value)


@replaces_function(Tensor.index_put_, torch.index_put_)
def _put(target: Tensor, indices: Sequence[Tensor | None], value: Tensor, accumulate: bool = False) -> Any:
    """Write in place."""
    written = masks.index_put(target, indices, value, accumulate)
    return written if written is NotImplemented else target.copy_(written)


replaces_function(Tensor.index_put, torch.index_put)(masks.index_put)


def _is_mask(item: object) -> bool:
    return isinstance(item, Tensor) and item.dtype is torch.bool


@replaces_function(functional.gaussian_nll_loss)
def _gaussian(
    output: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    if not isinstance(var, Tensor):
        var = torch.full_like(output, var)
    if var.shape != output.shape and var.shape == output.shape[:-1]:
        var = var.unsqueeze(-1)
    # The bound counts as a constant: the gradient passes it.
    var = var + (var.detach().clamp(min=eps) - var.detach())
    loss = 0.5 * (torch.log(var) + (output - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _ctc(
    func: Any, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, *how: Any, **named: Any
) -> Any:
    """Lengths in lists, of which torch's own code makes a tensor and reads it."""
    if isinstance(input_lengths, Tensor) or isinstance(target_lengths, Tensor):
        return NotImplemented
    if targets.dim() == 1:
        targets = pad_sequence([*torch.split(targets, list(target_lengths))], batch_first=True)
    lengths = (torch.tensor(list(given)) for given in (input_lengths, target_lengths))
    return func(log_probs, targets, *lengths, *how, **named)


for _func in (functional.ctc_loss, torch.ctc_loss):
    replaces_function(_func)(partial(_ctc, _func))
replaces_function(Tensor.__bool__, Tensor.item)(checked)
