"""One run of a program under `pol doctor`: what each of its processes has recorded and reported."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pol.errors import OperationalError, PolError
from pol.training.record.recorded_run import RecordedRun, open_run
from pol.training.recorder.doctor_control import Rehearsal

STORE = "store"
PROCESS = "rank"

_ATTRIBUTE = re.compile(r"attribute (.+?) of (.+)")


@dataclass(frozen=True)
class UnrecordedState:
    """State of the program that isn't recorded: where it is, what it is, and its digest or its value.

    read: after how many instructions the loop reads the variable; -1 if it is overwritten before. where: words for the
    process that has it, if it is one of several.
    """

    name: str
    kind: str
    value: str
    read: int = field(default=-1, compare=False)
    where: str = ""

    @property
    def expression(self) -> str:
        """The variable, or the attribute of an object, as one writes it."""
        if (found := _ATTRIBUTE.fullmatch(self.name)) is not None:
            return f"{'model' if found[2] == 'the model' else found[2].split()[-1]}.{found[1]}"
        return self.name.partition(" (")[0]

    @property
    def key(self) -> str:
        """A name for it among the parts."""
        return str(re.findall(r"[^\W\d]\w*", self.expression)[-1])


@dataclass(frozen=True)
class ProcessReport:
    """What a process reported.

    beside: unrecorded state after each step. parted: by step, arrays of which it holds another replica than the first
    process. failed: an error of its recorder. size: the number of processes.
    """

    beside: Mapping[int, Mapping[str, UnrecordedState]]
    parted: Mapping[int, tuple[str, ...]] | None = None
    failed: str = ""
    size: int = 1


@dataclass(frozen=True)
class RehearsedRun:
    """The records of a run, by the first of the processes that record together, and the reports of all processes."""

    records: Mapping[int, RecordedRun]
    reports: Mapping[int, ProcessReport]

    @cached_property
    def recorded(self) -> RecordedRun:
        """The first record."""
        return self.records[min(self.records)]

    @property
    def last_step(self) -> int:
        """The last step that all records have."""
        return min(record.steps[-1] for record in self.records.values())

    @property
    def failed(self) -> str:
        """The first error of a recorder; empty if there was none."""
        return next((report.failed for report in self.reports.values() if report.failed), "")

    def of_rank(self, rank: int) -> str:
        """Words for a process among several."""
        return f" of rank {rank}" if len(self.reports) > 1 else ""


def rehearsal_in(folder: Path, *, stop: int | None = None, kill: int | None = None, launch: int = 0) -> Rehearsal:
    """The rehearsal of a run that is kept in a folder; ``launch`` counts those of one run."""
    folder.mkdir(parents=True, exist_ok=True)
    return Rehearsal(f"file://{(folder / STORE).resolve()}", stop, kill, (folder / f"beside{launch}.jsonl").resolve())


def read_run(folder: Path, rehearsal: Rehearsal) -> RehearsedRun:
    """What a run left in its folder. Raises OperationalError: it recorded nothing."""
    places = sorted((folder / STORE).glob(f"{PROCESS}*"), key=lambda place: int(place.name.removeprefix(PROCESS)))
    reports = read_reports(rehearsal)
    try:
        if not places:
            records = {0: open_run(str(folder / STORE))}
        else:
            records = {int(place.name.removeprefix(PROCESS)): open_run(str(place)) for place in places}
    except PolError as error:
        raise OperationalError(
            "the program recorded nothing: it has to use pol.training.Recorder, or an integration, and reach a step"
        ) from error
    return RehearsedRun(records, reports)


def read_reports(rehearsal: Rehearsal) -> dict[int, ProcessReport]:
    """The reports of all processes that recorded, by rank."""
    report = rehearsal.report
    if report is None:
        return {}
    if report.exists():
        return {0: _read(report)}
    found = report.parent.glob(f"{report.stem}.{PROCESS}*{report.suffix}")
    by_rank = {int(path.name.split(".")[1].removeprefix(PROCESS)): path for path in found}
    return {rank: _read(by_rank[rank]) for rank in sorted(by_rank)}


def silent(reports: Mapping[int, ProcessReport]) -> int | None:
    """The first process that doesn't record, while others do."""
    size = max((report.size for report in reports.values()), default=0)
    return next((rank for rank in range(size) if rank not in reports), None)


def _read(report: Path) -> ProcessReport:
    beside: dict[int, Mapping[str, UnrecordedState]] = {}
    parted: dict[int, tuple[str, ...]] = {}
    failed, size = "", 1
    for line in report.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        failed = failed or item.get("failed", "")
        size = item.get("size", size)
        if "parted" in item:
            parted[item["at"]] = tuple(item["parted"])
        if "step" in item:
            beside[item["step"]] = {name: UnrecordedState(name, *found) for name, found in item["beside"].items()}
    return ProcessReport(beside, parted, failed, size)
