"""The profile: how far honest executions of one task part from each other, and the threshold that follows.

A canonical run of portions of the training is compared with reruns in which every reduction is done in another order,
drawn from a seed. All of it is integer arithmetic over defined bits: the same seeds give the same bytes on any machine,
so a profile is a claim that anybody can repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pol.arithmetic.primitives import Words
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.reorder import reorder
from pol.graph.step_program import Component
from pol.training import canonical_json
from pol.training.storage.store import Store
from pol.training.task import LoadedTask
from pol.verification.distance import SATURATION, UNEQUAL, component_distances
from pol.verification.replay import ExecutorFactory, replay_end
from pol.verification.verdict import THRESHOLD_BITS, Three, travelled

VERSION = 1
DOCUMENT_LIMIT = 1 << 20
# Profiles usually cover early segments and reduction orders only. Measured on the digits example: late segments part
# four times as far as early ones, torch on other instruction sets as far as reorderings, and the mildest cheats
# (float16 weights, 1 % off the learning rate) a thousand times as far. 64 lies in the middle.
MARGIN = 64
# 2^-20 of the distance travelled, a few roundings of a binary32: nobody can be asked to do better than the format.
FLOOR = 1 << (THRESHOLD_BITS - 40)
MAX_SEED = (1 << 53) - 1


@dataclass(frozen=True)
class Profile:
    """The profile document.

    ``spreads`` are, per component, the greatest squared relative distances seen, times 2^64, rounded up; ``thresholds``
    the limits that follow from them with ``margin``, a factor on the (unsquared) distance.
    """

    task: str
    interval: int
    segments: tuple[int, ...]
    seeds: tuple[int, ...]
    margin: int
    spreads: Three
    thresholds: Three

    @property
    def samples(self) -> int:
        """How many reruns of a segment the profile rests on."""
        return len(self.seeds) * len(self.segments)

    @property
    def coverage(self) -> Fraction:
        """The probability, at least, that a rerun with a fresh seed stays within ``spreads``: n/(n+1) for n seeds.

        Free of assumptions about the distribution: of n + 1 exchangeable reruns of one segment, the fresh one is the
        greatest with probability 1/(n+1) at most. It holds for segments that were profiled and for reruns of the kind
        profiled; ``margin`` is for everything else (other segments, other hardware).
        """
        return Fraction(len(self.seeds), len(self.seeds) + 1)

    @property
    def digest(self) -> bytes:
        """The keccak-256 of the document."""
        return keccak256(self.encode())

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": "pol/profile",
                "version": VERSION,
                "task": self.task,
                "interval": self.interval,
                "segments": list(self.segments),
                "seeds": list(self.seeds),
                "margin": self.margin,
                "samples": self.samples,
                "coverage": f"{self.coverage.numerator}/{self.coverage.denominator}",
                "spreads": [str(spread) for spread in self.spreads],
                "thresholds": [str(threshold) for threshold in self.thresholds],
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Profile:
        """The profile in a document.

        Raises:
            ProtocolError: not the canonical bytes of a profile, or its derived members don't follow from the others.
        """
        what = "the profile"
        names = [*cls.__dataclass_fields__, "kind", "version", "samples", "coverage"]
        fields = canonical_json.Fields(canonical_json.decode(data, what), what, names)
        if fields.text("kind") != "pol/profile" or fields.integer("version") != VERSION:
            raise ProtocolError(f"not a profile of version {VERSION}")
        spreads, thresholds = fields.decimals("spreads", 64), fields.decimals("thresholds", 64)
        if len(spreads) != len(Component) or len(thresholds) != len(Component):
            raise ProtocolError(f"{what} needs {len(Component)} spreads and thresholds, one for each component")
        result = cls(
            task=fields.digest("task"),
            interval=fields.integer("interval", 1),
            segments=tuple(fields.integers("segments")),
            seeds=tuple(fields.integers("seeds")),
            margin=fields.integer("margin", 1),
            spreads=(spreads[0], spreads[1], spreads[2]),
            thresholds=(thresholds[0], thresholds[1], thresholds[2]),
        )
        _require_distinct(result.segments, result.seeds)
        try:
            follows = result.thresholds == compute_thresholds(result.spreads, result.margin)
        except UnsupportedError as error:
            raise ProtocolError(f"{what} has no threshold: {error}") from error
        if not follows or result.encode() != data:
            raise ProtocolError(
                f"{what} contradicts itself: samples, coverage or thresholds don't follow from the rest"
            )
        return result


def profile(
    task: LoadedTask,
    executor: ExecutorFactory,
    seeds: Sequence[int],
    segments: Sequence[int],
    margin: int = MARGIN,
) -> Profile:
    """Measure the spread of honest executions over some segments of a task; deterministic in its arguments.

    The canonical run goes up to the last of ``segments``; from the start of each, one rerun per seed is made with the
    reductions reordered by that seed.

    Raises:
        ProtocolError: no such segments, or seeds or segments repeat.
        UnsupportedError: no threshold can tell honest work from cheating here (see `compute_threshold_up`).
    """
    _require_distinct(segments, seeds)
    document, program = task.document, task.program
    if not all(0 <= segment < document.segments for segment in segments):
        raise ProtocolError(f"can't profile segments {list(segments)}: the task has {document.segments}")
    canonical = executor(program, task.constants)
    reordered = [(p, executor(p, task.constants)) for p in (reorder(program, seed) for seed in seeds)]
    spreads = [0] * len(Component)
    start: list[Words] = task.initial_state
    for segment in range(max(segments) + 1):
        first = segment * document.interval
        end = replay_end(program, canonical, start, first, document.interval)
        if segment in segments:
            references = component_distances(program, end, start)
            for other, rerun in reordered:
                distances = component_distances(program, end, replay_end(other, rerun, start, first, document.interval))
                ratios = map(squared_ratio_up, distances, references)
                spreads = [max(pair) for pair in zip(spreads, ratios, strict=True)]
        start = end
    parameter, buffer, optimizer = spreads
    return Profile(
        task=task.digest,
        interval=document.interval,
        segments=tuple(segments),
        seeds=tuple(seeds),
        margin=margin,
        spreads=(parameter, buffer, optimizer),
        thresholds=compute_thresholds((parameter, buffer, optimizer), margin),
    )


def load(store: Store, digest: str, task: LoadedTask) -> Profile:
    """The profile with this digest.

    Raises:
        ProtocolError: it isn't a profile of this task, or isn't well-formed.
        OperationalError: the store failed.
    """
    result = Profile.decode(store.get(digest, limit=DOCUMENT_LIMIT))
    if result.task != task.digest or result.interval != task.document.interval:
        raise ProtocolError(f"this is a profile of task {result.task}, not of task {task.digest}")
    return result


def squared_ratio_up(distance: int, reference: int) -> int:
    """``distance / reference * 2^64``, rounded up.

    Raises:
        UnsupportedError: not finite, or something moved in the rerun that the canonical run leaves in place.
    """
    if distance >= SATURATION or reference >= SATURATION:
        raise UnsupportedError(
            "a profiled segment has state that isn't finite or exceeds 2^23: it has no distance (docs/spec/verdict.md),"
            " so no solver could be accepted"
        )
    if distance >= UNEQUAL:
        raise UnsupportedError("honest executions of this task part in an integer, so no solver could be accepted")
    if distance == 0:
        return 0
    if travelled(reference) == 0:
        raise UnsupportedError("a profiled segment doesn't move, but a rerun of it does; use a longer interval")
    return -(-(distance << THRESHOLD_BITS) // travelled(reference))


def compute_threshold_up(spread: int, margin: int) -> int:
    """The threshold for a spread: ``spread * margin^2``, at least `FLOOR`.

    Both are squared relative distances times 2^64, hence the square of the margin.

    Raises:
        UnsupportedError: the threshold would reach 2^64, the distance that the training itself travels.
    """
    threshold = max(spread * margin * margin, FLOOR)
    if threshold >= 1 << THRESHOLD_BITS:
        raise UnsupportedError(
            "honest executions of this task part as far as the training travels; use a shorter checkpoint interval"
        )
    return threshold


def compute_thresholds(spreads: Three, margin: int) -> Three:
    """The thresholds of the three components."""
    parameter, buffer, optimizer = (compute_threshold_up(spread, margin) for spread in spreads)
    return parameter, buffer, optimizer


def _require_distinct(segments: Sequence[int], seeds: Sequence[int]) -> None:
    for what, numbers in (("segments", segments), ("seeds", seeds)):
        if not numbers or len(set(numbers)) != len(numbers) or not all(0 <= n <= MAX_SEED for n in numbers):
            raise ProtocolError(
                f"a profile needs distinct {what} from 0 to {MAX_SEED}, at least one, not {list(numbers)}"
            )
