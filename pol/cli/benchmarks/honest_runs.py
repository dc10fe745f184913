"""Honest trainings of kinds that no profile has seen: how many of their intervals would be rejected.

Some kinds are chosen by the environment of a process, so every environment is a process of its own. It gets the tasks
and profiles by digest, trains with stock torch, replays every interval canonically and decides as a verifier does.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product
from typing import TypeAlias

import torch
from torch import Tensor, nn

from pol.cli.benchmarks.classifier import ACTIVATIONS, OPTIMIZERS, SMALL, Size, Training
from pol.cli.figures import Figure
from pol.errors import OperationalError
from pol.execution.cpu import CpuExecutor
from pol.training import digits
from pol.training.storage.store import Store
from pol.training.task import LoadedTask, load, publish
from pol.verification import profile as profiles
from pol.verification.profile import Profile
from pol.verification.profiling import PROFILED, profile
from pol.verification.tolerance import clopper_pearson_upper
from pol.verification.verdict import Claim, Outcome, Three, decide, measure, travelled

STEPS, INTERVAL = 200, 4
CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Kind:
    """One way to train honestly: threads, options of the optimizer, and what is switched for the time of a run."""

    name: str
    threads: int = 1
    options: Mapping[str, bool] = field(default_factory=dict)
    switches: Callable[[Training], object] | None = None
    onednn: bool = True


def _compiled(training: Training) -> None:
    training.forward = torch.compile(training.model)


def _without_blas(training: Training) -> None:
    """Linear maps as products and sums, which no BLAS computes."""
    last = training.model[-1]
    assert isinstance(last, nn.Linear)

    def forward(images: Tensor) -> Tensor:
        features: Tensor = training.model[:-1](images)
        return (features.unsqueeze(1) * last.weight).sum(dim=2) + last.bias

    training.forward = forward


KINDS = {
    kind.name: kind
    for kind in (
        Kind("eager"),
        Kind("two threads", threads=2),
        Kind("without oneDNN", onednn=False),
        Kind("two threads without oneDNN", threads=2, onednn=False),
        Kind("without BLAS", switches=_without_blas),
        Kind("optimizer in a loop", options={"foreach": False}),
        Kind("fused optimizer", options={"fused": True}),
        Kind("compiled", switches=_compiled),
    )
}
ENVIRONMENTS: Sequence[tuple[Mapping[str, str], Sequence[str]]] = (
    ({}, [name for name in KINDS if name != "compiled"]),
    ({}, ["compiled"]),
    ({"ATEN_CPU_CAPABILITY": "default"}, ["eager", "without oneDNN"]),
    ({"ATEN_CPU_CAPABILITY": "avx2"}, ["eager"]),
    ({"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}, ["eager", "without oneDNN"]),
)
"""Variables of a process, and the kinds that are run in it."""
_PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that have nothing to do sleep: two of them would only hinder each other in a model this small."""


@dataclass
class Tally:
    """Intervals tested and rejected, and the greatest distance in units of its threshold, unsquared."""

    tested: int = 0
    rejected: int = 0
    closest: float = 0.0

    def add(self, claim: Claim, thresholds: Three) -> None:
        """Decide one interval."""
        self.tested += 1
        self.rejected += decide(claim, thresholds).outcome is not Outcome.ACCEPTED
        for distance, reference, threshold in zip(claim.distances, claim.references, thresholds, strict=True):
            if distance:
                allowed = threshold * travelled(reference)
                self.closest = max(self.closest, math.sqrt((distance << 64) / allowed) if allowed else math.inf)

    def merge(self, other: Tally) -> None:
        """Count another tally's intervals too."""
        self.tested += other.tested
        self.rejected += other.rejected
        self.closest = max(self.closest, other.closest)

    @property
    def upper_bound(self) -> float:
        """On the rate of false rejects, by Clopper and Pearson, at 95 %; intervals count as independent."""
        return clopper_pearson_upper(self.rejected, self.tested, CONFIDENCE)


def measure_profile(task: LoadedTask, segments: int = PROFILED) -> Profile:
    """The usual profile: canonical reruns of the first segments in other orders."""
    return profile(task, CpuExecutor, min(segments, task.document.segments))


def publish_task(store: Store, size: Size, optimizer: str, seed: int, steps: int = STEPS) -> tuple[str, str]:
    """Digests of a task with this data order and initial model, and of its profile."""
    training = Training(size, seed, digits.order(seed, steps, size.batch), optimizer)
    digest, _ = publish(store, training.captured(), steps=steps, interval=INTERVAL)
    return digest, store.put(measure_profile(load(store, digest)).encode())


def run_kind(task: LoadedTask, thresholds: Three, training: Training, kind: Kind) -> Tally:
    """Train one task in one way, and decide every interval of it."""
    executor = CpuExecutor(task.program, task.constants)
    tally = Tally()
    start = task.initial_state
    with _switched(training, kind):
        for segment in range(task.document.segments):
            first = segment * task.document.interval
            for step in range(first, first + task.document.interval):
                training.step(step)
            end = training.words(task.names.slots)
            tally.add(measure(task.program, executor, start, end, segment, task.document.interval), thresholds)
            start = end
    return tally


@contextmanager
def _switched(training: Training, kind: Kind) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(kind.threads)
    if kind.switches is not None:
        kind.switches(training)
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        if not kind.onednn:
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        yield


Tasks: TypeAlias = Mapping[int, tuple[str, str]]
"""Digests of tasks and their profiles, by seed."""


def run_here(url: str, activation: str, optimizer: str, tasks: Tasks, kinds: Sequence[str]) -> Tally:
    """All of these kinds in this process, on every task."""
    store, size = Store(url), SMALL[activation]
    total = Tally()
    for seed, (task_digest, profile_digest) in tasks.items():
        task = load(store, task_digest)
        thresholds = profiles.load(store, profile_digest, task).thresholds
        order = digits.order(seed, task.document.steps, size.batch)
        for name in kinds:
            kind = KINDS[name]
            training = Training(size, seed, order, optimizer, **kind.options)
            total.merge(run_kind(task, thresholds, training, kind))
    return total


def _run_apart(url: str, activation: str, optimizer: str, tasks: Tasks, place: int) -> Tally:
    variables, kinds = ENVIRONMENTS[place]
    arguments = [url, activation, optimizer, json.dumps(tasks), *kinds]
    command = [sys.executable, "-m", "pol.cli.benchmarks.honest_runs", *arguments]
    environment = {**os.environ, **_PASSIVE, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OperationalError(f"honest runs ({variables}, {', '.join(kinds)}) failed: {done.stderr[-2000:]}")
    return Tally(**json.loads(done.stdout.splitlines()[-1]))


def honest_figures(seeds: int = 5) -> dict[str, Figure]:
    """False rejects over all kinds: of all networks, by activation, and by activation and optimizer."""
    figures: dict[str, Figure] = {}
    totals = {name: Tally() for name in ("", *(f"{activation}_" for activation in ACTIVATIONS))}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        store = Store(f"file://{folder}")
        for activation, optimizer in product(ACTIVATIONS, OPTIMIZERS):
            size = SMALL[activation]
            tasks = {seed: publish_task(store, size, optimizer, seed) for seed in range(1, seeds + 1)}
            run = partial(_run_apart, store.url, activation, optimizer, tasks)
            tally = Tally()
            for found in pool.map(run, range(len(ENVIRONMENTS))):
                tally.merge(found)
            totals[""].merge(tally)
            totals[f"{activation}_"].merge(tally)
            figures |= _tally_figures(f"{activation}_{optimizer}_", tally)
    for prefix, tally in totals.items():
        figures |= _tally_figures(prefix, tally)
    return figures


def _tally_figures(prefix: str, tally: Tally) -> dict[str, Figure]:
    return {
        f"{prefix}false_reject_upper_bound": Figure(tally.upper_bound, "of honest intervals, at 95 %"),
        f"{prefix}honest_intervals": Figure(tally.tested, "intervals"),
        f"{prefix}honest_rejected": Figure(tally.rejected, "intervals"),
        f"{prefix}honest_closest": Figure(tally.closest, "of the threshold"),
    }


if __name__ == "__main__":
    _url, _activation, _optimizer, _tasks, *_kinds = sys.argv[1:]
    _by_seed = {int(seed): (task, found) for seed, (task, found) in json.loads(_tasks).items()}
    print(json.dumps(asdict(run_here(_url, _activation, _optimizer, _by_seed, _kinds))))
