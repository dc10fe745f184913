"""Processes that should hold replicas, and go apart: found in what they report and in records of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pol.verification.runs.rehearsed_run import RehearsedRun
from pol.verification.runs.resume_diagnosis import Advice, some
from pol.verification.runs.run_comparison import component_of

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
