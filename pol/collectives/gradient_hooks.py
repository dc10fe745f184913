"""Averages of gradients in DistributedDataParallel: ``model.register_comm_hook(OrderedGradients(), ordered_hook)``.

A bucket is averaged while the backward pass goes on. Sizes and order of the buckets change no bit.
"""

# No `from __future__ import annotations`: torch compares the annotations of a hook with types.

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.futures import Future

from pol.collectives.collective_queue import CollectiveQueue
from pol.collectives.integer_reduction import Transport, integer_all_reduce
from pol.collectives.ordered_reduction import ordered_all_reduce
from pol.collectives.rank_order import Order
from pol.errors import ProtocolError


class OrderedGradients:
    """State of `ordered_hook`; all processes of the group create it. Options: those of `ordered_all_reduce`."""

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        *,
        order: Order = "ascending",
        roster: Sequence[int] | None = None,
        check: bool = True,
    ):
        self.queue = CollectiveQueue(group)
        self.order, self.roster, self.check = order, roster, check
        self.sent = 0
        """Bytes that this process has sent."""

    def average(self, bucket: Tensor) -> Tensor:
        """The mean of a bucket over all processes, in place."""
        self.sent += ordered_all_reduce(
            bucket, "mean", group=self.queue.group, order=self.order, roster=self.roster, check=self.check
        )
        return bucket


class IntegerGradients:
    """State of `integer_hook`; all processes of the group create it. Options: those of `integer_all_reduce`.

    feedback: what rounding has left out is added in the next step. Each process's own rest is then a part of the
    training's state: save it with ``state_dict()`` on every process, or name it to a DistributedRecorder in ``parts``
    and ``per_process``.
    """

    def __init__(
        self,
        model: nn.Module,
        group: dist.ProcessGroup | None = None,
        *,
        bits: int = 8,
        feedback: bool = False,
        transport: Transport = "slices",
        check: bool = True,
    ):
        self.queue = CollectiveQueue(group)
        self.bits, self.transport, self.check = bits, transport, check
        self._parameters = dict(model.named_parameters())
        self._rests: dict[Tensor, Tensor] | None = {} if feedback else None
        self.sent = 0
        """Bytes that this process has sent."""

    def average(self, bucket: Tensor, gradients: Sequence[Tensor], parameters: Sequence[Tensor]) -> Tensor:
        """The mean of a bucket's gradients over all processes, in place. Chunks are those of each gradient."""
        rests = None if self._rests is None else [self._rest(parameter) for parameter in parameters]
        self.sent += integer_all_reduce(
            gradients,
            "mean",
            bits=self.bits,
            group=self.queue.group,
            residuals=rests,
            transport=self.transport,
            check=self.check,
        )
        return bucket

    def state_dict(self) -> dict[str, Tensor]:
        """By parameter what this process's rounding has left out so far."""
        rests = self._rests or {}
        return {name: rests[parameter] for name, parameter in self._parameters.items() if parameter in rests}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Takes the rests of a saved training. Raises ProtocolError: they are another model's, or feedback is off."""
        if self._rests is None:
            if state:
                raise ProtocolError("the saved training fed its rounding errors back: set feedback=True")
            return
        self._rests.clear()
        for name, rest in state.items():
            if name not in self._parameters or self._parameters[name].shape != rest.shape:
                raise ProtocolError(f"the rest of {name} fits no parameter of the model: load its own state")
            self._rest(self._parameters[name]).copy_(rest)

    def _rest(self, parameter: Tensor) -> Tensor:
        assert self._rests is not None
        if parameter not in self._rests:
            self._rests[parameter] = torch.zeros_like(parameter, dtype=torch.float32, requires_grad=False)
        return self._rests[parameter]


def ordered_hook(state: OrderedGradients, bucket: GradBucket) -> Future[Tensor]:
    """Averages a bucket in the order of the ranks."""
    buffer = bucket.buffer()
    return state.queue.submit(lambda: state.average(buffer), buffer.device)


def integer_hook(state: IntegerGradients, bucket: GradBucket) -> Future[Tensor]:
    """Averages a bucket through integers."""
    buffer, gradients, parameters = bucket.buffer(), bucket.gradients(), bucket.parameters()
    return state.queue.submit(lambda: state.average(buffer, gradients, parameters), buffer.device)
