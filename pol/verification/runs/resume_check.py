"""Whether a trainer's resumption equals an uninterrupted run: four runs of the program itself, compared step by step.

(1) uninterrupted, a checkpoint after every step; (2) the same again, for a trainer that isn't deterministic can't be
resumed exactly; (3) killed in the middle of an epoch, some steps after a checkpoint; (4) resumed from that. A program
may have several processes that record together, or each for itself.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pol.errors import OperationalError
from pol.training.record import learning_record
from pol.training.record.recorded_run import RecordedRun
from pol.training.state import readable
from pol.verification.runs.rehearsed_run import RehearsedRun, read_reports, read_run, rehearsal_in, silent
from pol.verification.runs.replica_check import explain_lost_replicas, notes_on_replicas
from pol.verification.runs.resume_diagnosis import (
    GRADIENTS,
    LOADER,
    Advice,
    RunDifference,
    UnrecordedState,
    explain_different_runs,
    explain_failure,
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
    """The result. ``step`` is the first at which the runs differ; ``killed_at`` and ``resumed_from`` tell the cut.

    ``process`` is the first of the processes whose record differs, if they have several records.
    """

    verdict: str
    steps: int
    resumed_from: int | None = None
    killed_at: int | None = None
    step: int | None = None
    difference: StateComparison | None = None
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = field(default=())
    process: int | None = None


@dataclass(frozen=True)
class _Difference:
    """The first difference of two runs, and the process whose record shows it."""

    found: StateComparison
    process: int
    records: int

    @property
    def named(self) -> int | None:
        """The process, if there are several records."""
        return self.process if self.records > 1 else None


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
    steps = whole.last_step
    if steps < MIN_STEPS:
        raise OperationalError(f"the training ended after {steps} steps, at least {MIN_STEPS} are needed to cut it")
    tell("2 of 4: the same again")
    again = _uninterrupted(run, folder / "again", steps)
    unused = {rank: _never_drawn(record, again.records[rank]) for rank, record in whole.records.items()}
    unseeded = sorted({name for names in unused.values() for name in names if name.startswith("random/")})
    if (first := _first_difference(whole, again, unused, -1)) is not None:
        advice = explain_different_runs(_facts(whole, again, first, unused))
        return _report(NOT_DETERMINISTIC, steps, None, first, advice)
    if other_threads is not None:
        tell(f"one more: with the plainest instructions, threads: {other_threads}")
        machine = {**OTHER_MACHINE, **dict.fromkeys(THREADS, str(other_threads))}
        other = _uninterrupted(lambda variables: run({**variables, **machine}), folder / "other", steps)
        of_machine = {rank: names | _of_machine(whole.records[rank]) for rank, names in unused.items()}
        if (first := _first_difference(whole, other, of_machine, -1)) is not None:
            return _report(NOT_PORTABLE, steps, None, first, [explain_not_portable(first.found)])
    begin = _cut(whole.recorded, steps)
    kill = begin + min(2, begin - 1)
    cut = (begin, kill)
    tell(f"3 of 4: killed after step {kill}, in an epoch, {kill - begin} after the checkpoint of step {begin}")
    resumed = _resumed(run, folder / "cut", begin, kill, steps, tell)
    if isinstance(resumed, ProgramExit):
        return ResumeReport(NOT_EXACT, steps, *cut, begin, None, (explain_failure(resumed.code, resumed.output),))
    notes = [*_limits(whole.recorded, steps, begin), *notes_on_replicas(whole, resumed, begin)]
    replicas = explain_lost_replicas(whole, begin)
    steady = {rank: _steady(whole, again, rank) for rank in whole.reports}
    if (first := _first_difference(whole, resumed, unused, begin)) is not None:
        advice = [*replicas, *explain_resumption(_facts(whole, resumed, first, unused, steady, begin))]
        return _report(NOT_EXACT, steps, cut, first, advice, notes)
    lost = [*replicas, *explain_lost(_beside_differing(whole, resumed, steps, steady), _lost(resumed))]
    if lost:
        return _report(NOT_EXACT, steps, cut, None, lost, notes)
    if unseeded:
        return _report(OTHER_ROOTS, steps, cut, None, [explain_unseeded(unseeded)], notes)
    return _report(EXACT, steps, cut, None, [], notes)


def _report(
    verdict: str,
    steps: int,
    cut: tuple[int, int] | None,
    first: _Difference | None,
    advice: Sequence[Advice],
    notes: Sequence[str] = (),
) -> ResumeReport:
    begin, kill = cut or (None, None)
    found, process = (None, None) if first is None else (first.found, first.named)
    step = None if found is None else found.step
    return ResumeReport(verdict, steps, begin, kill, step, found, tuple(advice), tuple(notes), process)


def _uninterrupted(run: ProgramRunner, folder: Path, steps: int) -> RehearsedRun:
    rehearsal = rehearsal_in(folder, 1, stop=steps)
    ended = run(rehearsal.environment())
    reports = read_reports(rehearsal)
    if (alone := silent(reports)) is not None:
        raise OperationalError(
            f"rank {alone} records nothing: make a DistributedRecorder on all processes, or a Recorder on each"
        )
    if ended.code:
        failed = next((report.failed for report in reports.values() if report.failed), ended.output)
        raise OperationalError(f"the program ended with code {ended.code}: {failed}")
    return read_run(folder, rehearsal)


def _resumed(
    run: ProgramRunner, folder: Path, begin: int, kill: int, steps: int, tell: Callable[[str], None]
) -> RehearsedRun | ProgramExit:
    """The run that was killed and resumed, or how its resumption failed."""
    killing = rehearsal_in(folder, begin, kill=kill)
    ended = run(killing.environment())
    cut = read_run(folder, killing)
    for record in cut.records.values():
        if record.steps[-1] != begin:
            raise OperationalError(
                f"the run to be killed after step {kill} has its last checkpoint at step {record.steps[-1]}, not at "
                f"{begin}; it ended with code {ended.code}: {cut.failed or ended.output}"
            )
        # From here on every step is recorded, to find the first one that differs.
        learning_record.publish(record.store, dataclasses.replace(record.record, interval=1))
    tell(f"4 of 4: resumed from step {begin} to step {steps}")
    rehearsal = rehearsal_in(folder, 1, stop=steps)
    ended = run(rehearsal.environment())
    found = read_run(folder, rehearsal)
    if ended.code or found.last_step == begin:
        return dataclasses.replace(ended, output=found.failed or ended.output)
    return found


def _first_difference(
    a: RehearsedRun, b: RehearsedRun, unused: Mapping[int, set[str]], after: int
) -> _Difference | None:
    """The first step at which records of two runs differ, in the process that differs in most components then."""
    found = {rank: _differing(a.records[rank], b.records[rank], unused[rank], after) for rank in a.records}
    first = [(f.step, -len(f.components), rank) for rank, f in found.items() if f is not None]
    if not first:
        return None
    rank = min(first)[-1]
    comparison = found[rank]
    assert comparison is not None
    return _Difference(comparison, rank, len(found))


def _differing(a: RecordedRun, b: RecordedRun, unused: set[str], after: int) -> StateComparison | None:
    """The first step after ``after`` at which two records differ; one that only one of them has counts as well."""
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
    if isinstance(tree, dict) and isinstance(ranks := tree.get("ranks"), dict):
        tree = ranks["0"]
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


def _steady(a: RehearsedRun, b: RehearsedRun, rank: int) -> set[str]:
    """Unrecorded state that was the same in two uninterrupted runs, and so is neither a clock nor an address."""
    one, other = a.reports[rank].beside, b.reports[rank].beside
    names = {name for step in one for name in one[step]}
    return {name for name in names if all(one[step].get(name) == other.get(step, {}).get(name) for step in one)}


def _beside_differing(
    a: RehearsedRun, b: RehearsedRun, step: int, steady: Mapping[int, set[str]] | None
) -> list[UnrecordedState]:
    """Unrecorded state that differs after a step; it says of which process, unless it differs in all."""
    by_rank: dict[int, dict[str, UnrecordedState]] = {}
    for rank, report in a.reports.items():
        one, other = report.beside.get(step, {}), b.reports[rank].beside.get(step, {}) if rank in b.reports else {}
        by_rank[rank] = {
            name: found
            for name, found in one.items()
            if name in other and found != other[name] and (steady is None or name in steady[rank])
        }
    found = []
    for rank, differing in by_rank.items():
        for name, item in differing.items():
            holders = [other for other, names in by_rank.items() if name in names]
            if len(holders) < len(by_rank):
                found.append(dataclasses.replace(item, where=a.of_rank(rank)))
            elif rank == holders[0]:
                found.append(item)
    return found


def _lost(run: RehearsedRun) -> dict[str, tuple[str, ...]]:
    """By process in words, the entries that weren't as recorded right after the resumption."""
    return {run.of_rank(rank): report.lost for rank, report in run.reports.items() if report.lost}


def _facts(
    a: RehearsedRun,
    b: RehearsedRun,
    first: _Difference,
    unused: Mapping[int, set[str]],
    steady: Mapping[int, set[str]] | None = None,
    begin: int = 0,
) -> RunDifference:
    found, record, left = first.found, a.records[first.process], unused[first.process]
    held_back = begin > 0 and _parameters(record, begin) == _parameters(record, begin - 1)
    report = a.reports.get(first.process)
    beside = {} if report is None else report.beside
    return RunDifference(
        difference=found,
        paths={
            component: [path for path in found.in_component(component) if path not in left]
            for component in found.components
        },
        follows_data=_follows_data(_cursor(record, record.steps[-1])),
        beside=_beside_differing(a, b, found.step, steady),
        lost=_lost(b),
        loaders=[item.name for item in beside.get(found.step, {}).values() if item.kind == LOADER],
        pending=held_back and any(item.kind == GRADIENTS for item in beside.get(begin, {}).values()),
        where="" if first.named is None else a.of_rank(first.named),
    )
