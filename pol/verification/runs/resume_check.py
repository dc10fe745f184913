"""Whether a trainer's resumption equals an uninterrupted run: four runs of the program itself, compared step by step.

(1) uninterrupted, a checkpoint after every step; (2) the same again, for a trainer that isn't deterministic can't be
resumed exactly; (3) killed in the middle of an epoch, some steps after a checkpoint; (4) resumed from that.
"""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pol.errors import OperationalError, PolError
from pol.training.record import learning_record
from pol.training.record.recorded_run import RecordedRun, open_run
from pol.training.recorder.doctor_control import Rehearsal
from pol.training.state import readable
from pol.verification.runs.resume_diagnosis import (
    GRADIENTS,
    LOADER,
    Advice,
    RunDifference,
    UnrecordedState,
    explain_different_runs,
    explain_lost,
    explain_not_portable,
    explain_resumption,
    explain_unseeded,
)
from pol.verification.runs.run_comparison import StateComparison, compare_states

EXACT, NOT_DETERMINISTIC, NOT_EXACT = "exact", "not deterministic", "resume not exact"
NOT_PORTABLE = "not exact elsewhere"
"""The training repeats itself here, and has other bits with other instructions and another number of threads."""
OTHER_ROOTS = "two launches differ in root"
"""A resumption is exact, but another launch of the program has other complete roots."""
MIN_STEPS = 6
OTHER_MACHINE = {"ATEN_CPU_CAPABILITY": "default", "POL_ISA": "baseline"}
"""Variables that let torch and the kernels of `pol` compute with other instructions."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class ProgramExit:
    """The end of a run of the program: its exit code (negative: a signal) and the tail of its output."""

    code: int
    output: str


ProgramRunner = Callable[[Mapping[str, str]], ProgramExit]
"""Runs the program once, with these variables in its environment."""


@dataclass(frozen=True)
class ResumeReport:
    """The result. ``step`` is the first at which the runs differ; ``killed_at`` and ``resumed_from`` tell the cut."""

    verdict: str
    steps: int
    resumed_from: int | None = None
    killed_at: int | None = None
    step: int | None = None
    difference: StateComparison | None = None
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class _Run:
    recorded: RecordedRun
    beside: Mapping[int, Mapping[str, UnrecordedState]]
    lost: tuple[str, ...] = ()
    """Entries that weren't as recorded right after the resumption."""


def check_resumption(
    run: ProgramRunner,
    folder: Path,
    steps: int,
    tell: Callable[[str], None] = lambda _: None,
    other_threads: int | None = None,
) -> ResumeReport:
    """Examine a trainer over its first ``steps`` steps; the runs are kept in ``folder``.

    With ``other_threads``, a further run has so many threads and other instructions, as another machine would: an exact
    training (`pol.exact`) has the same bits there.

    Raises:
        OperationalError: the program failed, recorded nothing, or is too short to be cut.
    """
    tell(f"1 of 4: uninterrupted to step {steps}")
    whole = _uninterrupted(run, folder / "whole", steps)
    steps = whole.recorded.steps[-1]
    if steps < MIN_STEPS:
        raise OperationalError(f"the training ended after {steps} steps, at least {MIN_STEPS} are needed to cut it")
    tell("2 of 4: the same again")
    again = _uninterrupted(run, folder / "again", steps)
    unused = _never_drawn(whole.recorded, again.recorded)
    unseeded = sorted(name for name in unused if name.startswith("random/"))
    notes = list[str]()
    if (found := _first_difference(whole.recorded, again.recorded, unused, -1)) is not None:
        advice = explain_different_runs(_facts(whole, again, found, unused))
        return ResumeReport(NOT_DETERMINISTIC, steps, None, None, found.step, found, tuple(advice), tuple(notes))
    if other_threads is not None:
        tell(f"one more: with the plainest instructions, threads: {other_threads}")
        machine = {**OTHER_MACHINE, **dict.fromkeys(THREADS, str(other_threads))}
        other = _uninterrupted(lambda variables: run({**variables, **machine}), folder / "other", steps)
        found = _first_difference(whole.recorded, other.recorded, unused | _of_machine(whole.recorded), -1)
        if found is not None:
            advice = [explain_not_portable(found)]
            return ResumeReport(NOT_PORTABLE, steps, None, None, found.step, found, tuple(advice), tuple(notes))
    begin = _cut(whole.recorded, steps)
    kill = begin + min(2, begin - 1)
    tell(f"3 of 4: killed after step {kill}, in an epoch, {kill - begin} after the checkpoint of step {begin}")
    resumed = _resumed(run, folder / "cut", begin, kill, steps, tell)
    if isinstance(resumed, ProgramExit):
        what = f"the resumed program ended with code {resumed.code}: {resumed.output}"
        return ResumeReport(
            NOT_EXACT, steps, begin, kill, begin, None, (Advice(what, "make it run on from its checkpoint"),)
        )
    notes += _limits(whole.recorded, steps, begin)
    steady = _steady(whole.beside, again.beside)
    found = _first_difference(whole.recorded, resumed.recorded, unused, begin)
    if found is not None:
        advice = explain_resumption(_facts(whole, resumed, found, unused, steady, begin))
        return ResumeReport(NOT_EXACT, steps, begin, kill, found.step, found, tuple(advice), tuple(notes))
    lost = explain_lost(_beside_differing(whole, resumed, steps, steady), resumed.lost)
    if lost:
        return ResumeReport(NOT_EXACT, steps, begin, kill, None, None, tuple(lost), tuple(notes))
    if unseeded:
        advice = [explain_unseeded(unseeded)]
        return ResumeReport(OTHER_ROOTS, steps, begin, kill, None, None, tuple(advice), tuple(notes))
    return ResumeReport(EXACT, steps, begin, kill, None, None, (), tuple(notes))


def _uninterrupted(run: ProgramRunner, folder: Path, steps: int) -> _Run:
    rehearsal = _rehearsal(folder, 1, stop=steps)
    ended = run(rehearsal.environment())
    if ended.code:
        raise OperationalError(f"the program ended with code {ended.code}: {ended.output}")
    return _read(folder, rehearsal)


def _resumed(
    run: ProgramRunner, folder: Path, begin: int, kill: int, steps: int, tell: Callable[[str], None]
) -> _Run | ProgramExit:
    """The run that was killed and resumed, or how its resumption failed."""
    ended = run(_rehearsal(folder, begin, kill=kill).environment())
    cut = open_run(str(folder / "store"))
    if cut.steps[-1] != begin:
        raise OperationalError(
            f"the run to be killed after step {kill} has its last checkpoint at step {cut.steps[-1]}, not at {begin}; "
            f"it ended with code {ended.code}: {ended.output}"
        )
    # From here on every step is recorded, to find the first one that differs.
    learning_record.publish(cut.store, dataclasses.replace(cut.record, interval=1))
    tell(f"4 of 4: resumed from step {begin} to step {steps}")
    rehearsal = _rehearsal(folder, 1, stop=steps)
    ended = run(rehearsal.environment())
    found = _read(folder, rehearsal)
    if ended.code or found.recorded.steps[-1] == begin:
        return ended
    return found


def _rehearsal(folder: Path, every: int, *, stop: int | None = None, kill: int | None = None) -> Rehearsal:
    folder.mkdir(parents=True, exist_ok=True)
    store = f"file://{(folder / 'store').resolve()}"
    return Rehearsal(store, every, stop, kill, (folder / "beside.jsonl").resolve() if kill is None else None)


def _read(folder: Path, rehearsal: Rehearsal) -> _Run:
    try:
        recorded = open_run(str(folder / "store"))
    except PolError as error:
        raise OperationalError(
            "the program recorded nothing: it has to use pol.training.Recorder, or an integration, and reach a step"
        ) from error
    beside: dict[int, Mapping[str, UnrecordedState]] = {}
    lost: tuple[str, ...] = ()
    report = rehearsal.report
    if report is not None and report.exists():
        for line in report.read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            if "lost" in item:
                lost = tuple(item["lost"])
                continue
            beside[item["step"]] = {name: UnrecordedState(name, *found) for name, found in item["beside"].items()}
    return _Run(recorded, beside, lost)


def _first_difference(a: RecordedRun, b: RecordedRun, unused: set[str], after: int) -> StateComparison | None:
    """The first step after ``after`` at which two runs differ; one that only one of them has counts as well."""
    for step in sorted(set(a.steps) & set(b.steps)):
        if step <= after or a.checkpoint(step).root == b.checkpoint(step).root:
            continue
        found = compare_states(a.document(a.checkpoint(step)), b.document(b.checkpoint(step)))
        entries = tuple(entry for entry in found.entries if entry.name not in unused)
        if entries:
            return dataclasses.replace(found, entries=entries)
    return None


def _never_drawn(a: RecordedRun, b: RecordedRun) -> set[str]:
    """States of unused, unseeded generators: they differ between two runs and never change in either."""
    contents: tuple[dict[str, set[bytes]], dict[str, set[bytes]]] = (defaultdict(set), defaultdict(set))
    for run, found in zip((a, b), contents, strict=True):
        for checkpoint in run.record.checkpoints:
            for entry in run.document(checkpoint).entries:
                if entry.name.startswith(("random/", "cursor/")):
                    found[entry.name].add(entry.content)
    one, other = contents
    return {name for name in one if len(one[name]) == 1 == len(other[name]) and one[name] != other[name]}


def _of_machine(run: RecordedRun) -> set[str]:
    """Entries of a state that name the machine."""
    entries = run.document(run.record.checkpoints[0]).entries
    return {entry.name for entry in entries if entry.name.partition("/")[0] == "environment"}


def _cut(run: RecordedRun, steps: int) -> int:
    """The checkpoint to resume from: between backward passes that add up if there are such, in the middle of an epoch
    if it can be not the first, near the middle of the run.
    """
    choices = []
    for step in range(max(2, steps // 4), 3 * steps // 4 + 1):
        cursor = _cursor(run, step)
        updated = _parameters(run, step) != _parameters(run, step - 1)
        choices.append(
            (updated, cursor.get("batch", "0") == "0", cursor.get("epoch", "0") == "0", abs(step - steps / 2), step)
        )
    return min(choices)[-1]


def _parameters(run: RecordedRun, step: int) -> list[bytes]:
    entries = run.document(run.checkpoint(step)).entries
    return [entry.content for entry in entries if entry.name.startswith("parameters/")]


def _cursor(run: RecordedRun, step: int) -> Mapping[str, str]:
    document = run.document(run.checkpoint(step)).documents.get("cursor")
    tree = readable.of_document("cursor", document) if document is not None else ""
    return {} if isinstance(tree, str) else {name: text for name, text in tree.items() if isinstance(text, str)}


def _limits(run: RecordedRun, steps: int, begin: int) -> list[str]:
    """Limits of the check: what the runs were too short to show."""
    notes = []
    first, last = _cursor(run, begin), _cursor(run, steps)
    if not _follows_data(last):
        notes.append("the recorder saw no batch: the order of the data was compared by its effect only")
    elif first.get("epoch") == last.get("epoch"):
        notes.append(f"no epoch began between step {begin} and step {steps}: give more --steps to see one")
    return notes


def _follows_data(cursor: Mapping[str, str]) -> bool:
    return cursor.get("seen", "0x").strip("0x") != ""


def _steady(a: Mapping[int, Mapping[str, UnrecordedState]], b: Mapping[int, Mapping[str, UnrecordedState]]) -> set[str]:
    """Unrecorded state that was the same in two uninterrupted runs, and so is neither a clock nor an address."""
    names = {name for step in a for name in a[step]}
    return {name for name in names if all(a[step].get(name) == b.get(step, {}).get(name) for step in a)}


def _beside_differing(a: _Run, b: _Run, step: int, steady: set[str] | None) -> list[UnrecordedState]:
    one, other = a.beside.get(step, {}), b.beside.get(step, {})
    return [
        found
        for name, found in one.items()
        if name in other and found != other[name] and (steady is None or name in steady)
    ]


def _facts(
    a: _Run, b: _Run, found: StateComparison, unused: set[str], steady: set[str] | None = None, begin: int = 0
) -> RunDifference:
    held_back = begin > 0 and _parameters(a.recorded, begin) == _parameters(a.recorded, begin - 1)
    return RunDifference(
        difference=found,
        paths={
            component: [path for path in found.in_component(component) if path not in unused]
            for component in found.components
        },
        follows_data=_follows_data(_cursor(a.recorded, a.recorded.steps[-1])),
        beside=_beside_differing(a, b, found.step, steady),
        lost=b.lost,
        loaders=[item.name for item in a.beside.get(found.step, {}).values() if item.kind == LOADER],
        pending=held_back and any(item.kind == GRADIENTS for item in a.beside.get(begin, {}).values()),
    )
