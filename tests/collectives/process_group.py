"""Processes that form a gloo group on loopback, each of which runs one function."""

import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from forked_programs import PROCESSES


def run_ranks(folder: Path, count: int, function: Callable[..., object], *arguments: object) -> list[Any]:
    """What the function returns in each process of a group, by rank. AssertionError with its traceback: it failed."""
    pipes = [PROCESSES.Pipe(duplex=False) for _ in range(count)]
    meet = f"file://{folder}/meet-{function.__name__}-{count}-{len(list(folder.iterdir()))}"
    processes = [
        PROCESSES.Process(target=_rank, args=(sender, meet, rank, count, function, arguments))
        for rank, (_, sender) in enumerate(pipes)
    ]
    for process, (_, sender) in zip(processes, pipes, strict=True):
        process.start()
        sender.close()
    found = [_received(receiver) for receiver, _ in pipes]
    for process in processes:
        process.join()
    failures = [f"process {rank}:\n{said}" for rank, (ok, said) in enumerate(found) if not ok]
    failures += [f"process {rank} ended with {p.exitcode}" for rank, p in enumerate(processes) if p.exitcode]
    assert not failures, "\n".join(failures)
    return [value for _, value in found]


def _received(receiver: Connection) -> tuple[bool, Any]:
    try:
        return receiver.recv()
    except EOFError:
        return True, None  # the function has ended its process


def _rank(
    sender: Connection, meet: str, rank: int, count: int, function: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=count, timeout=timedelta(seconds=900))
    try:
        sender.send((True, function(*arguments)))
    except Exception:
        sender.send((False, traceback.format_exc()))
        raise  # the others see that this process has ended
    dist.destroy_process_group()
