"""What a program depends on besides the numbers in tensors, as far as it can be seen at little cost."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CellType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks

from pol.graph.capture.guards.argument_checks import is_recorders

PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype)
_CONTAINERS = frozenset({dict, OrderedDict, list, set})
"""Most attributes of modules; looking for them first halves the time."""
_OF_MODULES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_EMPTY = CellType()
_OF_OPTIMIZERS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


def present_setting(model: nn.Module, losses: Sequence[object], optimizers: Sequence[Optimizer]) -> Any:
    """The setting now; equal settings have the same programs.

    Tensors and what is trained, hooks, the optimizers' groups, plain attributes of modules (their mode, a rate of
    dropout) and plain values that the loss functions close over.
    """
    own = [*model.modules()]
    held = (tensor for part in own for tensor in (*part._parameters.values(), *part._buffers.values()))
    tensors = [tensor for tensor in held if tensor is not None]  # one walk for all: three take half of the time
    modules = [*own, *(part for loss in losses if isinstance(loss, nn.Module) for part in loss.modules())]
    return (
        [(id(t), t.requires_grad, t.dtype, t.shape) for t in tensors],
        [*_hooks(tensors, _OF_TENSORS), *_hooks(modules, _OF_MODULES), *_hooks(optimizers, _OF_OPTIMIZERS)],
        [*_hooks([module_hooks], [f"_global{name}" for name in _OF_MODULES])],
        [*_hooks([optimizer_hooks], ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"))],
        [[[id(member) for member in group["params"]] for group in one.param_groups] for one in optimizers],
        [[item for item in vars(module).items() if _is_plain(item[1])] for module in modules],
        [item for loss in losses for item in closed_over(loss).items() if _is_plain(item[1])],
    )


def closed_over(function: object) -> dict[str, object]:
    """What a function of Python, or a method, closes over, by name."""
    names: Sequence[str] = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells: Sequence[CellType] = getattr(function, "__closure__", None) or ()
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=False) if cell != _EMPTY}


class _Hook:
    """A hook, equal to itself alone; it's kept, so that no other one takes its place in memory."""

    __slots__ = ("_function",)

    def __init__(self, function: object) -> None:
        self._function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hook) and other._function is self._function

    def __hash__(self) -> int:
        return id(self._function)


def _hooks(owners: Iterable[object], names: Sequence[str]) -> Iterator[tuple[int, _Hook]]:
    """The hooks of some objects in these attributes, each with the number that torch gave it."""
    for owner in owners:
        for name in names:
            table: Mapping[int, object] | None = getattr(owner, name)
            if table:
                yield from ((number, _Hook(hook)) for number, hook in table.items() if not is_recorders(hook))


def _is_plain(value: object) -> bool:
    if type(value) in _CONTAINERS:
        return False
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(isinstance(item, PLAIN) for item in value))
