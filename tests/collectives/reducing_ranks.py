"""What each process does in the tests of reductions: arrays in, results as bytes out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from pol.collectives import CollectiveQueue, integer_all_reduce, ordered_all_reduce, ordered_reduce_scatter
from pol.collectives.integer_reduction import Transport
from pol.collectives.rank_order import ORDERS

SIZES = (0, 1, 2, 3, 7, 64, 4097)


def values(rank: int, size: int, finite: bool = False) -> NDArray[np.float32]:
    """Any patterns of binary32, subnormal numbers, infinities and NaNs among them; or finite numbers only."""
    random = np.random.default_rng([rank, size])
    words = random.integers(0, 2**32, size, dtype=np.uint32)
    if finite:
        # Magnitudes from 2^-133 to 2^24, so that chunks and their exponents differ.
        return (random.standard_normal(size) * 2.0 ** random.integers(-130, 22, size)).astype(np.float32)
    plain = random.standard_normal(size).astype(np.float32).view(np.uint32)
    return np.where(random.random(size) < 0.3, words, plain).view(np.float32)


def mine(size: int, finite: bool = False) -> Tensor:
    return torch.from_numpy(values(dist.get_rank(), size, finite).copy())


def data(tensor: Tensor) -> bytes:
    if tensor.dtype != torch.float32:
        tensor = tensor.view(torch.int16)
    return tensor.contiguous().numpy().tobytes()


def ordered_results() -> dict[tuple[Any, ...], bytes]:
    """By case the bytes that this process has in the end."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    backwards = list(range(ranks))[::-1]
    found: dict[tuple[Any, ...], bytes] = {}
    for size in SIZES:
        for order in ORDERS:
            for roster in (None, backwards):
                tensor = mine(size)
                ordered_all_reduce(tensor, order=order, roster=roster)
                found["sum", size, order, roster is None] = data(tensor)
            tensor = mine(size)
            sent = ordered_all_reduce(tensor, "mean", order=order)
            assert sent == (ranks - 1) * (104 + 2 * 4 * -(-size // ranks))
            found["mean", size, order, True] = data(tensor)
        whole = torch.cat([mine(size)] * ranks)
        part = torch.empty(size)
        ordered_reduce_scatter(part, whole, "mean")
        assert data(part) == found["mean", size, "ascending", True]
    for kind in (torch.bfloat16, torch.float16):
        tensor = mine(4097).to(kind)
        ordered_all_reduce(tensor, "mean")
        found["mean", kind, rank] = data(tensor)
    return found


def splits() -> dict[str, bytes]:
    """The same elements in one message, in many, in several tensors, by strides, beside computation."""
    whole = mine(4097)
    ordered_all_reduce(whole, "mean")
    found = {"whole": data(whole)}

    pieces = mine(4097)
    for piece in pieces.split(1000):
        ordered_all_reduce(piece, "mean", check=False)
    found["pieces"] = data(pieces)

    several = list(mine(4097).split([1, 0, 2047, 2049]))
    ordered_all_reduce(several, "mean")
    found["several"] = data(torch.cat(several))

    strided = torch.zeros(4097, 3)
    strided[:, 1] = mine(4097)
    ordered_all_reduce(strided[:, 1], "mean")
    assert not strided[:, ::2].any()
    found["strided"] = data(strided[:, 1])

    parameter = torch.nn.Parameter(mine(4097))
    ordered_all_reduce(parameter, "mean")
    found["parameter"] = data(parameter.detach())

    queue = CollectiveQueue()
    queued = list(mine(4097).split(100))
    jobs = [queue.submit(lambda part=part: ordered_all_reduce(part, "mean", group=queue.group)) for part in queued]
    ordinary = torch.ones(1000)
    dist.all_reduce(ordinary)  # over another group, meanwhile
    for job in jobs:
        job.wait()
    queue.close()
    assert ordinary.tolist() == [dist.get_world_size()] * 1000
    found["queue"] = data(torch.cat(queued))
    return found


TRANSPORTS: tuple[Transport, ...] = ("slices", "all_reduce")


def integer_results(bits: int) -> dict[tuple[Any, ...], bytes]:
    """By case the bytes that this process has in the end, and its rests."""
    found: dict[tuple[Any, ...], bytes] = {}
    for transport in TRANSPORTS:
        for size in SIZES:
            for operation in ("sum", "mean"):
                tensor = mine(size, finite=True)
                integer_all_reduce(tensor, operation, bits=bits, transport=transport)
                found[transport, operation, size] = data(tensor)
        tensor = mine(4097)  # with infinities and NaNs
        integer_all_reduce(tensor, bits=bits, transport=transport)
        found[transport, "poisoned"] = data(tensor)

        several = [mine(4097, finite=True), mine(64, finite=True).view(8, 8).t(), mine(0)]
        integer_all_reduce(several, bits=bits, transport=transport)
        found[transport, "several"] = data(several[0]) + data(several[1].t())

        rests = torch.zeros(4097)
        for _ in range(3):
            tensor = mine(4097, finite=True)
            integer_all_reduce(tensor, bits=bits, residuals=rests, transport=transport)
        found[transport, "fed back"] = data(tensor)
        found[transport, "rests"] = data(rests)
    return found


def bytes_sent(sizes: Sequence[int], bits: int) -> int:
    tensors = [mine(size, finite=True) for size in sizes]
    return integer_all_reduce(tensors, bits=bits)
