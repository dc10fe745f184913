"""The digits example, trained once per test process: what tests of proofs, verdicts and attacks start from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from lab.benchmarks.figure import torch_threads
from pol.arithmetic.primitives import Words
from pol.demo import digits
from pol.demo.cheating_parties import SkippingExecutor
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.graph.capture import capture
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof, load_checkpoint
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import environment, train
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Verdict

SEED = 1
RERUNS = 4
PROFILED = 3


@dataclass(frozen=True)
class Training:
    """A task, a solver's proof of it and the store that holds both."""

    store: Store
    task: LoadedTask
    digest: str
    proof: LearningProof


@cache
def published(order_seed: int = SEED, steps: int = digits.STEPS, interval: int = digits.INTERVAL) -> tuple[Store, str]:
    """A fresh store with the digits task in it, and the digest of its document."""
    store = Store(f"memory://digits-{order_seed}-{steps}-{interval}")
    model = digits.build_model(SEED)
    captured = capture(
        model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(order_seed, steps)
    )
    digest, _ = publish(store, captured, steps=steps, interval=interval, model="MLP 64-64-10", optimizer="SGD")
    return store, digest


@cache
def loaded(order_seed: int = SEED) -> LoadedTask:
    """The digits task, every claim of its document checked."""
    return load(*published(order_seed))


def solve(skipped: Collection[int] = (), order_seed: int = SEED, threads: int = 1) -> Training:
    """Native training, leaving out some steps; one thread, because more only hinder each other in so small a model."""
    store, _ = published(order_seed)
    task = loaded(order_seed)
    recorder = TaskRecorder(store, task)
    with torch_threads(threads):
        train(task, SkippingExecutor(NativeExecutor(task.aten), skipped), recorder)
    digest, proof = recorder.publish(environment())
    return Training(store, task, digest, proof)


@cache
def honest() -> Training:
    """The honest solver's training."""
    return solve()


@cache
def profiled() -> Profile:
    """The profile of the task."""
    return measure_profile(loaded(), CpuExecutor, PROFILED, RERUNS)


@cache
def executor() -> CpuExecutor:
    """Replays the task canonically."""
    task = loaded()
    return CpuExecutor(task.program, task.constants)


def checkpoints(training: Training) -> list[list[Words]]:
    """All states of a training."""
    return [load_checkpoint(training.store, training.task, entry) for entry in training.proof.checkpoints]


def proof_over(states: Sequence[list[Words]]) -> Training:
    """A proof, complete and consistent in itself, over any states."""
    base = honest()
    recorder = TaskRecorder(base.store, base.task)
    for index, state in enumerate(states):
        recorder(index, state)
    digest, proof = recorder.publish(environment())
    return Training(base.store, base.task, digest, proof)


def verdict(training: Training, segment: int) -> Verdict:
    """The honest verifier's verdict on one segment."""
    return verify_segment(training.store, training.task, training.proof, executor(), segment, profiled().thresholds)
