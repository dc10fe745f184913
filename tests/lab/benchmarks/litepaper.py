"""The litepaper's own experiment: what the protocol adds to 100 epochs of a small image classifier on one CPU.

Time is this process's own, of all its threads: what is recorded beside the training counts in full, other programs on
the machine do not. Epochs with and without recording alternate.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from lab.benchmarks import classifier
from lab.benchmarks.classifier import Size, Training
from lab.benchmarks.false_rejects import SEEDS, honest_figures
from lab.benchmarks.figure import Figure, torch_threads
from lab.benchmarks.honest_runs import usual_profile
from pol.claims.acceptance_rule import EXACT
from pol.claims.sample_size import cheated_segments, detection_probability, draws_for
from pol.claims.segment_draw import MAX_DRAWS, draw
from pol.commitments.keccak import keccak256
from pol.commitments.receipt import receipt_seed
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.training.recorder.recorded_training import Background
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import environment
from pol.verification.verdict.second_look import SecondLooker
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome

EPOCHS = 100
CONFIDENCE, CHEATED = Fraction(99, 100), Fraction(1, 20)
INTERVAL = 14
"""Steps between checkpoints, eight of which are in an epoch: recording and replaying cost about the same."""
PROFILED = 1
"""Segments that are profiled, with the usual number of reruns."""
LITEPAPER = 0.46
"""The overhead that the Gensyn litepaper (2022) reports for its experiment."""
REPLICAS = 7
BEACON = keccak256(b"a beacon's word")


class Stopwatch:
    """Seconds of this process, of all its threads, and of the wall clock."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Adds what happens inside."""
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu += time.process_time() - cpu
            self.wall += time.perf_counter() - wall


@dataclass
class Experiment:
    """What each part took; epochs one by one."""

    epochs: int
    interval: int
    segments: int
    plain: list[Stopwatch] = field(default_factory=list)
    recorded: list[Stopwatch] = field(default_factory=list)
    capture: Stopwatch = field(default_factory=Stopwatch)
    proof: Stopwatch = field(default_factory=Stopwatch)
    profile: Stopwatch = field(default_factory=Stopwatch)
    verify: Stopwatch = field(default_factory=Stopwatch)
    exact_verify: Stopwatch = field(default_factory=Stopwatch)
    """The same draws as exact mode has them: without second looks, with receipts."""
    draws: int = 0
    rejected: int = 0
    accuracy: float = 0.0

    @property
    def plain_seconds(self) -> float:
        """Plain training, all epochs."""
        return self.epochs * statistics.median(watch.cpu for watch in self.plain)

    @property
    def recording_seconds(self) -> float:
        """What checkpoints and commitments add to the training, and the proof at its end.

        An epoch with recording follows or precedes the same one without, so that a slow minute meets both.
        """
        pairs = zip(self.recorded, self.plain, strict=True)
        return self.epochs * statistics.median(one.cpu - other.cpu for one, other in pairs) + self.proof.cpu

    @property
    def noise(self) -> float:
        """By how much two halves of the plain epochs, taken alternately, differ."""
        halves = [statistics.median(watch.cpu for watch in self.plain[i::2] or self.plain) for i in range(2)]
        return abs(halves[0] / halves[1] - 1)

    @property
    def recording_wall(self) -> float:
        """What recording adds to the wall clock's time, as a share of it."""
        plain, recorded = (statistics.median(w.wall for w in watches) for watches in (self.plain, self.recorded))
        return recorded / plain - 1


class Recording:
    """Checkpoints of a training, committed to and stored beside it."""

    def __init__(self, store: Store, task: LoadedTask) -> None:
        self._task = task
        self._recorder = TaskRecorder(store, task)
        self._background = Background()
        self._recorder(0, task.initial_state)

    def after(self, training: Training, steps: int) -> None:
        """Copy the state and start to record it, if a checkpoint is due."""
        index, rest = divmod(steps, self._task.document.interval)
        if not rest:
            words = training.words(self._task.names.slots)
            self._background.start(lambda: self._recorder(index, words))

    def flush(self) -> None:
        """Wait until everything is stored."""
        self._background.wait()

    def publish(self) -> str:
        """The digest of the learning proof."""
        return self._recorder.publish(environment())[0]


def run_experiment(epochs: int = EPOCHS, size: Size = classifier.MEDIUM, interval: int = INTERVAL) -> Experiment:
    """Train, record, profile, draw and verify; one thread computes."""
    per_epoch = size.steps_per_epoch
    steps = epochs * per_epoch
    result = Experiment(epochs, interval, steps // interval)
    order = digits.order(0, steps, size.batch)
    with torch_threads(), tempfile.TemporaryDirectory() as folder:
        store = Store(f"file://{folder}")
        plain, recorded = Training(size, 0, order), Training(size, 0, order)
        with result.capture.running():
            digest, _ = publish(store, recorded.captured(), steps=steps, interval=interval)
        task = load(store, digest)
        recording = Recording(store, task)
        for epoch in range(epochs):
            # Either kind goes first as often as the other.
            for is_recorded in (epoch % 2 == 0, epoch % 2 == 1):
                watch = Stopwatch()
                with watch.running():
                    for step in range(epoch * per_epoch, (epoch + 1) * per_epoch):
                        if is_recorded:
                            recorded.step(step)
                            recording.after(recorded, step + 1)
                        else:
                            plain.step(step)
                    if is_recorded:
                        recording.flush()
                (result.recorded if is_recorded else result.plain).append(watch)
        with result.proof.running():
            proof = recording.publish()
        result.accuracy = recorded.accuracy()
        _verify(result, store, task, proof)
    return result


def _verify(result: Experiment, store: Store, task: LoadedTask, digest: str) -> None:
    """What a verifier does: profile, check the proof, draw, replay."""
    with result.profile.running():
        thresholds = usual_profile(task, PROFILED).thresholds
    result.draws = min(MAX_DRAWS, result.segments)
    with result.verify.running():
        proof = learning_proof.load(store, digest, task)
        executor = CpuExecutor(task.program, task.constants)
        again = SecondLooker(task, CpuExecutor, thresholds)
        for segment in draw(BEACON, result.segments, result.draws):
            verdict = verify_segment(store, task, proof, executor, segment, thresholds, again)
            result.rejected += verdict.outcome is not Outcome.ACCEPTED
    with result.exact_verify.running():
        proof = learning_proof.load(store, digest, task)
        executor = CpuExecutor(task.program, task.constants)
        for segment in draw(BEACON, result.segments, result.draws):
            seed = receipt_seed(BEACON, segment)
            assert verify_segment(store, task, proof, executor, segment, EXACT, receipt_seed=seed).claim is not None


def overhead_figures(found: Experiment) -> dict[str, Figure]:
    """Shares of the time of plain training."""
    plain = found.plain_seconds
    shares = {
        "recording": found.recording_seconds / plain,
        "profile": found.profile.cpu / plain,
        "verify": found.verify.cpu / plain,
    }
    exact_verify = found.exact_verify.cpu / plain
    overhead = sum(shares.values())
    cheated, sure = cheated_segments(found.segments, CHEATED), draws_needed(found.segments)
    at_sure = overhead + shares["verify"] * (sure / found.draws - 1)
    exactly_at_sure = shares["recording"] + exact_verify * sure / found.draws
    of_plain = "of plain training"
    return {
        "protocol_overhead": Figure(overhead, of_plain, "the litepaper", overhead / LITEPAPER),
        **{f"{name}_share": Figure(share, of_plain) for name, share in shares.items()},
        "recording_wall_share": Figure(found.recording_wall, "of plain training, wall clock"),
        "overhead_noise": Figure(found.noise, of_plain),
        "capture_share": Figure(found.capture.cpu / plain, "of plain training, once per program, apart"),
        "plain_seconds": Figure(plain, "s"),
        "plain_accuracy": Figure(found.accuracy, "of the data set"),
        "segments": Figure(found.segments, f"of {found.interval} steps"),
        "draws": Figure(found.draws, "segments"),
        "drawn_rejected": Figure(found.rejected, "segments"),
        "draws_detection_5_percent": Figure(
            float(detection_probability(found.segments, cheated, found.draws)), "probability, 5 % of segments cheated"
        ),
        "cheating_found_99": Figure(
            cheating_found(found.segments, found.draws, CONFIDENCE), "of segments cheated, found at 99 %"
        ),
        "draws_at_99": Figure(sure, "segments, for 99 % against 5 %"),
        "protocol_overhead_at_99": Figure(exactly_at_sure, of_plain, "the litepaper", exactly_at_sure / LITEPAPER),
        "exact_verify_share": Figure(exact_verify, of_plain),
        "tolerant_overhead_at_99": Figure(at_sure, of_plain, "the litepaper", at_sure / LITEPAPER),
        "replication_overhead": Figure(REPLICAS - 1, of_plain, "the protocol", (REPLICAS - 1) / overhead),
    }


def cheating_found(segments: int, draws: int, confidence: Fraction) -> float:
    """The least share of cheated segments that these draws hit so surely."""
    hit = next(n for n in range(segments + 1) if detection_probability(segments, n, draws) >= confidence)
    return hit / segments


def draws_needed(segments: int) -> int:
    """The fewest drawn segments that hit 5 % cheated ones with 99 % confidence, by as many verifiers as it takes."""
    return draws_for(segments, cheated_segments(segments, CHEATED), CONFIDENCE, segments)


def litepaper_figures(epochs: int = EPOCHS) -> dict[str, Figure]:
    """The experiment, its replication, and false rejects."""
    found = run_experiment(epochs)
    return {**overhead_figures(found), **honest_figures(SEEDS[: max(1, len(SEEDS) * epochs // EPOCHS)])}
