"""The figures behind ``pol bench``, by area. A ratio is ours over the peer's, both measured in the same run."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module

import numpy as np

from lab.benchmarks.figure import Figure, side_by_side, torch_threads
from pol.errors import OperationalError


def demo_figures() -> dict[str, Figure]:
    """Wall time and memory of ``pol demo`` in a process of its own, gas of its dispute."""
    command = [sys.executable, "-m", "pol.cli.main", "demo", "--json"]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode:
        raise OperationalError(f"pol demo failed: {done.stdout}{done.stderr}")
    report = json.loads(done.stdout)
    dispute = report["dispute"]
    moves = {f"gas_of_move_{i:02}_{m['move'].lower()}": m["gas"] for i, m in enumerate(dispute["gas_by_move"], 1)}
    return {
        "demo_seconds": Figure(seconds, "s"),
        "demo_peak_memory": Figure(report["peak_memory_mb"], "MB"),
        "dispute_transactions": Figure(dispute["transactions"], "transactions"),
        "dispute_gas_total": Figure(dispute["gas_total"], "gas"),
        "dispute_gas_max_move": Figure(dispute["gas_max_move"], "gas"),
        "dispute_gas_last_move": Figure(dispute["gas_last"], "gas"),
        "total_change": Figure(report["total_change_wei"], "wei"),
        **{name: Figure(gas, "gas") for name, gas in moves.items()},
    }


def bits_figures() -> dict[str, Figure]:
    """Bytes of state compared between executors over the whole demo training: how many, and how many differ."""
    from pol.demo import digits
    from pol.execution.cpu import CpuExecutor
    from pol.execution.executor import Executor
    from pol.execution.reference import ReferenceExecutor, next_state

    captured = digits.captured(0)
    program, constants = captured.program, captured.constants
    executors: dict[str, Executor] = {
        "one_thread": CpuExecutor(program, constants, threads=1),
        "two_threads": CpuExecutor(program, constants, threads=2),
        "reference": ReferenceExecutor(program, constants),
    }
    states = dict.fromkeys(executors, captured.state)
    compared = differing = 0
    for step in range(digits.STEPS):
        states = {name: next_state(program, e.run(states[name], step)) for name, e in executors.items()}
        for name in ("two_threads", "reference"):
            for ours, theirs in zip(states["one_thread"], states[name], strict=True):
                compared += ours.nbytes
                differing += int(np.count_nonzero(ours != theirs)) * 4
    return {"state_bytes_compared": Figure(compared, "bytes"), "state_bytes_differing": Figure(differing, "bytes")}


def model_bits_figures(steps: int = 1000) -> dict[str, Figure]:
    """Bytes of state compared over trainings of small models: between executors, and with the reference."""
    from lab.benchmarks.training_bits import MODELS, compare, compare_with_reference

    figures = {}
    for name, build in MODELS.items():
        captured = build(steps)
        for what, found in (
            (f"{name}_state_bytes", compare(captured, steps)),
            (f"{name}_reference_bytes", compare_with_reference(captured, steps // 2)),
        ):
            figures[f"{what}_compared"] = Figure(found.compared, "bytes")
            figures[f"{what}_differing"] = Figure(found.differing, "bytes")
    return figures


def execution_figures() -> dict[str, Figure]:
    """Time of a canonical training step of the demo, against the same step on torch's kernels and in eager torch."""
    from pol.demo import digits
    from pol.execution.cpu import CpuExecutor
    from pol.execution.reference import ReferenceExecutor

    captured = digits.captured(0)
    cpu = CpuExecutor(captured.program, captured.constants)
    reference = ReferenceExecutor(captured.program, captured.constants)
    model = digits.build_model(0)
    optimizer = digits.build_optimizer(model)
    images, labels = digits.dataset()
    order = digits.order(0)

    def eager() -> None:
        optimizer.zero_grad()
        digits.loss_function(model(images[order[0]]), labels[order[0]]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()

    with torch_threads():
        ours, peer = side_by_side(lambda: cpu.run(captured.state, 0), eager, 100)
    slow = side_by_side(lambda: reference.run(captured.state, 0), lambda: None, 5)[0]
    return {
        "canonical_step": Figure(ours * 1e3, "ms", "eager torch, one thread", ours / peer),
        "reference_step": Figure(slow * 1e3, "ms", "eager torch, one thread", slow / peer),
    }


def litepaper_figures(epochs: int | None = None) -> dict[str, Figure]:
    """The litepaper's own experiment, and false rejects. Takes minutes."""
    from lab.benchmarks import litepaper

    return litepaper.litepaper_figures(epochs or litepaper.EPOCHS)


PARTS: dict[str, tuple[str, ...]] = {
    "ops": ("contractions.contraction_figures", "elementwise.elementwise_figures"),
    "step": ("training_steps.step_figures", "training_steps.loop_figures"),
    "exact": ("training_steps.exact_figures", "training_steps.int8_figures"),
    "capture": ("drawn_programs.drawn_figures", "hugging_face.hugging_face_figures"),
    "court": (
        "court_gas.arithmetic_figures",
        "whole_dispute.dispute_figures",
        "whole_dispute.move_figures",
        "court_gas.market_dispute_figures",
    ),
    "scale": ("checkpoint_memory.memory_figures", "whole_dispute.move_figures", "gpt2_dispute.gpt2_figures"),
    "record": (
        "state_mutations.mutation_figures",
        "record_mutations.record_mutation_figures",
        "recording_cost.record_figures",
    ),
    "resume": ("resumed_loops.resume_figures", "doctored_loops.doctor_figures"),
    "attacks": ("attack_battery.attack_figures", "attack_battery.admission_figures"),
    "incentives": ("incentive_grid.incentive_figures",),
    "roles": ("role_drills.role_figures", "idle_parties.idle_figures"),
    "simulator": ("simulated_games.simulator_figures",),
    "zk": ("zk_proofs.zk_figures",),
    "rounds": ("rounds.rounds_figures", "long_round_logs.long_log_figures"),
}
"""Functions of modules beside this one that measure an area; imported only then."""


def _measured(parts: tuple[str, ...]) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for module, _, function in (part.rpartition(".") for part in parts):
        figures |= getattr(import_module(f"lab.benchmarks.{module}"), function)()
    return figures


AREAS: dict[str, Callable[[], dict[str, Figure]]] = {
    "demo": demo_figures,
    "bits": lambda: {**bits_figures(), **model_bits_figures()},
    "execution": execution_figures,
    "litepaper": litepaper_figures,
    **{area: partial(_measured, parts) for area, parts in PARTS.items()},
}
