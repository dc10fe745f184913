"""Honest trainings of kinds that no profile has seen: what a verifier decides about each of their intervals.

With the thresholds alone, and with a second look at what they reject. As a program: the kinds that one environment of a
process allows, on tasks and profiles named by digest; `lab.benchmarks.false_rejects` runs it in every environment.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TypeAlias

import torch
from torch import Tensor, nn

from lab.benchmarks.classifier import SMALL, Size, Training
from lab.benchmarks.figure import torch_threads
from lab.benchmarks.rate_bounds import clopper_pearson_upper
from pol.arithmetic.primitives import Words
from pol.claims.acceptance_rule import is_accepted, travelled
from pol.claims.segment_claim import SecondLook, SegmentClaim, Three
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import StepProgram
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_document import Profile, load_profile
from pol.verification.profile.profiling import PROFILED, measure_profile
from pol.verification.profile.slot_scales import bounded
from pol.verification.verdict.second_look import SecondLooker, second_look_shares
from pol.verification.verdict.segment_pairs import paired_task
from pol.verification.verdict.segment_verification import measure, measure_segment, replay_from
from pol.verification.verdict.slot_residual import SlotExaminer
from pol.verification.verdict.verdict import Outcome, decide

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

SEED = b"an auditor's own"
"""Of the sketches by which residuals outside of the span of reruns are found."""


@dataclass
class Tally:
    """Intervals tested, rejected by thresholds (``beyond``), and rejected by a second look as well.

    ``closest`` is the greatest distance in units of its threshold, ``closest_look`` that of a second look in units of
    what it allows, both unsquared. ``apart`` are intervals marked for one of their slots. ``pairs`` are intervals of
    twice the length, of which ``pairs_rejected`` are rejected.
    """

    tested: int = 0
    beyond: int = 0
    rejected: int = 0
    closest: float = 0.0
    closest_look: float = 0.0
    apart: int = 0
    pairs: int = 0
    pairs_rejected: int = 0

    def add(
        self, claim: SegmentClaim, thresholds: Three, again: SecondLooker, start: Sequence[Words], end: Sequence[Words]
    ) -> None:
        """Decide one interval."""
        first = decide(claim, thresholds)
        verdict = first if first.outcome is Outcome.ACCEPTED else again(first, start, end)
        self.tested += 1
        self.beyond += first.outcome is not Outcome.ACCEPTED
        self.rejected += verdict.outcome is not Outcome.ACCEPTED
        if verdict.second_look is not None:
            self.closest_look = max(self.closest_look, worst(claim, verdict.second_look, thresholds))
        for distance, reference, threshold in zip(claim.distances, claim.references, thresholds, strict=True):
            if distance:
                allowed = threshold * travelled(reference)
                self.closest = max(self.closest, math.sqrt((distance << 64) / allowed) if allowed else math.inf)

    def merge(self, other: Tally) -> None:
        """Count another tally's intervals too."""
        for name, theirs in vars(other).items():
            ours = getattr(self, name)
            setattr(self, name, max(ours, theirs) if name.startswith("closest") else ours + theirs)

    @property
    def upper_bound(self) -> float:
        """On the rate of false rejects, by Clopper and Pearson, at 95 %; intervals count as independent."""
        return clopper_pearson_upper(self.rejected, self.tested, CONFIDENCE)


def worst(claim: SegmentClaim, look: SecondLook, thresholds: Three) -> float:
    """The greatest distance that the thresholds reject, in units of what the second look allows."""
    rows = zip(claim.distances, claim.references, thresholds, second_look_shares(claim, look), strict=True)
    return max(share for distance, reference, t, share in rows if not is_accepted(distance, reference, t))


class _Executors:
    """One executor for each program, kept: those of second looks are needed again and again."""

    def __init__(self) -> None:
        self._known: dict[int, CpuExecutor] = {}

    def __call__(self, program: StepProgram, constants: Sequence[Words]) -> CpuExecutor:
        if id(program) not in self._known:
            self._known[id(program)] = CpuExecutor(program, constants)
        return self._known[id(program)]


def usual_profile(task: LoadedTask, segments: int = PROFILED) -> Profile:
    """The usual profile: canonical reruns of the first segments in other orders."""
    return measure_profile(task, CpuExecutor, min(segments, task.document.segments))


def publish_task(store: Store, size: Size, optimizer: str, seed: int, steps: int = STEPS) -> tuple[str, str]:
    """Digests of a task with this data order and initial model, and of its profile; scaled as a submitter would."""
    training = Training(size, seed, digits.order(seed, steps, size.batch), optimizer)
    digest, _ = publish(store, training.captured(), steps=steps, interval=INTERVAL)
    task, profile = bounded(store, load(store, digest), usual_profile, lambda told: None)
    return task.digest, store.put(profile.encode())


def run_kind(task: LoadedTask, thresholds: Three, training: Training, kind: Kind, first_segment: int = 0) -> Tally:
    """Train one task in one way, and decide every interval of it from ``first_segment`` on."""
    executor = CpuExecutor(task.program, task.constants)
    again = SecondLooker(task, _Executors(), thresholds, seed=SEED)
    pairs, examiner = paired_task(task), SlotExaminer(task, _Executors())
    look_at_pair = SecondLooker(pairs, _Executors(), thresholds)
    tally = Tally()
    start = before = task.initial_state
    with _switched(training, kind):
        for step in range(first_segment * task.document.interval):
            training.step(step)
        if first_segment:
            start = before = training.words(task.names.slots)
        for segment in range(first_segment, task.document.segments):
            first = segment * task.document.interval
            for step in range(first, first + task.document.interval):
                training.step(step)
            end = training.words(task.names.slots)
            interval = task.document.interval
            replayed = replay_from(task.program, executor, start, segment, interval)
            tally.add(measure(task.program, start, replayed, end, segment), thresholds, again, start, end)
            tally.apart += bool(examiner.unexplained(segment, start, replayed.state, end))
            if segment % 2:
                whole = measure_segment(task.program, executor, before, end, segment // 2, 2 * interval, halves=True)
                verdict = decide(whole, thresholds)
                if verdict.outcome is not Outcome.ACCEPTED:
                    verdict = look_at_pair(verdict, before, end)
                tally.pairs += 1
                tally.pairs_rejected += verdict.outcome is not Outcome.ACCEPTED
                before = end
            start = end
    return tally


@contextmanager
def _switched(training: Training, kind: Kind) -> Iterator[None]:
    if kind.switches is not None:
        kind.switches(training)
    with torch_threads(kind.threads), nullcontext() if kind.onednn else torch.backends.mkldnn.flags(enabled=False):
        yield


Tasks: TypeAlias = Mapping[int, tuple[str, str]]
"""Digests of tasks and their profiles, by seed."""


def run_here(url: str, network: str, optimizer: str, tasks: Tasks, kinds: Sequence[str]) -> Tally:
    """All of these kinds in this process, on every task."""
    store, size = Store(url), SMALL[network]
    total = Tally()
    for seed, (task_digest, profile_digest) in tasks.items():
        task = load(store, task_digest)
        thresholds = load_profile(store, profile_digest, task).thresholds
        order = digits.order(seed, task.document.steps, size.batch)
        for name in kinds:
            kind = KINDS[name]
            training = Training(size, seed, order, optimizer, **kind.options)
            looked_at = min(task.document.segments, STEPS // INTERVAL)
            total.merge(run_kind(task, thresholds, training, kind, task.document.segments - looked_at))
    return total


if __name__ == "__main__":
    _url, _network, _optimizer, _tasks, *_kinds = sys.argv[1:]
    _by_seed = {int(seed): (task, found) for seed, (task, found) in json.loads(_tasks).items()}
    print(json.dumps(asdict(run_here(_url, _network, _optimizer, _by_seed, _kinds))))
