"""Whole training steps: the canonical replay beside eager torch, and the hashing of a step's trace.

Exact training in the user's own loop beside the same loop in eager torch; receipts beside replays without them; and a
GPT with products of int8 beside the same with products of float32.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import pol
from lab.benchmarks.figure import ROOT, Figure, side_by_side, torch_threads
from lab.benchmarks.measured_models import GPT, GPTSize, next_token_loss
from pol.commitments.keccak import keccak256
from pol.commitments.receipt import receipt_nodes
from pol.graph.node import Source
from pol.graph.step_program import StepProgram
from pol.graph.work_estimate import node_work
from pol.training.exact.int8_linear import with_int8_products

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


SIZE = GPTSize(vocabulary=128, block=64, layers=2, heads=4, width=128)
INT8_STEPS, BATCH, LAST = 400, 16, 50
"""Steps of a training, texts of a step, and the last steps over which losses are averaged."""


def int8_figures(steps: int = INT8_STEPS) -> dict[str, Figure]:
    """The mean loss of the last steps, and the time of all, beside those of float32."""
    floats, float_seconds = trained(steps, is_int8=False)
    integers, int8_seconds = trained(steps, is_int8=True)
    return {
        "int8_gpt_loss": _beside(_mean(integers), _mean(floats), "nats"),
        "int8_gpt_seconds": _beside(int8_seconds, float_seconds, "s"),
    }


def trained(steps: int, is_int8: bool) -> tuple[list[float], float]:
    """The loss of every step, and the seconds of all without the capture."""
    text = _text()
    draws = torch.Generator().manual_seed(1)
    with pol.TaskRandomness(2).initialization():
        model = GPT(SIZE)
    if is_int8:
        with_int8_products(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = pol.exact(model, next_token_loss, optimizer, pol.Loop(clip_norm=1.0), steps=steps)
    losses: list[float] = []
    began = time.perf_counter()
    for number in range(steps):
        starts = torch.randint(0, len(text) - SIZE.block - 1, (BATCH,), generator=draws)
        rows = torch.stack([text[start : start + SIZE.block + 1] for start in starts])
        losses.append(float(step(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())))
        if number == 0:
            began = time.perf_counter()
    return losses, time.perf_counter() - began


def _text() -> Tensor:
    """The guides and the specification, in ASCII."""
    pages = sorted([*(ROOT / "docs/guides").glob("*.md"), *(ROOT / "docs/spec").glob("*.md")])
    content = "".join(page.read_text() for page in pages).encode("ascii", "replace")
    return torch.tensor(list(content))


def _mean(losses: Sequence[float]) -> float:
    last = losses[-LAST:]
    return sum(last) / len(last)


def _beside(ours: float, peer: float, unit: str) -> Figure:
    return Figure(ours, unit, "products of float32", ours / peer)
