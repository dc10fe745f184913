"""Exact training in the user's own loop beside the same loop in eager torch; receipts beside replays without them."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

from lab.benchmarks.figure import Figure
from lab.benchmarks.training_steps import Workload, gpt, interleaved, resnet
from pol.commitments.keccak import keccak256
from pol.commitments.receipt import receipt_nodes
from pol.graph.node import Source
from pol.graph.step_program import StepProgram
from pol.graph.work_estimate import node_work

if TYPE_CHECKING:
    from torch import Tensor

STEPS = 1000
"""Of the training for which a step is made; far more than are measured."""
INTERVAL = 50
"""Steps of a segment whose replay has a receipt."""
DRAWS = 500
"""Receipts that are drawn to see what they depend on."""


def perceptron(batch: int = 256) -> Workload:
    """A perceptron of digits, Adam."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    dataset = (torch.randn(2 * batch, 784), torch.randint(0, 10, (2 * batch,)))
    return Workload(model, nn.functional.cross_entropy, optimizer, dataset, torch.arange(2 * batch).reshape(2, batch))


WORKLOADS: dict[str, Callable[[], Workload]] = {"gpt": gpt, "resnet": resnet, "mlp": perceptron}


def exact_figures() -> dict[str, Figure]:
    """Whole steps of the loop, from the batch in torch's tensors to the next weights in them."""
    figures: dict[str, Figure] = {}
    for name, make in WORKLOADS.items():
        for threads, suffix in ((1, ""), (2, "_two_threads")):
            ours, peer = interleaved(_exact_step(make(), threads), make().eager_step(), threads)
            peer_name = f"eager torch, threads: {threads}"
            figures[f"exact_{name}_step_ratio{suffix}"] = Figure(ours * 1e3, "ms", peer_name, ours / peer)
    worst = max(
        (figure for name, figure in figures.items() if not name.endswith("threads")), key=lambda f: f.ratio or 0
    )
    return {"exact_step_ratio": worst, **figures, **receipt_figures()}


def loop_figures() -> dict[str, Figure]:
    """The user's own lines around an exact step beside the step alone, which nobody's tensors see; two threads."""
    from pol import exact
    from pol.execution.cpu import CpuExecutor

    figures = {}
    for name, make in WORKLOADS.items():
        workload = make()
        captured = workload.captured()
        executor = CpuExecutor(captured.program, captured.constants, 2)
        inputs, targets = (tensor[workload.order[0]] for tensor in workload.dataset)
        own = workload.model, workload.loss, workload.optimizer
        with exact(*own, steps=STEPS, threads=2, check=False).own_loop() as loss:
            ours, alone = interleaved(
                functools.partial(_own_lines, workload, loss, inputs, targets),
                functools.partial(executor.advance, captured.state, 0),
                2,
            )
        figures[f"exact_loop_ratio_{name}"] = Figure(ours * 1e3, "ms", "the step alone, threads: 2", ours / alone)
    return {"exact_loop_ratio": max(figures.values(), key=lambda figure: figure.ratio or 0), **figures}


def _own_lines(workload: Workload, loss: Callable[..., Tensor], inputs: Tensor, targets: Tensor) -> None:
    workload.optimizer.zero_grad()
    loss(workload.model(inputs), targets).backward()  # type: ignore[no-untyped-call]  # torch declares no types
    workload.optimizer.step()


def receipt_figures() -> dict[str, Figure]:
    """What a receipt adds to the replay of a segment, as a share of it: all of it is in the last step."""
    figures: dict[str, Figure] = {}
    needed: dict[str, Figure] = {}
    for name, make in WORKLOADS.items():
        claimed, replayed = interleaved(*_last_steps(make()), 2)
        share = (claimed - replayed) / (INTERVAL * replayed)
        figures[f"receipt_overhead_{name}"] = Figure(share, f"of a replay of {INTERVAL} steps")
        needed[f"receipt_work_{name}"] = Figure(work_behind_receipts(make().captured().program), "of a step's work")
    return {"receipt_overhead": max(figures.values(), key=lambda figure: figure.value), **figures, **needed}


def work_behind_receipts(program: StepProgram) -> float:
    """The share of a step's work that the drawn nodes of a receipt depend on, on average."""
    behind: list[frozenset[int]] = []
    for number, node in enumerate(program.nodes):
        direct = [operand.index for operand in node.operands if operand.source is Source.NODE]
        behind.append(frozenset({number}.union(*(behind[index] for index in direct))))
    work = [node_work(node) for node in program.nodes]
    shares = []
    for number in range(DRAWS):
        drawn = receipt_nodes(keccak256(b"receipt %d" % number), len(work))
        shares.append(sum(work[index] for index in set[int]().union(*(behind[node] for node in drawn))) / sum(work))
    return statistics.fmean(shares)


def _last_steps(workload: Workload) -> tuple[Callable[[], object], Callable[[], object]]:
    """The last step of a replay with a receipt, and without one."""
    from pol.execution.cpu import CpuExecutor
    from pol.verification.verdict.segment_verification import execute_with_receipt

    captured = workload.captured()
    program, state = captured.program, captured.state
    plain, seed = CpuExecutor(program, captured.constants, threads=2), keccak256(b"receipt")
    observing = plain.observing(receipt_nodes(seed, len(program.nodes)))
    return (lambda: execute_with_receipt(program, observing, state, 0, seed), lambda: plain.advance(state, 0))


def _exact_step(workload: Workload, threads: int) -> Callable[[], object]:
    from pol import exact

    inputs, targets = (tensor[workload.order[0]] for tensor in workload.dataset)
    step = exact(workload.model, workload.loss, workload.optimizer, steps=STEPS, threads=threads, check=False)
    return lambda: step(inputs, targets)
