"""Exact local steps and ordered averages of the weights: nothing of the training is torch's arithmetic."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from numpy_collectives import ordered
from process_group import run_ranks
from torch import nn

import pol
from pol.collectives import ordered_all_reduce
from pol.training.exact.exact_step import ExactStep

ROUNDS, STEPS, COUNT = 2, 3, 3


def worker(rank: int, threads: int) -> tuple[nn.Module, ExactStep]:
    with pol.TaskRandomness(7).initialization():
        model = nn.Sequential(nn.Linear(6, 17), nn.GELU(), nn.Linear(17, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return model, pol.exact(
        model, nn.functional.cross_entropy, optimizer, steps=ROUNDS * STEPS, seed=rank, threads=threads
    )


def local_steps(step: ExactStep, rank: int, number: int) -> None:
    for place in range(number * STEPS, number * STEPS + STEPS):
        generator = torch.Generator().manual_seed(100 * rank + place)
        words = torch.randint(-8, 9, (10, 6), generator=generator)
        step(words / 8, words.sum(1) % 3)


def weights(model: nn.Module) -> list[bytes]:
    return [parameter.detach().numpy().tobytes() for parameter in model.parameters()]


def trained() -> list[bytes]:
    """Each process has another number of threads."""
    rank = dist.get_rank()
    model, step = worker(rank, threads=rank + 1)
    for number in range(ROUNDS):
        local_steps(step, rank, number)
        ordered_all_reduce(list(model.parameters()), "mean")
    return weights(model)


@pytest.mark.long
def test_processes_are_one_process_that_takes_turns(tmp_path: Path) -> None:
    workers = [worker(rank, threads=1) for rank in range(COUNT)]
    for number in range(ROUNDS):
        for rank, (_, step) in enumerate(workers):
            local_steps(step, rank, number)
        for copies in zip(*(model.parameters() for model, _ in workers), strict=True):
            mean = torch.from_numpy(ordered([copy.detach().numpy() for copy in copies], "mean"))
            for copy in copies:
                copy.detach().copy_(mean)
    expected = weights(workers[0][0])
    assert run_ranks(tmp_path, COUNT, trained) == [expected] * COUNT
