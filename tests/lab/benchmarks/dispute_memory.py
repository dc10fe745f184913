"""Peak memory of an honest party in a dispute, beside that of a training step; each in a process of its own.

`PYTHONPATH=tests python -m lab.benchmarks.dispute_memory MODEL PART` measures one part, ``step`` or ``dispute``.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import nn

from lab.benchmarks.figure import ROOT, Figure
from lab.benchmarks.measured_models import GPT, GPTSize
from pol.demo import digits
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture, capture
from pol.graph.node import Source

STEPS = 20
"""Of the segment."""
PARTS = ("step", "dispute")


def mlp() -> Capture:
    """The perceptron of the demo."""
    model = digits.build_model(1)
    return capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1, STEPS))


def gpt(check: bool = True) -> Capture:
    """Ten million parameters, AdamW, 64 positions in each of four texts."""
    size = GPTSize(block=64)
    torch.manual_seed(0)
    model = GPT(size)
    texts = torch.randint(size.vocabulary, (8, size.block + 1))

    def loss(scores: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(scores.flatten(0, 1), after.flatten())

    order = torch.arange(4 * STEPS).reshape(STEPS, 4) % 8
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return capture(model, loss, optimizer, (texts[:, :-1], texts[:, 1:]), order, check=check)


MODELS: Mapping[str, Callable[[], Capture]] = {"mlp": mlp, "gpt": gpt}


def measure(model: str, part: str) -> dict[str, float]:
    """Bytes that a part takes beyond what the task does, and its seconds."""
    captured = MODELS[model]()
    executor = CpuExecutor(captured.program, captured.constants, threads=0)
    # What the capture needed counts for neither: it is given back, and the high-water mark begins here.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, began = _peak(), time.perf_counter()
    if part == "step":
        state, _ = executor.advance(captured.state, 0)
        executor.advance(state, 1)
    else:
        _dispute(SegmentTrace(captured.program, captured.constants, executor, captured.state, 0, STEPS))
    state_bytes = 4 * sum(slot.type.numel for slot in captured.program.slots)
    outputs = 4 * sum(node.type.numel for node in captured.program.nodes)
    seconds = time.perf_counter() - began
    return {"bytes": _peak() - before, "seconds": seconds, "state_bytes": state_bytes, "output_bytes": outputs}


def _dispute(trace: SegmentTrace) -> None:
    """All that a party asks its execution on the way down to one instruction, in the node that reads most."""
    step, nodes = STEPS // 2, trace.program.nodes
    for end in range(STEPS + 1):
        trace.state_root(end)
    trace.node_roots(step)
    trace.slot_roots(step + 1)
    number = max(
        range(len(nodes)),
        key=lambda n: nodes[n].type.numel + sum(o.type.numel for o in nodes[n].operands if o.source is Source.NODE),
    )
    trace.output_leaves(step, number)
    element, terms = nodes[number].type.numel // 2, nodes[number].terms
    (accumulator,) = trace.accumulators(step, number, element, [terms // 2])
    trace.body(step, number, element, terms // 2, accumulator)


def memory_figures() -> dict[str, Figure]:
    """Peak memory of a dispute over that of two steps of training, and the seconds of all its questions."""
    figures = {}
    for model in MODELS:
        step, dispute = (_apart(model, part) for part in PARTS)
        figures[f"{model}_dispute_memory"] = Figure(
            dispute["bytes"] / 2**20, "MiB", "two steps of training", dispute["bytes"] / max(step["bytes"], 1.0)
        )
        figures[f"{model}_dispute_seconds_of_questions"] = Figure(
            dispute["seconds"], "s", "two steps of training", dispute["seconds"] / step["seconds"]
        )
        figures[f"{model}_step_outputs"] = Figure(step["output_bytes"] / 2**20, "MiB of all outputs of a step")
        figures[f"{model}_segment_states"] = Figure(
            (STEPS + 1) * step["state_bytes"] / 2**20, "MiB of all states of the segment"
        )
    return figures


def _apart(model: str, part: str) -> dict[str, float]:
    command = [sys.executable, "-m", "lab.benchmarks.dispute_memory", model, part]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OperationalError(f"the memory of {model}, {part}, wasn't measured: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _peak() -> float:
    """The most memory since the mark was set, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) * 1024


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
