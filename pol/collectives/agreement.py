"""All processes compare what they are about to reduce, so that a difference is an error on each and a hang on none."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pol.collectives.chunk_quantization import largest
from pol.collectives.rank_order import OPERATIONS, ORDERS
from pol.collectives.slice_exchange import SliceExchange
from pol.errors import ProtocolError, UnsupportedError

VERSION = 2
COLLECTIVES = ("ordered_all_reduce", "ordered_reduce_scatter", "integer_all_reduce")
TRANSPORTS = ("slices", "all_reduce")
TYPES = (torch.float32, torch.bfloat16, torch.float16)
BITS = range(3, 25)
RESIDUALS = ("fitting ones", "others")
SUBNORMALS = ("kept", "flushed to zero")
FIELDS = (
    "version",
    "collective",
    "type of the elements",
    "elements",
    "tensors",
    "digest of the tensors' sizes",
    "operation",
    "order",
    "bits",
    "transport",
    "digest of the roster",
    "residuals",
    "subnormal numbers",
)
"""What a header of int64 says, in this order; numbers of names count from 1, and 0 is none or an unknown one."""


def agree(
    exchange: SliceExchange,
    tensors: Sequence[Tensor],
    *,
    collective: str,
    operation: str,
    order: str = "",
    bits: int = 0,
    transport: str = "",
    roster: Sequence[int] | None = None,
    residuals: Sequence[Tensor] = (),
    check: bool = True,
) -> None:
    """Compares a header of 104 bytes with those of all processes, unless ``check`` is false.

    Raises, on all processes:
        ProtocolError: the processes give different tensors or options, or options that don't exist, or residuals that
            don't have the shapes of the tensors, or processors that flush subnormal numbers to zero.
        UnsupportedError: elements of a type that has no definition.
    """
    types = {tensor.dtype for tensor in tensors}
    sizes = [tensor.numel() for tensor in tensors]
    header = [
        VERSION,
        _number(collective, COLLECTIVES),
        _number(types.pop() if len(types) == 1 else None, TYPES),
        sum(sizes),
        len(sizes),
        _digest(sizes),
        _number(operation, OPERATIONS),
        _number(order, ORDERS),
        bits,
        _number(transport, TRANSPORTS),
        _digest(roster or range(exchange.ranks)),
        2 - ([rest.shape for rest in residuals] == [tensor.shape for tensor in tensors]) if residuals else 0,
        1 + (_flushes(1) or _pool_flushes(torch.get_num_threads())),
    ]
    if check:
        _compare(exchange, header, tensors)
    if not header[2]:
        raise UnsupportedError("only tensors of float32, bfloat16 or float16, all of one type, are reduced: convert")
    if not header[6] or (order and not header[7]) or (transport and not header[9]):
        known = f"{', '.join(OPERATIONS)}; {', '.join(ORDERS)}; {', '.join(TRANSPORTS)}"
        raise ProtocolError(f"no option {operation!r}, {order!r} or {transport!r}: there are {known}")
    if header[12] == 2:
        raise ProtocolError(
            "torch flushes subnormal numbers to zero in this process, and sums have other bits then: leave out "
            "torch.set_flush_denormal(True), which threads keep that were begun after it"
        )
    if roster is not None and sorted(roster) != list(range(exchange.ranks)):
        raise ProtocolError(
            f"the roster {list(roster)} doesn't name each of {exchange.ranks} ranks once: list them all"
        )
    if header[11] == 2:
        raise ProtocolError("the residuals don't have the shapes of the tensors: begin with torch.zeros_like")
    if bits and bits not in BITS:
        raise ProtocolError(f"{bits} bits: choose from {BITS[0]} to {BITS[-1]}")
    if bits and exchange.ranks * largest(bits) >= 1 << 31:
        raise ProtocolError(f"sums of {exchange.ranks} integers of {bits} bits may not fit 32 bits: choose fewer bits")


def _compare(exchange: SliceExchange, header: list[int], tensors: Sequence[Tensor]) -> None:
    device = torch.device("cpu")
    if "cpu:" not in dist.get_backend_config(exchange.group) and tensors:
        device = tensors[0].device
    headers = torch.empty(exchange.ranks, len(FIELDS), dtype=torch.int64, device=device)
    exchange.gather(torch.tensor(header, device=device), headers)
    first, *others = headers.tolist()
    for rank, other in enumerate(others, 1):
        for field, theirs, ours in zip(FIELDS, other, first, strict=True):
            if theirs != ours:
                raise ProtocolError(
                    f"{field}: process {rank} has {_named(field, theirs)}, process 0 {_named(field, ours)}: "
                    "give the same tensors and options to the same calls on all processes"
                )


_NAMES: dict[str, Sequence[object]] = {
    "collective": COLLECTIVES,
    "type of the elements": TYPES,
    "operation": OPERATIONS,
    "order": ORDERS,
    "transport": TRANSPORTS,
    "residuals": RESIDUALS,
    "subnormal numbers": SUBNORMALS,
}


def _flushes(count: int) -> bool:
    """Whether a thread that halves so many small numbers makes zeros of them."""
    return not bool(torch.full((count,), 2.0**-126).mul_(0.5).view(torch.int32).all())


@functools.cache
def _pool_flushes(threads: int) -> bool:
    """Whether one of torch's own threads does; they take their mode from the thread that begins them, and keep it."""
    return _flushes(threads << 15)


def _number(name: object, names: Sequence[object]) -> int:
    return names.index(name) + 1 if name in names else 0


def _named(field: str, number: int) -> str:
    names = _NAMES.get(field)
    if names is None:
        return f"{number:,}"
    return str(names[number - 1]) if 0 < number <= len(names) else "none or another"


def _digest(numbers: Sequence[int]) -> int:
    """The first eight bytes of a SHA-256, as an int64."""
    data = b"".join(number.to_bytes(8, "little") for number in numbers)
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little", signed=True)
