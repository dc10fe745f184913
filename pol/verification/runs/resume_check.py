"""Whether a trainer's resumption equals an uninterrupted run: runs of the program itself, compared step by step.

One launch is uninterrupted, with a checkpoint after every step. The others are one chain in one store: the first of
them begins anew, is killed behind the checkpoint of the first cut, and shows whether the program repeats itself; each
further one resumes the one before, and is killed at the next cut; the last one goes to the end. A program may have
several processes that record together, or each for itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pol.errors import OperationalError
from pol.verification.runs.cut_places import Cut, cuts_of, steps_to_see, unseen
from pol.verification.runs.rehearsed_run import (
    RehearsedRun,
    UnrecordedState,
    read_reports,
    read_run,
    rehearsal_in,
    silent,
)
from pol.verification.runs.resume_diagnosis import (
    Advice,
    doubts,
    explain_different_runs,
    explain_failure,
    explain_lost,
    explain_not_portable,
    explain_resumption,
    explain_unseeded,
    is_held,
    some,
)
from pol.verification.runs.run_comparison import StateComparison, component_of, generators, undrawn
from pol.verification.runs.run_difference import Difference, beside_differing, first_difference, steady

BUFFERS, PARAMETERS = "buffers", "parameters"


def explain_lost_replicas(run: RehearsedRun, step: int) -> list[Advice]:
    """Advice on replicas that differ at a checkpoint that keeps those of the first process only."""
    found = []
    for rank, names in _reported(run, step).items():
        for component in sorted({component_of(name) for name in names} - {BUFFERS}):
            own = [name for name in names if component_of(name) == component]
            found.append(
                Advice(
                    f"rank {rank} holds other {component} than rank 0, and a checkpoint has rank 0's: {some(own)} "
                    f"differ after step {step}",
                    "make the replicas equal (DistributedDataParallel, or torch.distributed.broadcast), or give "
                    f"DistributedRecorder per_process=[{component!r}] if each process has its own",
                )
            )
    return found


def notes_on_replicas(whole: RehearsedRun, resumed: RehearsedRun | None, begin: int) -> list[str]:
    """What people should know about processes that go apart, although nothing is lost."""
    notes = []
    for rank, names in _reported(whole, begin).items():
        if own := [name for name in names if component_of(name) == BUFFERS]:
            notes.append(f"{some(own)} of rank {rank} differ from rank 0's: after a resumption all have rank 0's")
    before = _apart(whole)
    after = {} if resumed is None else _apart(resumed)
    for rank in sorted(before.keys() | after.keys()):
        if rank in before:
            step, names = before[rank]
            notes.append(f"{some(names)} of rank {rank} differ from rank 0's from step {step} on, uninterrupted too")
        else:
            step, names = after[rank]
            notes.append(f"{some(names)} of rank {rank} differ from rank 0's from step {step} on, after the resumption")
    return notes


def _reported(run: RehearsedRun, step: int) -> Mapping[int, Sequence[str]]:
    found = {rank: (report.parted or {}).get(step, ()) for rank, report in run.reports.items()}
    return {rank: names for rank, names in found.items() if names}


def _apart(run: RehearsedRun) -> dict[int, tuple[int, list[str]]]:
    """By process with a record of its own, the first step at which its parameters aren't those of the first record."""
    found = {}
    for rank, record in run.records.items():
        common = sorted(set(record.steps) & set(run.recorded.steps))
        for step in common:
            names = [] if record is run.recorded else list(_differing(run, rank, step))
            if names:
                found[rank] = (step, names)
                break
    return found


def _differing(run: RehearsedRun, rank: int, step: int) -> Iterator[str]:
    one, other = (record.document(record.checkpoint(step)).entries for record in (run.recorded, run.records[rank]))
    known = {entry.name: entry for entry in one if component_of(entry.name) == PARAMETERS}
    yield from (entry.name for entry in other if entry.name in known and known[entry.name] != entry)


EXACT, NOT_DETERMINISTIC, NOT_EXACT = "exact", "not deterministic", "resume not exact"
SEEN = "exact as far as seen"
"""Nothing differs, and the runs didn't reach all places at which a resumption has to be seen, or a variable does."""
NOT_PORTABLE = "not exact elsewhere"
"""The training repeats itself here, and has other bits with other instructions and another number of threads."""
OTHER_ROOTS = "two launches differ in root"
"""A resumption is exact, but another launch of the program has other complete roots."""
MIN_STEPS = 6
FURTHER = 10
"""Doctor goes so many times further than asked by itself, to see two epochs."""
OTHER_MACHINE = {"ATEN_CPU_CAPABILITY": "default", "POL_ISA": "baseline"}
"""Variables that let torch and the kernels of `pol` compute with other instructions."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
WHOLE, AGAIN, OTHER, CUT = FOLDERS = ("whole", "again", "other", "cut")
"""Folders of the runs: uninterrupted, the same again (made if something differs), on another machine, the chain."""


@dataclass(frozen=True)
class ProgramExit:
    """The end of a run of the program: its exit code (negative: a signal) and the tail of its output."""

    code: int
    output: str


ProgramRunner = Callable[[Mapping[str, str]], ProgramExit]
"""Runs the program once, with these variables in its environment."""


@dataclass(frozen=True)
class MadeCut:
    """A kill: where it was, after which step, and the step of the newest checkpoint, which was resumed."""

    where: str
    killed_at: int
    resumed_from: int


@dataclass(frozen=True)
class ResumeReport:
    """The result. ``step`` is the first at which the runs differ, after the last of the ``cuts`` that were made.

    not_seen: what the runs didn't reach. process: the first of the processes whose record differs, if they have several
    records.
    """

    verdict: str
    steps: int
    cuts: tuple[MadeCut, ...] = ()
    step: int | None = None
    difference: StateComparison | None = None
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
    process: int | None = None


def check_resumption(
    run: ProgramRunner,
    folder: Path,
    steps: int,
    tell: Callable[[str], None] = lambda _: None,
    other_threads: int | None = None,
    one_epoch: bool = False,
) -> ResumeReport:
    """Examine a trainer over its first ``steps`` steps, or two epochs if they are near; runs are kept in ``folder``.

    With ``other_threads``, a further run has so many threads and other instructions, as another machine would: an exact
    training (`pol.exact`) has the same bits there. one_epoch: the training has no second epoch to be seen.

    Raises:
        OperationalError: the program failed, recorded nothing, or is too short to be cut.
    """
    examination = _Examination(run, folder, steps, tell)
    if (found := examination.different_launches()) is not None:
        return found
    if other_threads is not None and (found := examination.elsewhere(other_threads)) is not None:
        return found
    for cut in (*examination.cuts, None):
        if (found := examination.launch(cut)) is not None:
            return found
    return examination.verdict(one_epoch)


class _Examination:
    """The runs so far: one uninterrupted, others that are uninterrupted at their beginning, and the chain of cuts."""

    def __init__(self, run: ProgramRunner, folder: Path, steps: int, tell: Callable[[str], None]):
        self._run, self._folder, self._tell = run, folder, tell
        self._stop, self._limit = steps, FURTHER * steps
        tell(f"uninterrupted, to step {steps}")
        self.whole = self._uninterrupted(WHOLE)
        if self.whole.last_step < MIN_STEPS:
            raise OperationalError(
                f"the training ended after {self.whole.last_step} steps, at least {MIN_STEPS} are needed to cut it"
            )
        self._others: dict[str, RehearsedRun] = {}
        self._extend()
        self.cuts = cuts_of(self.whole.recorded)
        self._made: list[MadeCut] = []
        self._lost: dict[tuple[str, str], UnrecordedState] = {}
        self._notes: list[str] = []
        self._replicas: list[Advice] = []

    def _extend(self) -> None:
        """Go on to the end of the second epoch, or into it, if that isn't far and the disk has space for it."""
        needed = steps_to_see(self.whole.recorded)
        if needed is None or self._ended_itself or needed[0] <= self._stop:
            return
        used = sum(path.stat().st_size for path in (self._folder / WHOLE).rglob("*") if path.is_file())
        space = shutil.disk_usage(self._folder).free // (4 * (used // self.whole.last_step + 1))
        further = [steps for steps in reversed(needed) if steps <= min(self._limit, space)]
        if further:
            self._tell(f"uninterrupted again, to step {further[0]}, as an epoch isn't over after {self._stop}")
            (self._folder / WHOLE).rename(self._folder / AGAIN)
            self._others[AGAIN] = read_run(self._folder / AGAIN, rehearsal_in(self._folder / AGAIN, stop=self._stop))
            self._stop = further[0]
            self.whole = self._uninterrupted(WHOLE)

    @property
    def _ended_itself(self) -> bool:
        return self.whole.last_step < self._stop

    def different_launches(self) -> ResumeReport | None:
        """The verdict if launches that nothing has interrupted differ."""
        for other in self._others.values():
            if (first := first_difference(self.whole, other, -1)) is not None:
                beside = beside_differing(self.whole, other, range(first.found.step + 1))
                return self._report(NOT_DETERMINISTIC, explain_different_runs(first.found, beside), first)
        return None

    def elsewhere(self, threads: int) -> ResumeReport | None:
        """The verdict if the program has other bits with other instructions and threads."""
        self._tell(f"uninterrupted, with the plainest instructions, threads: {threads}")
        other = self._uninterrupted(OTHER, {**OTHER_MACHINE, **dict.fromkeys(THREADS, str(threads))})
        first = first_difference(self.whole, other, -1, "environment")
        return None if first is None else self._report(NOT_PORTABLE, [explain_not_portable(first.found)], first)

    def launch(self, cut: Cut | None) -> ResumeReport | None:
        """Begin, or resume, and be killed behind the checkpoint of a cut, or go to the end; the verdict on a fault."""
        begin = self._made[-1].resumed_from if self._made else None
        kill, end = (None, self.whole.last_step) if cut is None else (cut.step + 1, cut.step)
        begun = "begun anew" if begin is None else f"resumed from step {begin}"
        self._tell(f"{begun}, to step {end}" if cut is None else f"{begun}, killed after step {kill}, {cut.where}")
        rehearsal = rehearsal_in(
            self._folder / CUT, stop=None if cut else self._stop, kill=kill, launch=len(self._made)
        )
        ended = self._run(rehearsal.environment())
        found = read_run(self._folder / CUT, rehearsal)
        if found.last_step < end or (cut is None and ended.code):
            if begin is None:
                said = found.failed or ended.output
                raise OperationalError(f"launched again, the program ended with code {ended.code}: {said}")
            return self._report(NOT_EXACT, [explain_failure(ended.code, found.failed, ended.output)])
        if begin is None:
            self._others[CUT] = found
            if (different := self.different_launches()) is not None:
                return different
        else:
            self._replicas += explain_lost_replicas(self.whole, begin)
            self._notes += notes_on_replicas(self.whole, found, begin)
            if (first := first_difference(self.whole, found, begin)) is not None:
                return self._explained(found, first, begin)
            differing = beside_differing(self.whole, found, range(begin + 1, end + 1))
            self._lost |= {(item.name, item.where): item for item in differing}
        if cut is not None:
            self._made.append(MadeCut(cut.where, cut.step + 1, found.last_step))
        self.chain = found
        return None

    def _explained(self, found: RehearsedRun, first: Difference, begin: int) -> ResumeReport:
        """The verdict on a difference after a resumption: it may be one between launches, too."""
        if (different := self._repeated()) is not None:
            return different
        names = steady(self.whole, list(self._others.values()))
        differing = beside_differing(self.whole, found, range(begin + 1, first.found.step + 1))
        beside = [item for item in differing if item.name in names]
        where = "" if first.named is None else self.whole.of_rank(first.named)
        return self._report(NOT_EXACT, [*self._replicas, *explain_resumption(first.found, beside, where)], first)

    def _repeated(self) -> ResumeReport | None:
        """The verdict if a further uninterrupted launch, as far as the first, differs from it."""
        known = self._others.get(AGAIN)
        if known is None or known.last_step < self.whole.last_step:
            self._tell(f"uninterrupted once more, to step {self.whole.last_step}: is it the resumption that differs?")
            shutil.rmtree(self._folder / AGAIN, ignore_errors=True)
            self._others[AGAIN] = self._uninterrupted(AGAIN)
        return self.different_launches()

    def verdict(self, one_epoch: bool) -> ResumeReport:
        """The verdict on launches whose records are equal."""
        if any(is_held(item) for item in self._lost.values()) and (different := self._repeated()) is not None:
            return different
        names = steady(self.whole, list(self._others.values()))
        lost = [item for item in self._lost.values() if item.name in names]
        if self._replicas or any(is_held(item) for item in lost):
            return self._report(NOT_EXACT, [*self._replicas, *explain_lost(lost)])
        pairs = ((record, self.chain.records[rank]) for rank, record in self.whole.records.items())
        if unseeded := sorted({name for pair in pairs for name in generators(undrawn(*pair))}):
            return self._report(OTHER_ROOTS, [explain_unseeded(unseeded)])
        not_seen = [] if one_epoch or self._ended_itself else unseen(self.whole.recorded, self.cuts, self._limit)
        not_seen += doubts(lost)
        return self._report(SEEN if not_seen else EXACT, not_seen=not_seen)

    def _report(
        self, verdict: str, advice: Sequence[Advice] = (), first: Difference | None = None, not_seen: Sequence[str] = ()
    ) -> ResumeReport:
        return ResumeReport(
            verdict,
            self.whole.last_step,
            tuple(self._made),
            None if first is None else first.found.step,
            None if first is None else first.found,
            tuple(dict.fromkeys(advice)),
            tuple(dict.fromkeys(self._notes)),
            tuple(not_seen),
            None if first is None else first.named,
        )

    def _uninterrupted(self, name: str, machine: Mapping[str, str] | None = None) -> RehearsedRun:
        rehearsal = rehearsal_in(self._folder / name, stop=self._stop)
        ended = self._run({**rehearsal.environment(), **(machine or {})})
        reports = read_reports(rehearsal)
        if (alone := silent(reports)) is not None:
            raise OperationalError(
                f"rank {alone} records nothing: make a DistributedRecorder on all processes, or a Recorder on each"
            )
        if ended.code:
            failed = next((report.failed for report in reports.values() if report.failed), ended.output)
            raise OperationalError(f"the program ended with code {ended.code}: {failed}")
        return read_run(self._folder / name, rehearsal)
