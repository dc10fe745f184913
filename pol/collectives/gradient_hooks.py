"""Averages of gradients in DistributedDataParallel: ``model.register_comm_hook(OrderedGradients(), ordered_hook)``.

A bucket is averaged while the backward pass goes on. Sizes and order of the buckets change no bit.
"""

# No `from __future__ import annotations`: torch compares the annotations of a hook with types.

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.futures import Future

from pol.collectives.agreement import agree
from pol.collectives.chunk_quantization import ChunkLayout, ChunkScales, largest, magnitudes
from pol.collectives.flat_tensors import flatten
from pol.collectives.ordered_reduction import ordered_all_reduce
from pol.collectives.rank_order import Operation, Order, settled
from pol.collectives.slice_exchange import SliceExchange
from pol.errors import ProtocolError

Transport = Literal["slices", "all_reduce"]


@torch.no_grad()
def integer_all_reduce(
    tensors: Tensor | Sequence[Tensor],
    operation: Operation = "mean",
    *,
    bits: int = 8,
    group: dist.ProcessGroup | None = None,
    residuals: Tensor | Sequence[Tensor] | None = None,
    transport: Transport = "slices",
    check: bool = True,
) -> int:
    """The sum or mean of the tensors as integers of ``bits`` bits, in place; returns the bytes that were sent.

    tensors: one, or several of one type; each is cut into chunks of its own. A chunk in which a process has an infinity
    or NaN becomes NaN on all. residuals: float32 of the same shapes, zeros at first; they are added before the
    rounding, and hold what it left out afterwards (error feedback), zeros where a chunk is NaN. transport: slices of
    the narrowest integers, which a process adds and all gather; or the backend's own sum of int32. Both give the same
    bits. check: as in `ordered_all_reduce`.

    Raises:
        ProtocolError: on all processes: they give different tensors or options, options that don't exist, sums that may
            not fit 32 bits, or residuals that don't fit the tensors.
        UnsupportedError: on all processes: another type of elements.
        OperationalError: the backend has failed.
    """
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    rests = [residuals] if isinstance(residuals, Tensor) else list(residuals or ())
    exchange = SliceExchange(group)
    agree(
        exchange,
        parts,
        collective="integer_all_reduce",
        operation=operation,
        bits=bits,
        transport=transport,
        residuals=rests,
        check=check,
    )
    layout = ChunkLayout([part.numel() for part in parts])
    chunks = layout.chunks(parts)
    if rests:
        chunks = chunks + layout.chunks(rests)
    greatest = magnitudes(chunks)
    exchange.maximum(greatest)
    scales = ChunkScales.of(greatest, bits)
    limit = largest(bits)
    integers = scales.quantize(chunks, narrowest(limit) if transport == "slices" else torch.int32)
    if rests:
        for rest, left in zip(rests, layout.pieces(scales.rest(chunks, integers)), strict=True):
            rest.copy_(left.view(rest.shape))
    if transport == "slices":
        sums = _added(exchange, flatten(layout.pieces(integers), exchange.ranks), narrowest(limit * exchange.ranks))
    else:
        sums = flatten(layout.pieces(integers), 1)
        exchange.add(sums)
    scales.restore(layout.spread(sums), operation, exchange.ranks, chunks)
    for part, piece in zip(parts, layout.pieces(chunks), strict=True):
        if part.data_ptr() != piece.data_ptr() or not part.is_contiguous():
            part.copy_(settled(piece, part.dtype).view(part.shape))
    return exchange.sent


def _added(exchange: SliceExchange, integers: Tensor, kind: torch.dtype) -> Tensor:
    """Sums of all processes' integers, in a type that holds them: each process adds a slice, and all gather."""
    first, *others = exchange.scatter(integers)
    total = first.to(kind)
    for row in others:
        total += row
    sums = total.new_empty(len(integers))
    exchange.gather(total, sums)
    return sums


def narrowest(limit: int) -> torch.dtype:
    """The narrowest type of integers that holds all from -limit to limit."""
    return next(kind for kind in (torch.int8, torch.int16, torch.int32) if limit <= torch.iinfo(kind).max)


T = TypeVar("T")


class CollectiveQueue:
    """Runs collectives over a process group of its own, which no other exchange can disturb.

    All processes of the group create it, and submit the same collectives in the same order. On processors a thread
    runs them; on GPUs a stream does, and nothing is copied to the host.

    group: whose processes take part; all if None.
    """

    def __init__(self, group: dist.ProcessGroup | None = None):
        ranks = dist.get_process_group_ranks(group)
        self.group: dist.ProcessGroup = dist.new_group(ranks, use_local_synchronization=True)
        """The queue's own group: give it to the collectives that are submitted."""
        self._thread = ThreadPoolExecutor(1, "collectives")
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def submit(self, collective: Callable[[], T], device: torch.device | str = "cpu") -> Future[T]:
        """The result of a call, later; ``wait()`` raises what the call has raised.

        collective: calls a collective with ``group=queue.group``. device: that of its tensors, which nobody may write
        to before the result is there.
        """
        device = torch.device(device)
        if device.type == "cuda":
            return self._on_stream(collective, device)
        future: Future[T] = Future()
        self._thread.submit(collective).add_done_callback(lambda done: _pass_on(done, future))
        return future

    def close(self) -> None:
        """Waits for what was submitted; no more is taken."""
        self._thread.shutdown()

    def _on_stream(self, collective: Callable[[], T], device: torch.device) -> Future[T]:
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch declares no types
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            future: Future[T] = Future(devices=[device])
            future.set_result(collective())  # who waits, waits for the stream
        return future


def _pass_on(done: ThreadFuture[T], future: Future[T]) -> None:
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)  # type: ignore[arg-type]  # torch declares the type of a result


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
