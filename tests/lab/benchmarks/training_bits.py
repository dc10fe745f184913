"""Trainings of small models by every executor of this machine: the same bytes after every step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from instruction_sets import held
from lab.benchmarks.measured_models import GPT, GPTSize, next_token_loss
from pol.arithmetic.primitives import Words
from pol.execution import _kernels
from pol.execution.cpu import CpuExecutor
from pol.execution.operand_sources import Sources
from pol.execution.reference import evaluate_node
from pol.graph.capture import Capture, capture
from pol.graph.node import Node

DROPOUT = 0.1
_EXAMPLES, _BATCH = 256, 8


def mlp(steps: int) -> Capture:
    """Two layers, AdamW and dropout, on drawn numbers."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Dropout(DROPOUT), nn.Linear(48, 10))
    return _captured(model, functional.cross_entropy, (torch.randn(_EXAMPLES, 24), _labels(10)), steps)


def cnn(steps: int) -> Capture:
    """Two convolutions with batch normalisation and pooling, AdamW and dropout, on drawn images."""
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(DROPOUT),
        nn.Linear(12 * 2 * 2, 10),
    )
    return _captured(model, functional.cross_entropy, (torch.randn(_EXAMPLES, 3, 16, 16), _labels(10)), steps)


def gpt(steps: int) -> Capture:
    """Two blocks, AdamW and dropout, on drawn tokens."""
    torch.manual_seed(3)
    size = GPTSize(vocabulary=65, block=16, layers=2, heads=2, width=32, dropout=DROPOUT)
    tokens = torch.randint(0, size.vocabulary, (_EXAMPLES, size.block + 1))
    data = (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
    return _captured(GPT(size), next_token_loss, data, steps)


MODELS: Mapping[str, Callable[[int], Capture]] = {"mlp": mlp, "cnn": cnn, "gpt": gpt}


def _labels(classes: int) -> Tensor:
    return torch.randint(0, classes, (_EXAMPLES,))


def _captured(model: nn.Module, loss: Callable[..., Tensor], data: Sequence[Tensor], steps: int) -> Capture:
    order = torch.randint(0, _EXAMPLES, (steps, _BATCH))
    return capture(model, loss, torch.optim.AdamW(model.parameters(), lr=2e-3), data, order)


@dataclass(frozen=True)
class Comparison:
    """Bytes of state that were compared between executors, over all steps, and how many of them differ."""

    compared: int
    differing: int


def compare(captured: Capture, steps: int, threads: Sequence[int] = (1, 2)) -> Comparison:
    """Trains with every instruction set of this machine at every number of threads, and compares all states."""
    program, constants = captured.program, captured.constants
    executors: list[tuple[str, CpuExecutor]] = []
    for isa in _kernels.isas():
        with held(isa):
            executors += [(isa, CpuExecutor(program, constants, count)) for count in threads]
    states: list[Sequence[Words]] = [captured.state] * len(executors)
    compared = differing = 0
    for step in range(steps):
        for i, (isa, executor) in enumerate(executors):
            with held(isa):
                states[i], _ = executor.advance(states[i], step)
        for state in states[1:]:
            for ours, theirs in zip(states[0], state, strict=True):
                compared += ours.nbytes
                differing += int(np.count_nonzero(ours != theirs)) * ours.itemsize
    return Comparison(compared, differing)


def compare_with_reference(captured: Capture, step: int, most_work: int = 200_000) -> Comparison:
    """Evaluates sampled nodes of every kind (operation and part of it) of one step with the reference.

    Of each kind the smallest node is taken, unless even that has more than `most_work` elements times terms.
    """
    program = captured.program
    outputs = CpuExecutor(program, captured.constants).run(captured.state, step)
    chosen: dict[str, int] = {}
    for i, node in enumerate(program.nodes):
        kind = f"{captured.names.nodes[i].operation} {bool(node.fold)}"
        best = program.nodes[chosen[kind]] if kind in chosen else None
        if _work(node) <= most_work and (best is None or _work(node) < _work(best)):
            chosen[kind] = i
    sources = Sources(captured.state, captured.constants, outputs)
    compared = differing = 0
    for i in chosen.values():
        expected = evaluate_node(program.nodes[i], step, sources)
        compared += expected.nbytes
        differing += int(np.count_nonzero(expected != outputs[i])) * expected.itemsize
    return Comparison(compared, differing)


def _work(node: Node) -> int:
    return node.type.numel * node.terms
