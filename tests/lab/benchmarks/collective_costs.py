"""Collectives with a defined order beside gloo's own all-reduce: time, and bytes that a process sends."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lab.benchmarks.figure import Figure

if TYPE_CHECKING:
    from torch import Tensor

ELEMENTS = 1 << 22
"""16 MiB of float32."""
ROUNDS = 15
COUNTS = (2, 4)
PEER = "all_reduce of gloo, 16 MiB"
T = TypeVar("T")
SPAWN = multiprocessing.get_context("spawn")


def collective_figures(elements: int = ELEMENTS, rounds: int = ROUNDS) -> dict[str, Figure]:
    """Ratios of time with processes of one thread each on this machine, and of bytes sent by each of four."""
    figures = {}
    for count in COUNTS:
        seconds, sent = _run(count, _costs, elements, rounds)
        peer = seconds.pop("gloo")
        figures[f"gloo_all_reduce_{count}"] = Figure(peer * 1e3, "ms, 16 MiB")
        for name, ours in seconds.items():
            figures[f"{name}_all_reduce_ratio_{count}"] = Figure(ours / peer, "times", PEER, ours / peer)
    ring = 2 * 4 * elements * (COUNTS[-1] - 1) // COUNTS[-1]
    for name, number in sent.items():
        figures[f"{name}_bytes_ratio"] = Figure(number / ring, "times", "a ring, 4 bytes an element", number / ring)
    for name, share in _run(3, _changed_elements).items():
        figures[f"{name}_elements_changed"] = Figure(share, "of the elements, if a message is cut in two")
    return figures


def _run(count: int, function: Callable[..., T], *arguments: int) -> T:
    """What the function returns on the first of some processes."""
    with tempfile.TemporaryDirectory() as folder:
        receiver, sender = SPAWN.Pipe(duplex=False)
        processes = [
            SPAWN.Process(target=_rank, args=(sender, folder, rank, count, function, arguments))
            for rank in range(count)
        ]
        for process in processes:
            process.start()
        sender.close()
        found: T = receiver.recv()
        for process in processes:
            process.join()
    return found


def _rank(
    sender: Connection,
    folder: str,
    rank: int,
    count: int,
    function: Callable[..., object],
    arguments: tuple[int, ...],
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meet = Path(folder, "meet").as_uri()
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=count, timeout=timedelta(seconds=120))
    found = function(*arguments)
    if rank == 0:
        sender.send(found)
    dist.destroy_process_group()


def _costs(elements: int, rounds: int) -> tuple[dict[str, float], dict[str, int]]:
    """By collective the median seconds, and the bytes sent; the calls take turns."""
    import torch
    import torch.distributed as dist

    from pol.collectives import integer_all_reduce, ordered_all_reduce

    tensor = torch.empty(elements)
    calls: dict[str, Callable[[], object]] = {
        "gloo": lambda: dist.all_reduce(tensor),
        "ordered": lambda: ordered_all_reduce(tensor, "mean"),
        "integer": lambda: integer_all_reduce(tensor, "mean"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    sent = {}
    for _ in range(rounds):
        for name, call in calls.items():
            tensor.uniform_(-1, 1)
            dist.barrier()
            began = time.perf_counter()
            found = call()
            seconds[name].append(time.perf_counter() - began)
            if isinstance(found, int):
                sent[name] = found
    return {name: statistics.median(times) for name, times in seconds.items()}, sent


def _changed_elements() -> dict[str, float]:
    """By collective the share of elements that a cut of the message changes."""
    import torch
    import torch.distributed as dist

    from pol.collectives import integer_all_reduce, ordered_all_reduce

    calls: dict[str, Callable[[Tensor], object]] = {
        "gloo": dist.all_reduce,
        "ordered": ordered_all_reduce,
        "integer": integer_all_reduce,
    }
    values = torch.randn(1 << 18, generator=torch.Generator().manual_seed(dist.get_rank()))
    shares = {}
    for name, call in calls.items():
        whole, cut = values.clone(), values.clone()
        call(whole)
        for half in cut.view(2, -1):
            call(half)
        shares[name] = float((whole != cut).float().mean())
    return shares
