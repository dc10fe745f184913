"""What verifying costs as a fraction of training: 99 % confidence against 5 % of cheated segments, one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch

from lab.benchmarks import training_steps
from lab.benchmarks.figure import Figure, side_by_side
from pol.claims.sample_size import cheated_segments, draws_for
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture
from pol.verification.verdict.segment_verification import measure_segment

CONFIDENCE, CHEATED = Fraction(99, 100), Fraction(1, 20)


@dataclass(frozen=True)
class Cost:
    """Seconds of one step, canonical and in eager torch, and of the roots and distances of one segment."""

    canonical: float
    eager: float
    segment: float

    def fraction(self, segments: int, interval: int) -> float:
        """Of the time of a training of so many segments."""
        replayed = draws_needed(segments) * (interval * self.canonical + self.segment)
        return replayed / (segments * interval * self.eager)


def draws_needed(segments: int) -> int:
    """The fewest drawn segments that hit 5 % cheated ones with 99 % confidence, by as many verifiers as it takes."""
    return draws_for(segments, cheated_segments(segments, CHEATED), CONFIDENCE, segments)


def measure_cost(captured: Capture, eager: Callable[[], object], rounds: int) -> Cost:
    """Costs of a captured training and its eager step, measured alternately."""
    program, state = captured.program, captured.state
    executor = CpuExecutor(program, captured.constants)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        executor.advance(state, 0), eager()
        ours, peer = side_by_side(lambda: executor.advance(state, 0), eager, rounds, time.process_time)
        began = time.process_time()
        measure_segment(program, executor, state, executor.advance(state, 0)[0], 0, 0)
        return Cost(ours, peer, time.process_time() - began)
    finally:
        torch.set_num_threads(threads)


def demo_cost(rounds: int = 100) -> Cost:
    """The worked example (`pol demo`)."""
    model = digits.build_model(0)
    optimizer = digits.build_optimizer(model)
    images, labels = digits.dataset()
    batch = digits.order(0)[0]

    def eager() -> None:
        optimizer.zero_grad()
        digits.loss_function(model(images[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()

    return measure_cost(digits.captured(0), eager, rounds)


def gpt_cost(rounds: int = 5) -> Cost:
    """The depth, heads and shape of GPT-2 at a quarter of its width, AdamW."""
    workload = training_steps.gpt(layers=12, width=192, heads=12, tokens=128, batch=2, vocabulary=2048)
    return measure_cost(workload.captured(), workload.eager_step(), rounds)


def verification_figures() -> dict[str, Figure]:
    """Fractions of the training: the demo as it is, and both models in trainings of 1,000 segments of 100 steps."""
    demo, gpt = demo_cost(), gpt_cost()
    own = digits.STEPS // digits.INTERVAL
    of = "of training, 99 % against 5 %"
    return {
        "verify_cost_demo": Figure(demo.fraction(own, digits.INTERVAL), f"{of}, {draws_needed(own)} of {own} segments"),
        "verify_cost_demo_long": Figure(demo.fraction(1000, 100), f"{of}, {draws_needed(1000)} of 1,000 segments"),
        "verify_cost_gpt": Figure(gpt.fraction(1000, 100), f"{of}, {draws_needed(1000)} of 1,000 segments"),
        "verify_step_demo": Figure(demo.canonical * 1e3, "ms", "eager torch, one thread", demo.canonical / demo.eager),
        "verify_step_gpt": Figure(gpt.canonical * 1e3, "ms", "eager torch, one thread", gpt.canonical / gpt.eager),
    }
