"""Where two runs of a program differ first: in their records, and in state that is in no record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pol.training.record.recorded_run import RecordedRun
from pol.training.recorder.unrecorded_state import TENSOR, VALUE
from pol.verification.runs.rehearsed_run import RehearsedRun, UnrecordedState
from pol.verification.runs.run_comparison import StateComparison, compare_states, component_of, undrawn


@dataclass(frozen=True)
class Difference:
    """The first difference of two runs, and the process whose record shows it."""

    found: StateComparison
    process: int
    records: int

    @property
    def named(self) -> int | None:
        """The process, if there are several records."""
        return self.process if self.records > 1 else None


def first_difference(a: RehearsedRun, b: RehearsedRun, after: int, apart: str = "") -> Difference | None:
    """The first step after ``after`` at which records of two runs differ, in the process that differs most then.

    Generators that nobody drew from don't count, nor does the component ``apart``.
    """
    found = {rank: _differing(a.records[rank], b.records[rank], after, apart) for rank in a.records}
    first = [(f.step, -len(f.components), rank) for rank, f in found.items() if f is not None]
    if not first:
        return None
    rank = min(first)[-1]
    comparison = found[rank]
    assert comparison is not None
    return Difference(comparison, rank, len(found))


def _differing(a: RecordedRun, b: RecordedRun, after: int, apart: str) -> StateComparison | None:
    ignored: set[str] | None = None
    for step in sorted(set(a.steps) & set(b.steps)):
        if step <= after or a.checkpoint(step).root == b.checkpoint(step).root:
            continue
        ignored = undrawn(a, b) if ignored is None else ignored
        found = compare_states(a.document(a.checkpoint(step)), b.document(b.checkpoint(step))).without(ignored)
        found = found.without({entry.name for entry in found.entries if component_of(entry.name) == apart})
        if found.entries:
            return found
    return None


def steady(a: RehearsedRun, others: Sequence[RehearsedRun]) -> set[str]:
    """Unrecorded state that was the same in all launches that nothing interrupted: no clocks, no addresses."""
    names: set[str] = set()
    for rank, report in a.reports.items():
        found = {name for state in report.beside.values() for name in state}
        for other in others:
            beside = other.reports[rank].beside if rank in other.reports else {}
            found -= {
                name
                for step in report.beside.keys() & beside.keys()
                for name, item in report.beside[step].items()
                if beside[step].get(name) != item
            }
        names |= found
    return names


def beside_differing(a: RehearsedRun, b: RehearsedRun, steps: Iterable[int]) -> list[UnrecordedState]:
    """Unrecorded state that differs after some steps, what is read first before the rest.

    It says of which process, unless it differs in all. A variable that ``b`` lacks differs as well.
    """
    by_rank: dict[int, dict[str, UnrecordedState]] = {}
    for rank, report in a.reports.items():
        beside = b.reports[rank].beside if rank in b.reports else {}
        by_rank[rank] = {}
        for step in steps:
            if step not in report.beside or step not in beside:
                continue
            for name, item in report.beside[step].items():
                lacks = None if item.kind in (VALUE, TENSOR) else item
                if beside[step].get(name, lacks) != item:
                    by_rank[rank].setdefault(name, item)
    found = []
    for rank, differing in by_rank.items():
        for name, item in differing.items():
            holders = [other for other, names in by_rank.items() if name in names]
            if len(holders) < len(by_rank):
                found.append(dataclasses.replace(item, where=a.of_rank(rank)))
            elif rank == holders[0]:
                found.append(item)
    return sorted(found, key=lambda item: (item.read < 0, item.read))
