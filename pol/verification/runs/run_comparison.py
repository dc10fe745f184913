"""Comparison of two recorded runs: the entries that differ, since which checkpoint, and where inside a document.

It reads the checkpoints' documents only: roots tell which tensors differ, so none is loaded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pol.errors import OperationalError
from pol.training.record.recorded_run import RecordedRun
from pol.training.state import readable
from pol.training.storage.commitment import EntryMismatch, compare

if TYPE_CHECKING:
    from pol.training.storage.stored_checkpoint import StoredCheckpoint


_GENERATOR = re.compile(r"\b(?:random|before/\d+)/(?:ranks/\d+/)?(?:named/)?([^/]+)")


@dataclass(frozen=True)
class Change:
    """One value of a document in two states; None where there is none."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class StateComparison:
    """Two states: the entries that differ, and for documents among them the values that do."""

    step: int
    entries: tuple[EntryMismatch, ...]
    changes: tuple[Change, ...]

    def without(self, names: Collection[str]) -> StateComparison:
        """The same without some entries, and the values inside of those."""
        kept = tuple(entry for entry in self.entries if entry.name not in names)
        components = {component_of(entry.name) for entry in kept}
        return replace(self, entries=kept, changes=tuple(c for c in self.changes if component_of(c.path) in components))

    @property
    def components(self) -> list[str]:
        """The components in which they differ."""
        return sorted({component_of(entry.name) for entry in self.entries})

    def in_component(self, component: str) -> list[str]:
        """Paths of the tensors and values of one component that differ."""
        tensors = [e.name for e in self.entries if e.name.startswith(f"{component}/")]
        changed = (change.path for change in self.changes)
        return sorted(tensors + [path for path in changed if component_of(path) == component])


def component_of(path: str) -> str:
    """The component that an entry, or a path inside one, belongs to."""
    return path.partition("/")[0]


def compare_states(a: StoredCheckpoint, b: StoredCheckpoint) -> StateComparison:
    """Two checkpoints by their documents."""
    entries = compare(a.entries, b.entries)
    names = [entry.name for entry in entries]
    return StateComparison(a.step, tuple(entries), tuple(_changes(a.documents, b.documents, names)))


def common_steps(a: RecordedRun, b: RecordedRun) -> list[int]:
    """The steps at which both runs have a checkpoint. Raises OperationalError: there are none."""
    steps = sorted(set(a.steps) & set(b.steps))
    if not steps:
        raise OperationalError(
            f"the two records share no step: one has a checkpoint every {a.record.interval} steps, the other every "
            f"{b.record.interval}"
        )
    return steps


def compare_at(a: RecordedRun, b: RecordedRun, step: int) -> StateComparison | None:
    """The states of two runs after a step; None if they are equal, which their roots say."""
    one, other = a.checkpoint(step), b.checkpoint(step)
    if one.root == other.root:
        return None
    return compare_states(a.document(one), b.document(other))


def first_differences(
    a: RecordedRun, b: RecordedRun, steps: Iterable[int], apart: Collection[str] = ()
) -> dict[str, int]:
    """For each entry that ever differs, and isn't set ``apart``, the first of the steps at which it does."""
    first: dict[str, int] = {}
    for step in steps:
        found = compare_at(a, b, step)
        for entry in found.without(apart).entries if found is not None else ():
            first.setdefault(entry.name, step)
    return first


def undrawn(a: RecordedRun, b: RecordedRun) -> set[str]:
    """Entries of generators that nobody drew from and nobody seeded: constant in each of two runs, and different."""
    if min(len(a.steps), len(b.steps)) < 2:
        return set()
    one, other = (_contents(run) for run in (a, b))
    found = {name for name in one if len(one[name]) == 1 == len(other[name]) and one[name] != other[name]}
    # The copies in cursors of a generator that is drawn from may be constant, too.
    idle = set(generators(name for name in found if component_of(name) == "random"))
    return {name for name in found if idle.issuperset(of := generators([name])) and of}


def generators(entries: Iterable[str]) -> list[str]:
    """The generators that entries of a complete state belong to: python, numpy, torch or the name of another one."""
    found = (_GENERATOR.search(entry) for entry in entries)
    return sorted({match[1] for match in found if match is not None})


def _contents(run: RecordedRun) -> Mapping[str, set[bytes]]:
    """All contents that entries of generators had in a run; cursors hold copies of generators."""
    found: dict[str, set[bytes]] = defaultdict(set)
    for checkpoint in run.record.checkpoints:
        for entry in run.document(checkpoint).entries:
            if component_of(entry.name) in ("random", "cursor"):
                found[entry.name].add(entry.content)
    return found


def _changes(a: Mapping[str, bytes], b: Mapping[str, bytes], names: Iterable[str]) -> Iterable[Change]:
    for name in names:
        if name not in a and name not in b:
            continue
        one, other = (readable.flat({name: side[name]}) if name in side else {} for side in (a, b))
        for path in [*one, *(path for path in other if path not in one)]:
            if one.get(path) != other.get(path):
                yield Change(path, one.get(path), other.get(path))
