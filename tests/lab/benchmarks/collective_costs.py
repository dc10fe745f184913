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

from lab.benchmarks.figure import Figure

ELEMENTS = 1 << 22
"""16 MiB of float32."""
ROUNDS = 15
COUNTS = (2, 4)
PEER = "all_reduce of gloo, 16 MiB"
SPAWN = multiprocessing.get_context("spawn")


def collective_figures(elements: int = ELEMENTS, rounds: int = ROUNDS) -> dict[str, Figure]:
    """Ratios of time with processes of one thread each on this machine, and of bytes sent by each of four."""
    figures = {}
    for count in COUNTS:
        seconds, sent = _measured(count, elements, rounds)
        peer = seconds.pop("gloo")
        figures[f"gloo_all_reduce_{count}"] = Figure(peer * 1e3, "ms, 16 MiB")
        for name, ours in seconds.items():
            figures[f"{name}_all_reduce_ratio_{count}"] = Figure(ours / peer, "times", PEER, ours / peer)
    ring = 2 * 4 * elements * (COUNTS[-1] - 1) // COUNTS[-1]
    for name, number in sent.items():
        figures[f"{name}_bytes_ratio"] = Figure(number / ring, "times", "a ring, 4 bytes an element", number / ring)
    return figures


def _measured(count: int, elements: int, rounds: int) -> tuple[dict[str, float], dict[str, int]]:
    """Median seconds and bytes sent, by collective, of the first process."""
    with tempfile.TemporaryDirectory() as folder:
        receiver, sender = SPAWN.Pipe(duplex=False)
        processes = [
            SPAWN.Process(target=_rank, args=(sender, folder, rank, count, elements, rounds)) for rank in range(count)
        ]
        for process in processes:
            process.start()
        sender.close()
        found: tuple[dict[str, float], dict[str, int]] = receiver.recv()
        for process in processes:
            process.join()
    return found


def _rank(sender: Connection, folder: str, rank: int, count: int, elements: int, rounds: int) -> None:
    import torch
    import torch.distributed as dist

    from pol.collectives import integer_all_reduce, ordered_all_reduce

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meet = Path(folder, "meet").as_uri()
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=count, timeout=timedelta(seconds=120))
    tensor = torch.randn(elements, generator=torch.Generator().manual_seed(rank))
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
    if rank == 0:
        sender.send(({name: statistics.median(times) for name, times in seconds.items()}, sent))
    dist.destroy_process_group()
