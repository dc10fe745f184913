"""The figures behind ``pol bench``, by area. A ratio is ours over the peer's, both measured in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from lab.benchmarks.figure import ROOT, Figure, side_by_side
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
    return {
        "state_bytes_compared": Figure(compared, "bytes"),
        "state_bytes_differing": Figure(differing, "bytes"),
    }


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
    import torch

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

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        ours, peer = side_by_side(lambda: cpu.run(captured.state, 0), eager, 100)
    finally:
        torch.set_num_threads(threads)
    slow = median_seconds(lambda: reference.run(captured.state, 0), 5)
    return {
        "canonical_step": Figure(ours * 1e3, "ms", "eager torch, one thread", ours / peer),
        "reference_step": Figure(slow * 1e3, "ms", "eager torch, one thread", slow / peer),
    }


def commitment_figures() -> dict[str, Figure]:
    """Throughput of the Merkle tree over tensor data, against one keccak stream of the Python binding."""
    import sha3

    from pol.commitments.tensor import tensor_tree

    words = np.random.default_rng(0).integers(0, 1 << 32, 1 << 22, dtype=np.uint32)
    data = words.tobytes()
    ours, peer = side_by_side(lambda: tensor_tree(words), lambda: sha3.keccak_256(data).digest(), 5)
    return {"merkle_throughput": Figure(words.nbytes / ours / 1e9, "GB/s", "one pysha3 stream", peer / ours)}


def operation_figures() -> dict[str, Figure]:
    """Single operations against torch: matrix products, convolutions, functions, reductions and normalisations."""
    from lab.benchmarks.contractions import contraction_figures
    from lab.benchmarks.elementwise import elementwise_figures

    return contraction_figures() | elementwise_figures()


def step_figures() -> dict[str, Figure]:
    """Whole training steps beside torch's, a loop of exact steps beside these alone, and the hashing of a trace."""
    from lab.benchmarks.exact_training import loop_figures
    from lab.benchmarks.training_steps import step_figures as figures

    return figures() | loop_figures()


def exact_figures() -> dict[str, Figure]:
    """Exact training in the user's own loop beside eager torch, and with products of int8 beside those of float32."""
    from lab.benchmarks.exact_training import exact_figures as figures
    from lab.benchmarks.int8_training import int8_figures

    return {**figures(), **int8_figures()}


def capture_figures() -> dict[str, Figure]:
    """A GPT-2 of 124 million parameters: time, file and memory; drawn programs; Hugging Face's architectures."""
    from lab.benchmarks import drawn_programs
    from lab.benchmarks.hugging_face import hugging_face_figures
    from lab.benchmarks.training_steps import capture_figures as figures

    return {**figures(), **drawn_figures(drawn_programs.COUNT), **hugging_face_figures()}


def drawn_figures(count: int) -> dict[str, Figure]:
    """Of drawn programs, those that were captured without an error and are another training than the user's."""
    from lab.benchmarks import drawn_programs

    found = drawn_programs.outcome(count)
    return {
        "drawn_programs": Figure(count, "programs"),
        "drawn_programs_captured": Figure(found.captured, "programs"),
        "drawn_operations": Figure(len(found.operations), "operations"),
        "silent_differences": Figure(len(found.silent), "programs"),
    }


def court_figures() -> dict[str, Figure]:
    """Gas of the court's arithmetic and of disputes; the time of one about a GPT-2, and of moves about a long fold."""
    from lab.benchmarks import whole_dispute
    from lab.benchmarks.court_arithmetic import arithmetic_gas
    from lab.benchmarks.market_dispute import market_dispute_figures
    from lab.benchmarks.move_preparation import move_figures

    seconds, gas = whole_dispute.gpt_dispute_seconds()
    found = arithmetic_gas() | whole_dispute.dispute_figures()
    units = {name: "transactions" if name.endswith("moves") else "gas" for name in found}
    figures = {name: Figure(value, units[name]) for name, value in found.items()}
    return (
        figures
        | {"gpt_dispute_seconds": Figure(seconds, "s"), "gpt_dispute_gas": Figure(gas, "gas")}
        | move_figures()
        | market_dispute_figures()
    )


def record_figures() -> dict[str, Figure]:
    """What recording costs, and whether every byte of a state is in its root."""
    from lab.benchmarks import recording_cost, state_mutations

    mutations = state_mutations.mutate(state_mutations.trained(), count=11_000, seed=1)
    speeds = recording_cost.hashing()
    keccak = max((name for name in speeds if name.startswith("keccak ")), key=speeds.__getitem__)
    ours = speeds["commit_1"]
    shares = recording_cost.overheads()
    updates = recording_cost.update_bytes()
    return {
        "mutations": Figure(sum(mutations.made.values()), "changes"),
        "mutations_missed": Figure(len(mutations.missed), "changes"),
        "recorder_overhead": Figure(shares["recorder"], "of the time of 50 steps"),
        **{
            f"{name}_overhead": Figure(share, "of the time of 50 steps")
            for name, share in shares.items()
            if name != "recorder"
        },
        "commit_throughput": Figure(ours, "GB/s, one core"),
        "commit_throughput_two_cores": Figure(speeds["commit_2"], "GB/s", "one core", speeds["commit_2"] / ours),
        "commit_vs_keccak": Figure(ours / speeds[keccak], "times", keccak, ours / speeds[keccak]),
        **{
            f"commit_vs_{peer}": Figure(ours / speeds[peer], "times", f"{peer}, one core", ours / speeds[peer])
            for peer in ("sha256sum", "sha256", "blake3", "copy")
            if peer in speeds
        },
        "updates_vs_full": Figure(updates.pop("all"), "of the bytes of full checkpoints"),
        **{
            f"updates_vs_full_{component}": Figure(share, "of the bytes of full checkpoints")
            for component, share in updates.items()
        },
        "root_memory": Figure(recording_cost.memory(), "of a state of 1.6 GB, beyond it"),
    }


def freivalds_figures() -> dict[str, Figure]:
    """Products of a step checked by projection, beside their recomputation."""
    from lab.benchmarks.freivalds_cost import freivalds_figures as figures

    return figures()


def litepaper_figures(epochs: int | None = None) -> dict[str, Figure]:
    """The litepaper's own experiment, false rejects, and the cost of verifying. Takes minutes."""
    from lab.benchmarks import litepaper

    return litepaper.litepaper_figures(epochs or litepaper.EPOCHS)


def attack_figures() -> dict[str, Figure]:
    """The attack battery: what passes, what is found and how far attacks are from honest runs."""
    from lab.benchmarks import attack_battery

    return {**attack_battery.figures(attack_battery.measure()), **attack_battery.admission_figures()}


def incentive_figures() -> dict[str, Figure]:
    """Honesty on a grid of tasks, draws of planted errors, split identities, and populations."""
    from lab.benchmarks.incentive_grid import incentive_figures as figures

    return figures()


def role_figures() -> dict[str, Figure]:
    """What becomes of parties whose processes are killed and whose machines err. Needs anvil."""
    from lab.benchmarks.role_drills import role_figures as figures

    return figures()


def zk_area() -> dict[str, Figure]:
    """Proofs of gradient steps; half an hour and 15 GB of keys."""
    from lab.benchmarks.zk_proofs import zk_figures

    return zk_figures()


def code_figures() -> dict[str, Figure]:
    """Lines of code by language, tests apart. Needs a checkout."""
    if not (ROOT / "contracts").is_dir():
        raise OperationalError("lines of code are counted in a checkout; there is none around this package")
    kinds = {
        "lines_python": ("pol", ("*.py",)),
        "lines_cpp": ("pol", ("*.cpp", "*.h")),
        "lines_solidity": ("contracts", ("*.sol",)),
        "lines_tests": ("tests", ("*.py", "*.sol")),
    }
    return {
        name: Figure(sum(len(f.read_text().splitlines()) for p in patterns for f in (ROOT / folder).rglob(p)), "lines")
        for name, (folder, patterns) in kinds.items()
    }


def setup_figures() -> dict[str, Figure]:
    """Time of both set-up commands in fresh clones. Takes minutes; needs a checkout and git."""
    if not (ROOT / ".ci" / "setup").is_file():
        raise OperationalError("the set-up is timed in a checkout; there is none around this package")
    figures = {}
    for name, arguments in (("setup_demo", []), ("setup_tests", ["--dev"])):
        with tempfile.TemporaryDirectory() as folder:
            _run("git", "clone", "--quiet", str(ROOT), folder)
            began = time.monotonic()
            _run(f"{folder}/.ci/setup", *arguments)
            figures[f"{name}_seconds"] = Figure(time.monotonic() - began, "s")
    return figures


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OperationalError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")


def median_seconds(call: Callable[[], object], rounds: int) -> float:
    """Median seconds of one call."""
    return side_by_side(call, lambda: None, rounds)[0]


def scale_figures() -> dict[str, Figure]:
    """What an honest party needs at real size: memory, moves, single nodes, many disputes, Llamas, GPT-2 as a whole."""
    from lab.benchmarks import checkpoint_memory
    from lab.benchmarks.dispute_memory import memory_figures
    from lab.benchmarks.gpt2_dispute import gpt2_figures
    from lab.benchmarks.llama_disputes import llama_figures
    from lab.benchmarks.move_preparation import move_figures
    from lab.benchmarks.parallel_disputes import parallel_figures
    from lab.benchmarks.real_nodes import node_figures

    small = checkpoint_memory.memory_figures, memory_figures, move_figures, llama_figures
    parts = *small, parallel_figures, node_figures, gpt2_figures
    return {name: figure for part in parts for name, figure in part().items()}


def rounds_area() -> dict[str, Figure]:
    """Trainings of many workers: cost of proofs, bytes sent, losses, lies found, by system."""
    from lab.benchmarks.rounds import rounds_figures

    return rounds_figures()


def gpu_area() -> dict[str, Figure]:
    """Machine code of kernels for GPUs and the bounds that follow; nothing of it is measured. Needs NVRTC."""
    from lab.benchmarks.gpu_model import gpu_figures

    return gpu_figures()


def collective_area() -> dict[str, Figure]:
    """Sums over processes with a defined order beside gloo's all-reduce: time and bytes."""
    from lab.benchmarks.collective_costs import collective_figures

    return collective_figures()


AREAS: dict[str, Callable[[], dict[str, Figure]]] = {
    "demo": demo_figures,
    "bits": lambda: {**bits_figures(), **model_bits_figures()},
    "execution": execution_figures,
    "ops": operation_figures,
    "step": step_figures,
    "exact": exact_figures,
    "capture": capture_figures,
    "court": court_figures,
    "scale": scale_figures,
    "commitments": commitment_figures,
    "record": record_figures,
    "freivalds": freivalds_figures,
    "litepaper": litepaper_figures,
    "attacks": attack_figures,
    "incentives": incentive_figures,
    "roles": role_figures,
    "zk": zk_area,
    "collectives": collective_area,
    "gpu": gpu_area,
    "rounds": rounds_area,
    "code": code_figures,
    "setup": setup_figures,
}
