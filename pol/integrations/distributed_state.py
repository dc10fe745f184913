"""The state of a trainer that is spread over the processes of a group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.optim import Optimizer

from pol.errors import ProtocolError, UnsupportedError
from pol.integrations.exchanged_state import RANKS, places, ranked
from pol.training.state.gradients import Gradients
from pol.training.state.random_state import RandomSources
from pol.training.state.trainer_state import OWN, Stateful, TrainerState

ALWAYS = frozenset({"random", "cursor", "environment"})
"""Components that each process has of its own in every training."""
T = TypeVar("T")


class DistributedState(TrainerState):
    """A trainer's state on several processes; `load` is called on all of them.

    per_process: components that each process has of its own, beside random generators, cursor and environment.

    Raises:
        UnsupportedError: a name that no such component has.
    """

    def __init__(
        self,
        model: nn.Module,
        parts: Mapping[str, Stateful],
        random: RandomSources,
        *,
        gradients: bool = False,
        group: dist.ProcessGroup | None = None,
        per_process: Collection[str] = (),
    ):
        super().__init__(model, parts, random, gradients=gradients)
        self._group = group
        # Processes may see other gradients cleared, and record together.
        self.cleared = Gradients(self.trainable, self._updated, is_whole=gradients)
        known = {"parameters", "buffers", *(["gradients"] if gradients else []), *self.parts}
        if odd := sorted(set(per_process) - known):
            raise UnsupportedError(
                f"per_process names {odd[0]!r}, and a process can have of its own: {', '.join(sorted(known))}"
            )
        self.per_process = ALWAYS | set(per_process)
        self.by_rows = False
        """Whether a loaded state holds only this process's rows of spread tensors."""

    def is_cut_into_rows(self) -> bool:
        """Whether every spread tensor is cut into rows over all processes of the group, in their order."""
        others = [part.state_dict() for part in self.parts.values() if not isinstance(part, Optimizer)]
        updated = [p for part in self.parts.values() if isinstance(part, Optimizer) for p in _updated(part)]
        held = [*self.model.parameters(), *self.model.buffers(), *updated, *_spread_tensors(others)]
        return all(
            tensor.device_mesh.ndim == 1
            and tensor.device_mesh.get_local_rank() == dist.get_rank(self._group)
            and tensor.device_mesh.size() == dist.get_world_size(self._group)
            and tensor.placements[0] in (Shard(0), Replicate())
            for tensor in held
            if isinstance(tensor, DTensor)
        )

    def components(self) -> dict[str, object]:
        """As `TrainerState.components`; of components of each process, only this one's place is filled.

        Raises:
            ProtocolError: fully_shard holds gradients that it hasn't averaged, so no parameter shows them.
        """
        for name, module in self.model.named_modules():
            if isinstance(module, FSDPModule) and _has_sums(module):
                raise ProtocolError(
                    f"module {name or 'model'} holds gradients that aren't averaged at a checkpoint, after "
                    "set_requires_gradient_sync(False), and a resumption loses them: let every= be a multiple of the "
                    "steps between two averages"
                )
        size, rank = dist.get_world_size(self._group), dist.get_rank(self._group)
        found = super().components()
        return {**found, **{name: ranked(found[name], rank, size) for name in self.per_process}}

    def load(self, components: Mapping[str, Any]) -> None:
        """As `TrainerState.load`; every process takes its rows of spread tensors.

        Raises:
            ProtocolError: the state of another trainer, or of another number of processes.
        """
        found = dict(components)
        size, rank = dist.get_world_size(self._group), dist.get_rank(self._group)
        for name, value in components.items():
            ranks = value[RANKS] if isinstance(value, Mapping) and value.keys() == {RANKS} else None
            is_ranked = isinstance(ranks, list)
            if is_ranked != (name in self.per_process):
                raise ProtocolError(
                    f"the checkpoint holds {name} {'of each process' if is_ranked else 'once'}: resume with the "
                    "recorder's per_process= of that run"
                )
            if is_ranked:
                found[name] = places(value, size)[rank]
        parameters = dict(self.model.named_parameters())
        spread = _give_rows if self.by_rows else _spread
        found["parameters"] = _spread_like(found["parameters"], parameters, spread)
        found["buffers"] = _spread_like(found["buffers"], dict(self.model.named_buffers()), spread)
        if self.gradients:
            found["gradients"] = _spread_like(found["gradients"], self.trainable(), spread)
        for name, part in self.parts.items():
            state = found[name]["state"]
            if isinstance(part, Optimizer):
                # A new optimizer has no state yet, so the placement is that of the parameter.
                order = dict(enumerate(_updated(part)))
                placed = {
                    i: {key: spread(value, order.get(i)) for key, value in values.items()}
                    for i, values in state["state"].items()
                }
                state = {**state, "state": placed}
                if OWN in found[name]:
                    found[name] = {**found[name], OWN: _spread_like(found[name][OWN], self.own(part), spread)}
            else:
                state = _spread_like(state, part.state_dict(), spread)
            found[name] = {**found[name], "state": state}
        super().load(found)


def gather(value: T, group: dist.ProcessGroup | None) -> list[T]:
    """The values of all processes, in the order of their ranks."""
    values: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    return values


def _has_sums(module: FSDPModule) -> bool:
    """Whether backward passes have left gradients in a module that they would have averaged otherwise."""
    state: Any = module._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]
    held = [one for group in groups if group is not None for one in group.fsdp_params]
    unsharded = [getattr(one, "_unsharded_param", None) for one in held]
    return any(one.unsharded_accumulated_grad is not None for one in held) or any(
        parameter is not None and parameter.grad is not None for parameter in unsharded
    )


def _updated(optimizer: Optimizer) -> list[Tensor]:
    """The tensors of an optimizer in the order in which it counts them."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def _spread_tensors(value: Any) -> Iterator[DTensor]:
    if isinstance(value, DTensor):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _spread_tensors(item)


def _spread_like(value: Any, like: Any, spread: Callable[[Any, Any], Any]) -> Any:
    """The value, its tensors spread as those at the same places in ``like``."""
    if isinstance(value, Mapping) and isinstance(like, Mapping):
        return {key: _spread_like(item, like.get(key), spread) for key, item in value.items()}
    if isinstance(value, list | tuple) and isinstance(like, list | tuple) and len(value) == len(like):
        return type(value)(_spread_like(item, other, spread) for item, other in zip(value, like, strict=True))
    return spread(value, like)


def _spread(value: Any, like: Any) -> Any:
    """A whole tensor spread as ``like`` of the same shape; other values unchanged."""
    if not isinstance(value, Tensor) or not isinstance(like, DTensor) or value.shape != like.shape:
        return value
    # Every process has read the whole tensor, so nothing is sent.
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)


def _give_rows(value: Any, like: Any) -> Any:
    """As `_spread`, of a value that holds only this process's rows."""
    if not isinstance(value, Tensor) or not isinstance(like, DTensor) or value.shape != like.to_local().shape:
        return value
    local = value.to(like.to_local().device)
    return DTensor.from_local(local, like.device_mesh, like.placements, shape=like.shape, stride=like.stride())
