"""Whole training steps: the canonical replay beside eager torch, the hashing of a step's trace, and large captures."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lab.benchmarks.figure import ROOT, Figure
from pol.errors import OperationalError

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
    import torch

    clock = time.thread_time if threads == 1 else time.perf_counter
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        times: tuple[list[float], list[float]] = ([], [])
        for round_ in range(ROUNDS + 2):
            for call, seconds in zip((ours, peer), times, strict=True):
                began = clock()
                call()
                if round_ >= 2:
                    seconds.append(clock() - began)
        return statistics.median(times[0]), statistics.median(times[1])
    finally:
        torch.set_num_threads(before)


def capture_figures() -> dict[str, Figure]:
    """A GPT-2 of 124 million parameters: capture, program file, memory of a replayed step beside an eager one."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, nodes = _child("capture", folder)
        checked, most = _child("self_check", folder)
        program = Path(folder, "program.bin")
        load, replay = _child("replay", folder)
        _, eager = _child("eager", folder)
        return {
            "gpt2_capture": Figure(seconds, "s"),
            "gpt2_self_check": Figure(checked, "s", "a capture without it", checked / seconds),
            "gpt2_self_check_memory": Figure(most, "MiB"),
            "gpt2_nodes": Figure(nodes, "nodes"),
            "gpt2_program": Figure(program.stat().st_size / 1024, "kB"),
            "gpt2_load": Figure(load, "s"),
            "gpt2_replay_memory": Figure(replay, "MiB", "an eager step", replay / eager),
        }


def gpt2() -> Workload:
    """A GPT-2 of 124 million parameters on 512 tokens."""
    return gpt(layers=12, width=768, heads=12, tokens=512, batch=1, vocabulary=50257)


def _child(part: str, folder: str) -> tuple[float, float]:
    """Run a part in a process of its own, whose memory is then its own too."""
    command = [sys.executable, "-m", "lab.benchmarks.training_steps", part, folder]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OperationalError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    first, second = done.stdout.split()[-2:]
    return float(first), float(second)


def _capture_part(folder: Path) -> tuple[float, float]:
    workload = gpt2()
    began = time.monotonic()
    captured = workload.captured()
    seconds = time.monotonic() - began
    (folder / "program.bin").write_bytes(captured.program.to_bytes())
    for what, tensors in (("constants", captured.constants), ("state", captured.state)):
        for index, words in enumerate(tensors):
            np.save(folder / f"{what}.{index}.npy", words)
    return seconds, len(captured.program.nodes)


def _self_check_part(_folder: Path) -> tuple[float, float]:
    """Seconds of a capture with its self-check, and the most memory of the process in MiB."""
    workload = gpt2()
    began = time.monotonic()
    workload.captured(check=True)
    return time.monotonic() - began, _peak_memory()


def _replay_part(folder: Path) -> tuple[float, float]:
    from pol.execution.cpu import CpuExecutor
    from pol.graph.step_program import StepProgram

    began = time.monotonic()
    program = StepProgram.from_bytes((folder / "program.bin").read_bytes())
    seconds = time.monotonic() - began
    constants = [np.load(folder / f"constants.{index}.npy") for index in range(len(program.constants))]
    executor = CpuExecutor(program, constants, 0)
    state = [np.load(folder / f"state.{index}.npy") for index in range(len(program.slots))]
    for step in range(2):
        state, _ = executor.advance(state, step)
    return seconds, _peak_memory()


def _eager_part(_folder: Path) -> tuple[float, float]:
    step = gpt2().eager_step()
    for _ in range(2):
        step()
    return 0.0, _peak_memory()


def _peak_memory() -> float:
    """In MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    _PARTS = {"capture": _capture_part, "self_check": _self_check_part, "replay": _replay_part, "eager": _eager_part}
    print(*_PARTS[sys.argv[1]](Path(sys.argv[2])))
