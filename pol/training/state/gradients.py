"""Gradients at a checkpoint, which holds which of them there are, and not their values: zeros are put back as zeros."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge
from torch.distributed.tensor import DTensor
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from pol.errors import ProtocolError

CURE = (
    "Clear all gradients between a checkpoint and the next backward(), by optimizer.zero_grad() at the top of a step; "
    "or let steps end with it; or give the recorder checkpoints=Checkpoints(gradients=True)"
)
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LOOK = 1024
"""Numbers of a gradient that are looked at before all of them: almost all that aren't zero show it there."""


class Gradients:
    """Which parameters have gradients, and whether the loop clears those that aren't zeros before it uses them.

    Other gradients than zeros are of no more use where a loop clears them. Until it has done so they are followed: an
    optimizer that uses one that wasn't cleared is refused. Behind a resumption zeros are in their places. A loop
    without a loader may clear at the end of its step, which is behind its checkpoint: what it would find is put there.

    parameters: those of the training by name. updated: those that a recorded optimizer has. kept: names of those whose
    gradients the checkpoint holds as they are.
    """

    def __init__(
        self,
        parameters: Callable[[], Mapping[str, Tensor]],
        updated: Callable[[], Iterable[Tensor]],
        kept: Iterable[str] = (),
    ) -> None:
        self._parameters, self._updated = parameters, updated
        self._followed: dict[int, _Followed] = {}
        self._hooks: list[Any] = []
        self._nodes: list[Node] = []
        self._is_told = False
        self._placed: dict[str, _Followed] = {}
        self._loaded: Mapping[str, Any] = {}
        self._kept = frozenset(kept)
        self.reporting: Callable[[], AbstractContextManager[None]] = nullcontext
        """Reports a refusal, which comes out of an optimizer's step."""
        self._leaves_zeros = False
        """Whether a loop without a loader clears gradients by zeros."""

    def state(self) -> dict[str, Any]:
        """Names of parameters by what their gradients are, in a checkpoint."""
        found: dict[str, list[str]] = {}
        for name, (parameter, gradient) in self._present().items():
            placed = self._placed.get(name)
            is_as_placed = placed is not None and placed.is_untouched and placed.parameter is parameter
            found.setdefault("used" if is_as_placed else _kind(gradient), []).append(name)
        return {**found, "clears": self._leaves_zeros}

    def load(self, state: Mapping[str, Any]) -> None:
        """Zeros in place of the gradients of a checkpoint."""
        self._loaded = state
        self._leaves_zeros = bool(state["clears"])
        self.put_back()

    def put_back(self) -> None:
        """Put zeros into the places of a loaded checkpoint, again if the loop has cleared them before it draws."""
        self._placed = {}
        kinds = {name: kind for kind in ("zeros", "used", "sparse") for name in self._loaded.get(kind, ())}
        for name, parameter in self._parameters().items():
            if name in self._kept:
                continue
            parameter.grad = gradient = _zeros(parameter, kinds[name]) if name in kinds else None
            if gradient is not None and kinds[name] != "zeros":
                # Negative zeros tell it from what a loop clears, and scaling by clip_grad_norm_ keeps them.
                self._placed[name] = _Followed(name, parameter, gradient.neg_())

    def follow(self, by_hand: bool, is_resumed: bool = False) -> None:
        """Follow gradients from a checkpoint on, or from a resumption."""
        self.release()
        updated = {id(tensor) for tensor in self._updated()}
        if is_resumed:
            followed = list(self._placed.values())
        else:
            present = self._present().items()
            followed = [_Followed(name, p, gradient) for name, (p, gradient) in present if _kind(gradient) != "zeros"]
        for one in followed:
            # A spread tensor's versions and hooks aren't those of the rows that it is computed with.
            if not isinstance(one.parameter, DTensor):
                one.is_updated, one.is_behind = id(one.parameter) in updated, is_resumed and by_hand
                self._followed[id(one.parameter)] = one
                if one.parameter.requires_grad:
                    # Of the node that adds to a gradient, which autograd.grad leaves out; a parameter doesn't keep it.
                    self._nodes.append(get_gradient_edge(one.parameter).node)
                    self._hooks.append(self._nodes[-1].register_prehook(self._weakly("_note_backward", one, by_hand)))
        if self._followed:
            self._hooks.append(register_optimizer_step_pre_hook(self._weakly("_before_update")))
            self._hooks.append(register_optimizer_step_post_hook(self._weakly("_note_update")))

    def release(self) -> None:
        """Follow none any more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._nodes, self._followed = [], [], {}

    def _present(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Parameters with a gradient that is one: an exact step has stand-ins."""
        found = {name: (parameter, parameter.grad) for name, parameter in self._parameters().items()}
        return {
            name: (parameter, gradient)
            for name, (parameter, gradient) in found.items()
            if type(gradient) in (Tensor, DTensor) and gradient is not None and name not in self._kept
        }

    def _weakly(self, name: str, *given: Any) -> Callable[..., None]:
        """A method as a hook, which doesn't keep a recorder that nobody has closed."""
        own = weakref.ref(self)
        return lambda *more: None if (gradients := own()) is None else getattr(gradients, name)(*given, *more)

    def _note_backward(self, one: _Followed, by_hand: bool, _: object) -> None:
        """A gradient is about to be added to that of a parameter."""
        if self._followed.get(id(one.parameter)) is not one:
            return
        if one.is_cleared:
            self._leaves_zeros |= by_hand and one.parameter.grad is not None
        elif one.is_behind:
            self._end_step(one)
        elif one.is_updated:
            one.was_added = True
            return
        elif not self._is_told:
            self._is_told = True
            warnings.warn(
                f"gradients of {one.name}, which no recorded optimizer has, are added up and never cleared. No "
                "checkpoint holds them, so a resumption isn't exact if anything reads them, as clip_grad_norm_ over "
                f"all parameters does. {CURE}",
                stacklevel=2,
            )
        self._followed.pop(id(one.parameter), None)

    def _before_update(self, optimizer: Any, given: Any, named: Any) -> None:
        if len(given) > 1 or "closure" in named:
            return  # it may clear them; the optimizer itself is the first argument
        for one in self._of(optimizer):
            if one.is_behind and one.is_untouched:
                self._end_step(one)

    def _note_update(self, optimizer: Any, given: Any, named: Any) -> None:
        for one in self._of(optimizer):
            if not one.is_cleared and (one.was_added or one.is_untouched):
                with self.reporting():
                    raise ProtocolError(
                        f"the gradient of {one.name} at the checkpoint is used in the step behind it, and isn't in the "
                        f"checkpoint: a resumption isn't exact. {CURE}"
                    )
            del self._followed[id(one.parameter)]

    def _of(self, optimizer: Any) -> list[_Followed]:
        tensors = (tensor for group in optimizer.param_groups for tensor in group["params"])
        return [one for tensor in tensors if (one := self._followed.get(id(tensor))) is not None]

    def _end_step(self, one: _Followed) -> None:
        """Clear as the loop does behind its checkpoint."""
        self._placed.pop(one.name, None)
        self._followed.pop(id(one.parameter), None)
        one.parameter.grad = torch.zeros_like(one.parameter, requires_grad=False) if self._leaves_zeros else None


class _Followed:
    """A gradient that wasn't cleared. is_behind: the loop may clear it at a step's end, which it has left out."""

    def __init__(self, name: str, parameter: Tensor, gradient: Tensor) -> None:
        self.name, self.parameter = name, parameter
        self.is_updated = self.is_behind = self.was_added = False
        self._gradient, self._mark = gradient, _mark(gradient)

    @property
    def is_untouched(self) -> bool:
        return self.parameter.grad is self._gradient and _mark(self._gradient) == self._mark

    @property
    def is_cleared(self) -> bool:
        gradient = self.parameter.grad
        return gradient is None or (_is_zero(gradient) and not self.is_untouched)


def _kind(gradient: Tensor) -> str:
    if gradient.layout != torch.strided:
        return "sparse"
    return "zeros" if _is_zero(gradient) else "used"


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


def _bits(gradient: Tensor) -> Tensor:
    values = (gradient.to_local() if isinstance(gradient, DTensor) else gradient).detach()
    values = torch.view_as_real(values) if values.is_complex() else values
    return values.view(INTEGERS[values.element_size()])


@torch.no_grad()
def _zeros(parameter: Tensor, kind: str) -> Tensor:
    if kind != "sparse":
        return torch.zeros_like(parameter, requires_grad=False)
    rows = torch.empty((1, 0), dtype=torch.int64, device=parameter.device)
    return torch.sparse_coo_tensor(
        rows, parameter.new_empty((0, *parameter.shape[1:])), parameter.shape, check_invariants=False
    )
