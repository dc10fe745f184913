"""Measuring a profile: canonical execution of the first segments of a task, and reruns of each in other orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from pol.arithmetic.primitives import Words
from pol.claims.segment_claim import Rerun, Three
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError, UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import ExecutorFactory
from pol.graph.step_program import Component, StepProgram
from pol.graph.sum_reordering import reorder
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.discontinuous_updates import require_continuous_update
from pol.verification.profile.profile_claim import MARGIN, NO_RERUNS, Portion, claim
from pol.verification.profile.profile_document import PortionDetail, Profile, RerunDetail
from pol.verification.profile.slot_noise import NAMED, NoiseMeter, furthest, require_limits
from pol.verification.profile.state_metrics import ComponentGap, gaps
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.second_look import look_program

PROFILED = 2
"""Default number of profiled segments."""
RERUNS = 8
"""Default number of reruns of each."""

OnProgress = Callable[[int, int], None]


def rerun_programs(program: StepProgram, count: int, looks: int = 0) -> list[bytes]:
    """The hashes that the terms of a task commit to: those of `reorder(program, j)` for j = 0 .. count - 1.

    After them those of the ``looks`` reruns of a second look, if there is one.
    """
    return list(_rerun_programs(program, count, looks))


@lru_cache(maxsize=4)
def _rerun_programs(program: StepProgram, count: int, looks: int) -> tuple[bytes, ...]:
    # Cached: every party needs them several times for each task.
    programs = [reorder(program, seed) for seed in range(count)]
    programs += [look_program(program, index) for index in range(looks)]
    return tuple(program_hash(other) for other in programs)


def rerun_programs_root(hashes: Sequence[bytes]) -> bytes:
    """The log root over the hashes of reordered programs; zero if there are none (exact mode)."""
    return CheckpointLog(hashes).root() if hashes else NO_RERUNS


def measure_profile(
    task: LoadedTask,
    executor: ExecutorFactory = CpuExecutor,
    segments: int = PROFILED,
    reruns: int = RERUNS,
    margin: int = MARGIN,
    on_progress: OnProgress | None = None,
) -> Profile:
    """Measure how much honest runs of the first ``segments`` segments diverge; deterministic in its arguments.

    Canonical execution runs them once; every reordered program runs once from the start of each. Four states are held
    at a time, and one executor beside the canonical one. ``on_progress(done, all)`` is called after each execution of a
    segment. A task without possible thresholds can be measured as well; the thresholds and the document of its profile
    raise UnsupportedError.

    Raises:
        ProtocolError: the task hasn't so many segments, or there is nothing to measure.
        UnsupportedError: an update jumps (`pol.verification.profile.discontinuous_updates`).
    """
    document, program = task.document, task.program
    if margin == 0 and (segments, reruns) == (0, 0):
        return Profile(task.digest, document.interval, (), claim(0, (), ()), (), ())
    if not 1 <= segments <= document.segments or reruns < 1:
        raise ProtocolError(
            f"can't profile {segments} segments with {reruns} reruns each: the task has {document.segments} segments, "
            "and at least one of each is needed, or none of both and a margin of 0 (exact mode)"
        )
    require_continuous_update(task.aten)
    programs = [reorder(program, seed) for seed in range(reruns)]
    canonical = executor(program, task.constants)
    portions: list[tuple[Portion, PortionDetail]] = []
    measured: list[tuple[Rerun, RerunDetail]] = []
    start: list[Words] = task.initial_state
    meter = NoiseMeter(program, task.names.slots)
    done = 0

    def advanced() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, segments * (reruns + 1))

    for segment in range(segments):
        first = segment * document.interval
        end = replay_end(program, canonical, start, first, document.interval)
        portions.append(_portion(program, start, end))
        meter.begin(start, end)
        advanced()
        for other in programs:
            rerun = replay_end(other, executor(other, task.constants), start, first, document.interval)
            measured.append(_rerun(program, start, end, rerun))
            meter.rerun(rerun)
            advanced()
        meter.end()
        start = end
    return Profile(
        task=task.digest,
        interval=document.interval,
        programs=tuple(program_hash(other) for other in programs),
        claim=claim(margin, [portion for portion, _ in portions], [rerun for rerun, _ in measured]),
        portions=tuple(detail for _, detail in portions),
        reruns=tuple(detail for _, detail in measured),
        slots=meter.slots,
    )


def require_thresholds(found: Profile) -> None:
    """Check that thresholds follow from a profile that was measured here, and that they bound every trained slot.

    Raises:
        UnsupportedError: they don't; the message names the tensors at fault.
    """
    try:
        thresholds = found.thresholds
    except UnsupportedError as error:
        for component in Component:
            if found.claim.demanded(component, found.claim.witnesses[component - 1]) is None:
                apart = furthest(found.slots, component)[:NAMED]
                names = ", ".join(f"{name} ({share:.0%})" for name, share in apart)
                raise UnsupportedError(f"{error}. Of the {component.name.lower()} state it is {names}") from error
        raise
    if found.claim.portions:
        require_limits(found.slots, thresholds, [portion.references for portion in found.claim.portions])


def _portion(program: StepProgram, start: Sequence[Words], end: Sequence[Words]) -> tuple[Portion, PortionDetail]:
    update = gaps(program, end, start)
    elements, l1, linf = (_each(update, name) for name in ("elements", "l1", "linf"))
    return Portion(_root(program, end), _each(update, "distance")), PortionDetail(elements, l1, linf)


def _rerun(
    program: StepProgram, start: Sequence[Words], end: Sequence[Words], rerun: Sequence[Words]
) -> tuple[Rerun, RerunDetail]:
    gap, own = gaps(program, end, rerun), gaps(program, rerun, start)
    l1, linf, squared = _each(gap, "l1"), _each(gap, "linf"), _each(own, "squared")
    return Rerun(_root(program, rerun), _each(gap, "distance")), RerunDetail(l1, linf, squared)


def _each(found: tuple[ComponentGap, ComponentGap, ComponentGap], name: str) -> Three:
    parameter, buffer, optimizer = (int(getattr(gap, name)) for gap in found)
    return parameter, buffer, optimizer


def _root(program: StepProgram, state: Sequence[Words]) -> bytes:
    return state_root([slot.type for slot in program.slots], state)
