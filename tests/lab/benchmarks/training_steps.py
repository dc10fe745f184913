"""Whole training steps: the canonical replay beside eager torch, and the hashing of a step's trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.benchmarks.figure import Figure, side_by_side, torch_threads

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from pol.graph.capture import Capture

ROUNDS = 5
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Workload:
    """A training that is captured and also run in eager torch, from equal weights on equal batches."""

    model: nn.Module
    loss: Callable[[Tensor, Tensor], Tensor]
    optimizer: Optimizer
    dataset: tuple[Tensor, Tensor]
    order: Tensor

    def captured(self, check: bool = False) -> Capture:
        """The captured step; without the self-check, which is measured on its own."""
        from pol.graph.capture import capture

        return capture(self.model, self.loss, self.optimizer, self.dataset, self.order, check=check)

    def eager_step(self, model: Callable[[Tensor], Tensor] | None = None) -> Callable[[], None]:
        """One step of the loop that everybody writes."""
        inputs, targets = (tensor[self.order[0]] for tensor in self.dataset)
        forward = self.model if model is None else model

        def step() -> None:
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(forward(inputs), targets).backward()  # type: ignore[no-untyped-call]  # torch declares no types
            self.optimizer.step()

        return step


def gpt(
    layers: int = 6,
    width: int = 384,
    heads: int = 6,
    tokens: int = 256,
    batch: int = 8,
    vocabulary: int = 65,
    joint_bias: bool = True,
) -> Workload:
    """A GPT with AdamW in its fastest form; without dropout torch takes its fused attention."""
    import torch

    from lab.benchmarks.measured_models import GPT, GPTSize, next_token_loss

    torch.manual_seed(0)
    model = GPT(
        GPTSize(vocabulary=vocabulary, block=tokens, layers=layers, heads=heads, width=width, joint_bias=joint_bias)
    )
    texts = torch.randint(0, vocabulary, (2 * batch, tokens + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    order = torch.arange(2 * batch).reshape(2, batch)
    return Workload(model, next_token_loss, optimizer, (texts[:, :-1].contiguous(), texts[:, 1:].contiguous()), order)


def resnet(batch: int = 32) -> Workload:
    """ResNet-18 for images of 32 x 32, SGD with momentum."""
    import torch

    from lab.benchmarks.measured_models import ResNet18

    torch.manual_seed(0)
    model = ResNet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    dataset = (torch.randn(2 * batch, 3, 32, 32), torch.randint(0, 10, (2 * batch,)))
    return Workload(
        model, torch.nn.functional.cross_entropy, optimizer, dataset, torch.arange(2 * batch).reshape(2, batch)
    )


def step_figures() -> dict[str, Figure]:
    """Canonical steps beside eager ones on one thread and on two, beside a compiled one, and the hashing of a trace."""
    captured = gpt().captured()
    return {
        **_beside_eager("gpt", gpt, captured),
        **_beside_compiled(captured),
        **_trace_figures(captured),
        **_beside_eager("resnet", resnet, resnet().captured()),
    }


def _beside_eager(name: str, make: Callable[[], Workload], captured: Capture) -> dict[str, Figure]:
    figures = {}
    for threads, suffix in ((1, ""), (2, "_two_threads")):
        replay, peer = interleaved(_replay(captured, threads), make().eager_step(), threads)
        figures[f"{name}_step_ratio{suffix}"] = Figure(
            replay * 1e3, "ms", f"eager torch, threads: {threads}", replay / peer
        )
    return figures


def _beside_compiled(captured: Capture) -> dict[str, Figure]:
    """Beside torch.compile, which needs a C++ compiler."""
    import torch

    workload = gpt()
    replay, peer = interleaved(_replay(captured, 1), workload.eager_step(torch.compile(workload.model)), 1)
    return {"gpt_step_compiled_ratio": Figure(replay * 1e3, "ms", "torch.compile, threads: 1", replay / peer)}


def _trace_figures(captured: Capture) -> dict[str, Figure]:
    from pol.commitments.tensor import ListTag, list_root, tensor_roots
    from pol.execution.cpu import CpuExecutor

    outputs = CpuExecutor(captured.program, captured.constants, 2).run(captured.state, 0)
    types = [node.type for node in captured.program.nodes]
    step, hashing = interleaved(_replay(captured, 2), lambda: list_root(ListTag.TRACE, tensor_roots(types, outputs)), 2)
    size = sum(words.nbytes for words in outputs) / MEGABYTE
    return {
        "trace_ratio": Figure(hashing * 1e3, "ms", "the step itself, threads: 2", hashing / step),
        "trace_size": Figure(size, "MiB"),
    }


def _replay(captured: Capture, threads: int) -> Callable[[], object]:
    from pol.execution.cpu import CpuExecutor

    executor = CpuExecutor(captured.program, captured.constants, threads)
    return lambda: executor.advance(captured.state, 0)


def interleaved(ours: Callable[[], object], peer: Callable[[], object], threads: int) -> tuple[float, float]:
    """Median seconds of both, called in turn; of one thread its own time, of several the wall clock's."""
    with torch_threads(threads):
        return side_by_side(ours, peer, ROUNDS, time.thread_time if threads == 1 else time.perf_counter, warm=2)
