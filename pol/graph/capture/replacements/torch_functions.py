"""Functions of torch whose own code reads numbers of tensors, replaced before a trace differentiates them.

Operations of the graph are too late for them. Writing by a boolean mask is a choice, whose gradient has a fixed shape;
the Gaussian loss raises for a negative variance. A condition that the user's code only raises by has the value with
which the step goes on.
"""

from __future__ import annotations

import dis
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.modules import transformer
from torch.nn.utils.rnn import pad_sequence
from torch.overrides import TorchFunctionMode

from pol.graph.capture.replacements.indexing import masks
from pol.graph.capture.replacements.selections import has_selected_rows, of_selected_rows
from pol.graph.capture.replacements.table import FUNCTIONS, replaces_function
from pol.graph.capture.tracing.provenance import is_mode, is_user_file

_BEGIN = "training_step.py"
"""The file whose frames call the user's code."""
_SKIPPED = {"CACHE", "TO_BOOL", "NOT_TAKEN"}


def checked(*_: Any) -> Any:
    """The value of a condition with which the user's code goes on if it raises otherwise, or NotImplemented."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_mode(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return NotImplemented
    if frame.f_code is transformer._detect_is_causal_mask.__code__:
        return False  # a hint for a faster kernel: the mask itself is applied in any case
    if not is_user_file(frame.f_code.co_filename) or _is_caught(frame):
        return NotImplemented
    value = _value_that_goes_on(frame.f_code, frame.f_lasti)
    return NotImplemented if value is None else value


def _value_that_goes_on(code: CodeType, reader: int) -> bool | None:
    """Of the condition that the instruction at `reader` reads, which a jump follows or is."""
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    place = places[reader]
    if not instructions[place].opname.startswith("POP_JUMP"):
        place += 1
        while instructions[place].opname in _SKIPPED:
            place += 1
    jump = instructions[place]
    if not jump.opname.startswith("POP_JUMP") or not jump.opname.endswith(("_IF_TRUE", "_IF_FALSE")):
        return None
    jumped, passed = _raises(instructions[places[jump.argval] :]), _raises(instructions[place + 1 :])
    if jumped == passed:
        return None
    return jump.opname.endswith("_IF_TRUE") == passed


def _raises(instructions: Iterable[dis.Instruction]) -> bool:
    """Whether the instructions lead straight to a `raise`, and store nothing before."""
    for instruction in instructions:
        name = instruction.opname
        if name == "RAISE_VARARGS":
            return True
        if "JUMP" in name or name.startswith(("STORE_", "DELETE_", "RETURN_", "YIELD_", "FOR_ITER", "SEND", "RERAISE")):
            return False
    return False


def _is_caught(innermost: FrameType) -> bool:
    """Whether the user's code may catch an exception of this place, by a `try` or a `with`."""
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(_BEGIN):
            return False
        if is_user_file(code.co_filename) and any(_catches(code, handler) for handler in _handlers(frame)):
            return True
        frame = frame.f_back
    return True


def _handlers(frame: FrameType) -> list[int]:
    entries = dis.Bytecode(frame.f_code).exception_entries  # type: ignore[attr-defined]  # typeshed doesn't know it
    return [entry.target for entry in entries if entry.start <= frame.f_lasti < entry.end]


def _catches(code: CodeType, handler: int) -> bool:
    """Whether a handler does anything but raise the exception again, as `finally` does."""
    for instruction in dis.get_instructions(code):
        if instruction.offset < handler:
            continue
        if instruction.opname == "RERAISE":
            return False
        if instruction.opname in {"WITH_EXCEPT_START", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"}:
            return True
    return True


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
