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
ZEROS, NONE, LEFT, BOTH = "zeros", "none", "left", "both"
"""How a loop without a loader clears gradients, as far as it has shown it: by zeros, to None, not, now so, now so."""
USED = f"is used in the step behind it, and isn't in the checkpoint: a resumption isn't exact. {CURE}"
NOT_SHOWN = f"may be cleared at the end of a step, by zeros or to None: the loop hadn't shown one way so far. {CURE}"
KEPT = (
    "is in it, and the loop clears gradients at times: a resumption can't know whether it has done so behind "
    "recorder.step(). Clear them before recorder.step()"
)
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LOOK = 1024
"""Numbers of a gradient that show almost always whether it's zero, or what it was before."""


class Gradients:
    """Which parameters have gradients, and whether the loop clears those that aren't zeros before it uses them.

    Other gradients than zeros are of no more use where a loop clears them. Until it has done so they are followed: an
    optimizer that uses one that wasn't cleared is refused. Behind a resumption zeros are in their places. A loop
    without a loader may clear at the end of its step, which is behind its checkpoint: what it would find is put there,
    and the next step has to show that it does.

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
        self._by_hand = self._is_told = self._is_assumed = self._is_checked = self._is_needed = False
        self._placed: dict[str, _Followed] = {}
        self._loaded: Mapping[str, Any] = {}
        self._kept = frozenset(kept)
        self.reporting: Callable[[], AbstractContextManager[None]] = nullcontext
        """Reports a refusal, which comes out of an optimizer's step."""
        self._way = ""

    def state(self) -> dict[str, Any]:
        """Names of parameters by what their gradients are, in a checkpoint."""
        found: dict[str, list[str]] = {}
        for name, parameter, gradient in self._present():
            placed = self._placed.get(name)
            is_as_placed = placed is not None and placed.is_untouched and placed.parameter is parameter
            if name not in self._kept:
                found.setdefault("used" if is_as_placed else _kind(gradient), []).append(name)
        return {**found, "clears": self._way}

    def load(self, state: Mapping[str, Any]) -> None:
        """Zeros in place of the gradients of a checkpoint."""
        self._loaded = state
        self._way = state["clears"] or ""
        self.put_back()

    def put_back(self) -> None:
        """Put zeros into the places of a loaded checkpoint, again if the loop has cleared them before it draws."""
        self._placed = {}
        kinds = {name: kind for kind in (ZEROS, "used", "sparse") for name in self._loaded.get(kind, ())}
        for name, parameter in self._parameters().items():
            if name in self._kept:
                continue
            parameter.grad = gradient = _zeros(parameter, kinds[name]) if name in kinds else None
            if gradient is not None and kinds[name] != ZEROS:
                # Negative zeros tell it from what a loop clears, and scaling by clip_grad_norm_ keeps them.
                self._placed[name] = _Followed(name, parameter, gradient.neg_())

    def follow(self, by_hand: bool, is_resumed: bool = False, is_needed: bool = True, is_noted: bool = True) -> None:
        """Follow gradients from a checkpoint or a resumption on, or from a step that isn't ``is_needed`` exactly.

        is_noted: it shows how the loop clears them; else, whether a resumption has done so as the loop does.
        """
        self.release()
        self._is_checked, self._is_assumed = self._is_assumed, False
        self._is_needed, self._by_hand = is_needed or self._is_checked, by_hand and is_noted
        if not is_noted and not self._is_checked:
            return
        updated = {id(tensor) for tensor in self._updated()}
        followed = list(self._placed.values()) if is_resumed else []
        for name, parameter, gradient in self._present():
            is_kept = name in self._kept
            if _kind(gradient) != ZEROS and (by_hand if is_kept else not is_resumed):
                followed.append(_Followed(name, parameter, gradient, is_kept))
        for one in followed:
            one.is_updated, one.is_behind = id(one.parameter) in updated, is_resumed and by_hand
            self._followed[id(one.parameter)] = one
        for parameter in self._parameters().values() if followed else ():
            found = self._followed.get(id(parameter))
            if parameter.requires_grad and (found or (is_resumed and by_hand)):
                # Of the node that adds to a gradient, which autograd.grad leaves out; a parameter doesn't keep it.
                self._nodes.append(get_gradient_edge(parameter).node)
                self._hooks.append(self._nodes[-1].register_prehook(self._weakly("_note_backward", found)))
                if isinstance(parameter, DTensor):  # fully_shard adds by itself, and calls these hooks alone
                    hook: Any = parameter.register_post_accumulate_grad_hook
                    self._hooks.append(hook(self._weakly("_note_added", found)))
        if followed:
            self._hooks.append(register_optimizer_step_pre_hook(self._weakly("_before_update")))
            self._hooks.append(register_optimizer_step_post_hook(self._weakly("_note_update")))

    def release(self) -> None:
        """Follow none any more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._nodes, self._followed = [], [], {}

    def _present(self) -> list[tuple[str, Tensor, Tensor]]:
        """Parameters with a gradient that is one: an exact step has stand-ins."""
        found = [(name, parameter, parameter.grad) for name, parameter in self._parameters().items()]
        return [(n, p, grad) for n, p, grad in found if grad is not None and type(grad) in (Tensor, DTensor)]

    def _weakly(self, name: str, *given: Any) -> Callable[..., None]:
        """A method as a hook, which doesn't keep a recorder that nobody has closed."""
        own = weakref.ref(self)
        return lambda *more: None if (gradients := own()) is None else getattr(gradients, name)(*given, *more)

    def _note_backward(self, one: _Followed | None, _: object) -> None:
        """A gradient is about to be added to that of a parameter."""
        self._end_step()
        if one is not None and self._followed.get(id(one.parameter)) is one:
            self._note_sum(one, one.way)

    def _note_added(self, one: _Followed | None, _: object) -> None:
        """A gradient was added to that of a spread parameter, of which only `zero_` before has changed the version."""
        if one is not None and self._followed.get(id(one.parameter)) is one:
            is_same = one.parameter.grad is one.gradient
            way = NONE if not is_same else LEFT if one.gradient._version == one.version else ZEROS
            if way == LEFT and one.is_behind and not one.is_kept and self._way in (ZEROS, NONE):
                if self._way == ZEROS:
                    _local(one.gradient).add_(0.0)  # it was added to negative zeros, and the loop's end leaves others
                self._drop(one)
            else:
                self._note_sum(one, way)
        self._end_step()

    def _note_sum(self, one: _Followed, way: str) -> None:
        """A gradient is added to one that the loop has cleared, or to what was there."""
        if way != LEFT or one.is_kept:
            is_left, is_other = one.is_behind and way == LEFT, self._way not in ("", way)
            if is_other and (self._is_checked or one.is_kept):
                self._refuse(one, KEPT if one.is_kept else NOT_SHOWN)
            if is_left and not self._way:
                self._refuse(one, KEPT)
            if self._by_hand and not is_left:
                self._way = BOTH if is_other else way
        elif one.is_behind or one.is_updated:
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
        self._end_step()
        for one in self._of(optimizer):
            if one.way != LEFT or (one.is_kept and (one.is_behind or one.is_untouched or one.is_scaled)):
                self._note_sum(one, one.way)
            elif one.is_behind:
                if one.parameter.grad is one.gradient and _has_negative_zeros(one.gradient):
                    self._refuse(one, NOT_SHOWN)
                self._drop(one)

    def _note_update(self, optimizer: Any, given: Any, named: Any) -> None:
        for one in self._of(optimizer):
            is_used = one.way == LEFT and (one.was_added or one.is_untouched or one.is_scaled)
            if is_used and self._is_needed:
                self._refuse(one, USED)
            del self._followed[id(one.parameter)]

    def _refuse(self, one: _Followed, reason: str) -> None:
        with self.reporting():
            raise ProtocolError(f"the gradient of {one.name} at the checkpoint {reason}")

    def _of(self, optimizer: Any) -> list[_Followed]:
        tensors = (tensor for group in optimizer.param_groups for tensor in group["params"])
        return [one for tensor in tensors if (one := self._followed.get(id(tensor))) is not None]

    def _end_step(self) -> None:
        """Clear what the loop's end clears behind a checkpoint, where that is known."""
        if self._way not in (ZEROS, NONE):
            return
        for one in [one for one in self._followed.values() if one.is_behind]:
            one.is_behind = False
            if one.is_untouched:
                one.parameter.grad = _zeros(one.parameter, _kind(one.gradient)) if self._way == ZEROS else None
                self._drop(one)

    def _drop(self, one: _Followed) -> None:
        self._is_assumed = True
        self._placed.pop(one.name, None)
        self._followed.pop(id(one.parameter), None)


class _Followed:
    """A gradient that wasn't cleared. is_behind: the loop may clear it at a step's end, which it has left out.

    is_kept: the checkpoint holds it.
    """

    def __init__(self, name: str, parameter: Tensor, gradient: Tensor, is_kept: bool = False) -> None:
        self.name, self.parameter, self.gradient = name, parameter, gradient
        self.is_updated, self.is_behind, self.was_added, self.is_kept = False, False, False, is_kept
        self._mark, self.version = _mark(gradient), gradient._version
        self._begin, self._sample = _sample(gradient)

    @property
    def is_untouched(self) -> bool:
        return self.parameter.grad is self.gradient and _mark(self.gradient) == self._mark

    @property
    def way(self) -> str:
        """How it was cleared."""
        gradient = self.parameter.grad
        return NONE if gradient is None else ZEROS if _is_zero(gradient) and not self.is_untouched else LEFT

    @property
    def is_scaled(self) -> bool:
        """Whether it is a multiple of what it was, as clipping leaves it; another gradient in its place isn't."""
        if self.parameter.grad is not self.gradient or self._sample.count_nonzero() < 2:
            return False
        now = _sample(self.gradient, self._begin)[1]
        multiple = self._sample * ((now @ self._sample) / (self._sample @ self._sample))
        return bool(torch.allclose(now, multiple, rtol=4 * torch.finfo(self.gradient.dtype).eps, atol=0))


def _kind(gradient: Tensor) -> str:
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


def _has_negative_zeros(gradient: Tensor) -> bool:
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


def _local(gradient: Tensor) -> Tensor:
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient


def _values(gradient: Tensor) -> Tensor:
    values = _local(gradient).detach()
    return torch.view_as_real(values) if values.is_complex() else values


def _bits(gradient: Tensor) -> Tensor:
    values = _values(gradient)
    return values.view(INTEGERS[values.element_size()])


@torch.no_grad()
def _zeros(parameter: Tensor, kind: str) -> Tensor:
    if kind != "sparse":
        return torch.zeros_like(parameter, requires_grad=False)
    rows = torch.empty((1, 0), dtype=torch.int64, device=parameter.device)
    return torch.sparse_coo_tensor(
        rows, parameter.new_empty((0, *parameter.shape[1:])), parameter.shape, check_invariants=False
    )
