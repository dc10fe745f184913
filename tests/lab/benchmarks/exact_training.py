"""Exact training in the user's own loop beside the same loop in eager torch."""

from __future__ import annotations

from collections.abc import Callable

from lab.benchmarks.figure import Figure
from lab.benchmarks.training_steps import Workload, gpt, interleaved, resnet

STEPS = 1000
"""Of the training for which a step is made; far more than are measured."""


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
    return {"exact_step_ratio": worst, **figures}


def _exact_step(workload: Workload, threads: int) -> Callable[[], object]:
    from pol import exact

    inputs, targets = (tensor[workload.order[0]] for tensor in workload.dataset)
    step = exact(workload.model, workload.loss, workload.optimizer, steps=STEPS, threads=threads, check=False)
    return lambda: step(inputs, targets)
