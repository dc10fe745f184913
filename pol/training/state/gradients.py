"""Gradients at a checkpoint: which of them there are, and the values of those that the loop hasn't shown to clear."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge
from torch.distributed.tensor import DTensor
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from pol.errors import ProtocolError
from pol.training.state.followed_gradient import LEFT, NONE, ZEROS, Followed, has_negative_zeros, kind, local, zeros

CURE = (
    "Clear all gradients between a checkpoint and the next backward(), by optimizer.zero_grad() at the top of a step; "
    "or let steps end with it; or give the recorder checkpoints=Checkpoints(gradients=True)"
)
BOTH = "both"
"""An optimizer's gradients are cleared now in one way, now in another."""
USED = f"is used in the step behind it, and isn't in the checkpoint: a resumption isn't exact. {CURE}"
NOT_SHOWN = f"may be cleared at the end of a step, by zeros or to None: the loop hadn't shown one way so far. {CURE}"
KEPT = (
    "is in it, and the loop clears gradients at times: a resumption can't know whether it has done so behind "
    "recorder.step(). Clear them before recorder.step()"
)
CHANGED = (
    "is changed in place in the step behind it, without a backward(): a resumption can't know whether the loop has "
    "cleared it behind recorder.step(). Clear it before, or draw batches by recorder.batches(loader)"
)


class Gradients:
    """Which parameters have gradients, and whether the loop clears those that aren't zeros before it uses any.

    Other gradients than zeros are of no more use where a loop clears them. A checkpoint holds those of an optimizer
    that hasn't shown it, in the step behind the first one or behind an earlier checkpoint. The others are followed: an
    optimizer that uses one that wasn't cleared is refused. Behind a resumption zeros are in their places. A loop
    without a loader may clear at the end of its step, which is behind its checkpoint, so no values are recorded: what
    it would find is put there, and the next step has to show that it does.

    parameters: those of the training by name. updated: the names of their optimizers by identity. is_drawn: whether
    the loop has a loader. is_whole: the checkpoint holds all gradients.
    """

    def __init__(
        self,
        parameters: Callable[[], Mapping[str, Tensor]],
        updated: Callable[[], Mapping[int, str]],
        is_drawn: Callable[[], bool] = lambda: False,
        is_whole: bool = False,
    ) -> None:
        self._parameters, self._updated, self._is_drawn, self._is_whole = parameters, updated, is_drawn, is_whole
        self._followed: dict[int, Followed] = {}
        self._hooks: list[Any] = []
        self._nodes: list[Node] = []
        self._by_hand = self._is_told = self._is_assumed = self._is_checked = self._is_needed = False
        self._is_looked = self._is_over = self._has_no_loader = True
        self._placed: dict[str, Followed] = {}
        self._loaded: Mapping[str, Any] = {}
        self._ways: dict[str, str] = {}
        self._put: frozenset[str] = frozenset()
        self.reporting: Callable[[], AbstractContextManager[None]] = nullcontext
        """Reports a refusal, which comes out of an optimizer's step."""

    def state(self) -> dict[str, Any]:
        """Names of parameters by what their gradients are, in a checkpoint; not of those that it holds."""
        found: dict[str, list[str]] = {}
        kept = self.kept()
        for name, parameter, gradient in self._present():
            if name not in kept:
                found.setdefault("used" if self._is_placed(name, parameter) else kind(gradient), []).append(name)
        return {**found, "clears": self._ways}

    def kept(self) -> dict[str, Tensor]:
        """Gradients that a checkpoint holds. What an earlier one left out, and nobody has touched, stays so."""
        found, owners = {}, self._updated()
        for name, parameter, gradient in self._present():
            followed = self._followed.get(id(parameter))
            is_followed = followed is not None and not followed.is_kept and followed.is_untouched
            is_left_out = is_followed or self._is_placed(name, parameter)
            is_unseen = self._is_drawn() and self._ways.get(owners.get(id(parameter), "")) not in (ZEROS, NONE)
            if self._is_whole or (is_unseen and not is_left_out and kind(gradient) == "used"):
                found[name] = gradient
        return found

    def _is_placed(self, name: str, parameter: Tensor) -> bool:
        placed = self._placed.get(name)
        return placed is not None and placed.is_untouched and placed.parameter is parameter

    @torch.no_grad()
    def load(self, state: Mapping[str, Any], kept: Mapping[str, Tensor]) -> None:
        """The gradients that a checkpoint holds, and zeros in place of the others."""
        self._loaded, self._put = state, frozenset(kept)
        self._ways = dict(state["clears"] or {})
        self.put_back()
        for name, parameter in self._parameters().items():
            if name in kept:
                parameter.grad = torch.empty_like(parameter, dtype=kept[name].dtype).copy_(kept[name])

    def put_back(self) -> None:
        """Put zeros into the places of a loaded checkpoint, again if the loop has cleared them before it draws."""
        self._placed = {}
        kinds = {name: kind for kind in (ZEROS, "used", "sparse") for name in self._loaded.get(kind, ())}
        for name, parameter in self._parameters().items():
            if name in self._put:
                continue
            parameter.grad = gradient = zeros(parameter, kinds[name]) if name in kinds else None
            if gradient is not None and kinds[name] != ZEROS:
                # Negative zeros tell it from what a loop clears, and scaling by clip_grad_norm_ keeps them.
                self._placed[name] = Followed(name, parameter, gradient.neg_())

    def follow(self, by_hand: bool, is_resumed: bool = False, is_needed: bool = True, is_noted: bool = True) -> None:
        """Follow gradients from a checkpoint or a resumption on, or from a step that isn't ``is_needed`` exactly.

        is_noted: it shows how the loop clears them; else, whether a resumption has done so as the loop does.
        """
        kept = self.kept()
        self.release()
        self._is_looked, self._is_over, self._has_no_loader = by_hand or not self._is_drawn(), False, by_hand
        self._is_checked, self._is_assumed = self._is_assumed, False
        self._is_needed, self._by_hand = is_needed or self._is_checked, by_hand and is_noted
        if not is_noted and not self._is_checked:
            return
        owners = self._updated()
        followed = list(self._placed.values()) if is_resumed else []
        for name, parameter, gradient in self._present():
            is_kept = name in kept
            if kind(gradient) != ZEROS and ((by_hand or not self._is_whole) if is_kept else not is_resumed):
                followed.append(Followed(name, parameter, gradient, is_kept))
        for one in followed:
            one.owner, one.is_behind = owners.get(id(one.parameter), ""), is_resumed and by_hand
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

    def _note_backward(self, one: Followed | None, _: object) -> None:
        """A gradient is about to be added to that of a parameter."""
        self._look()
        self._end_step()
        if one is not None and self._followed.get(id(one.parameter)) is one:
            self._note_sum(one, one.way)

    def _note_added(self, one: Followed | None, _: object) -> None:
        """A gradient was added to that of a spread parameter, of which only `zero_` before has changed the version."""
        if one is not None and self._followed.get(id(one.parameter)) is one:
            is_same = one.parameter.grad is one.gradient
            way = NONE if not is_same else LEFT if one.gradient._version == one.version else ZEROS
            known = self._ways.get(one.owner)
            if way == LEFT and one.is_behind and not one.is_kept and known in (ZEROS, NONE):
                if known == ZEROS:
                    local(one.gradient).add_(0.0)  # it was added to negative zeros, and the loop's end leaves others
                self._drop(one)
            else:
                self._note_sum(one, way)
        self._end_step()

    def _look(self) -> None:
        """What is cleared as the first gradient behind a checkpoint is used; values of the others are recorded."""
        if self._is_looked:
            return
        self._is_looked = True
        for one in list(self._followed.values()):
            way = one.way
            self._ways[one.owner] = LEFT if way == LEFT else self._ways.get(one.owner, way)
            if way != LEFT or one.is_kept:
                del self._followed[id(one.parameter)]

    def end_step(self) -> None:
        """The first step behind a checkpoint is over: clipping may have used what no optimizer did."""
        if self._is_over:
            return
        self._look()
        self._is_over = True
        for one in self._followed.values():
            if self._is_needed and one.is_scaled and not one.is_kept:
                self._refuse(one, USED)

    def _note_sum(self, one: Followed, way: str) -> None:
        """A gradient is added to one that the loop has cleared, or to what was there."""
        if way != LEFT or one.is_kept:
            known = self._ways.get(one.owner, "")
            is_left, is_other = one.is_behind and way == LEFT, known not in ("", way)
            if is_other and (self._is_checked or one.is_kept):
                self._refuse(one, KEPT if one.is_kept else NOT_SHOWN)
            if is_left and not known:
                self._refuse(one, KEPT)
            if self._by_hand and not is_left:
                self._ways[one.owner] = BOTH if is_other else way
        elif one.is_behind or one.owner:
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
        self._look()
        self._end_step()
        for one in self._of(optimizer):
            if one.way != LEFT or (one.is_kept and (one.is_behind or one.is_untouched or one.is_scaled)):
                self._note_sum(one, one.way)
            elif one.is_behind:
                if one.parameter.grad is one.gradient and has_negative_zeros(one.gradient):
                    self._refuse(one, NOT_SHOWN)
                self._drop(one)

    def _note_update(self, optimizer: Any, given: Any, named: Any) -> None:
        for one in self._of(optimizer):
            is_used = one.was_added or one.is_untouched or one.is_scaled
            # In place without a backward(), as by `gradient.add_`, it may be a sum, or be cleared before.
            if self._is_needed and one.way == LEFT and (is_used or one.parameter.grad is one.gradient):
                self._refuse(one, USED if is_used or not self._has_no_loader else CHANGED)
            del self._followed[id(one.parameter)]

    def _refuse(self, one: Followed, reason: str) -> None:
        with self.reporting():
            raise ProtocolError(f"the gradient of {one.name} at the checkpoint {reason}")

    def _of(self, optimizer: Any) -> list[Followed]:
        tensors = (tensor for group in optimizer.param_groups for tensor in group["params"])
        return [one for tensor in tensors if (one := self._followed.get(id(tensor))) is not None]

    def _end_step(self) -> None:
        """Clear what the loop's end clears behind a checkpoint, where that is known."""
        for one in [one for one in self._followed.values() if one.is_behind]:
            if (way := self._ways.get(one.owner)) not in (ZEROS, NONE):
                continue
            one.is_behind = False
            if one.is_untouched:
                one.parameter.grad = zeros(one.parameter, kind(one.gradient)) if way == ZEROS else None
                self._drop(one)

    def _drop(self, one: Followed) -> None:
        self._is_assumed = True
        self._placed.pop(one.name, None)
        self._followed.pop(id(one.parameter), None)
