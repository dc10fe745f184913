"""A state that processes hold together: what each tells the others, and the entries and files that follow from it.

Roots and small documents are exchanged, and elements only at the borders of leaves
(docs/spec/complete_state.md, "Files of several processes").
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pol.commitments import canonical_json
from pol.commitments.array import ArrayType, array_root
from pol.commitments.complete_state import CompleteState, StateEntry, document_root
from pol.commitments.distributed_array import ArrayPart, describe_part, root_of_parts
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.state import readable
from pol.training.storage.sharded_files import Rows

RANKS = "ranks"


@dataclass(frozen=True)
class ProcessPart:
    """What a process tells of its part.

    documents: digests of the documents that all have alike. own: documents that each has of its own. parts: its rows of
    spread arrays. wholes: arrays that only it holds; of the first process also those that all hold.
    """

    documents: Mapping[str, bytes]
    own: Mapping[str, bytes]
    parts: Mapping[str, tuple[ArrayType, Rows, ArrayPart]]
    wholes: tuple[StateEntry, ...]


@dataclass(frozen=True)
class ExchangedState:
    """The parts of all processes in the order of ranks, and the documents of the whole state."""

    shared: Sequence[ProcessPart]
    documents: Mapping[str, bytes]

    def entries(self) -> list[StateEntry]:
        """The entries of the whole state. Raises ProtocolError: the processes' rows leave a gap or overlap."""
        found = [entry for other in self.shared for entry in other.wholes]
        found += [StateEntry(name, None, document_root(data)) for name, data in self.documents.items()]
        for name, (type_, _, _) in self.shared[0].parts.items():
            found.append(StateEntry(name, type_, root_of_parts(type_, [other.parts[name][2] for other in self.shared])))
        return sorted(found, key=lambda entry: entry.name.encode())

    def files(self) -> list[list[Rows]]:
        """The file of each process: the arrays that it tells, and its rows, unless an earlier one has the same."""
        files: list[list[Rows]] = []
        taken = set()
        for other in self.shared:
            rows = [rows for _, rows, _ in other.parts.values() if rows.count and rows not in taken]
            taken |= set(rows)
            files.append([*(Rows(entry.name) for entry in other.wholes), *rows])
        return files

    def parted(self, state: CompleteState) -> list[str]:
        """Names of replicas in which this process's state differs from that of the first one."""
        return [
            entry.name
            for entry in self.shared[0].wholes
            if (array := state.arrays.get(entry.name)) is not None
            and (array.type != entry.type or array_root(array, state.threads) != entry.content)
        ]


def ranked(value: object, rank: int, size: int) -> dict[str, list[object]]:
    """A component that each process has of its own, as this one sees it: the others' places are empty."""
    return {RANKS: [value if other == rank else None for other in range(size)]}


def places(value: Any, size: int) -> Sequence[Any]:
    """What each of ``size`` processes has of its own in a component; the component itself, if it was recorded once.

    Raises:
        ProtocolError: it was recorded on another number of processes.
    """
    ranks = value[RANKS] if isinstance(value, Mapping) and value.keys() == {RANKS} else [value]
    if not isinstance(ranks, list) or len(ranks) != size:
        count = len(ranks) if isinstance(ranks, list) else 1
        raise ProtocolError(f"the state was recorded on {count} processes, these are {size}: resume on as many")
    return ranks


def describe(
    state: CompleteState, rows: Mapping[str, tuple[ArrayType, Rows]], rank: int, per_process: Collection[str]
) -> ProcessPart:
    """What this process tells the others. ``rows`` are those that it holds of spread arrays."""
    parts = {
        name: (type_, held, describe_part(held.first_byte(type_), state.arrays[name].data, state.threads))
        for name, (type_, held) in rows.items()
    }
    wholes = tuple(
        StateEntry(name, array.type, array_root(array, state.threads))
        for name, array in state.arrays.items()
        if name not in parts and (rank == 0 or name.partition("/")[0] in per_process)
    )
    own = {name: data for name, data in state.documents.items() if name in per_process}
    alike = {name: keccak256(data) for name, data in state.documents.items() if name not in per_process}
    return ProcessPart(alike, own, parts, wholes)


def join(shared: Sequence[ProcessPart], documents: Mapping[str, bytes]) -> ExchangedState:
    """The whole state. ``documents`` are this process's. Raises ProtocolError: the processes spread other arrays."""
    for rank, other in enumerate(shared):
        if odd := shared[0].parts.keys() ^ other.parts.keys():
            raise ProtocolError(
                f"process {rank} spreads {sorted(odd)[0]} otherwise than process 0: shard it alike on all processes"
            )
    joined = {name: _joined([other.own[name] for other in shared]) for name in shared[0].own}
    return ExchangedState(shared, {**documents, **joined})


def first_disagreeing(shared: Sequence[ProcessPart]) -> tuple[int, set[str]] | None:
    """The first process whose documents aren't those of process 0, and which ones."""
    for rank, other in enumerate(shared):
        names = shared[0].documents.keys() | other.documents.keys()
        odd = {name for name in names if shared[0].documents.get(name) != other.documents.get(name)}
        if odd := odd | (shared[0].own.keys() ^ other.own.keys()):
            return rank, odd
    return None


def disagreement(rank: int, first: Mapping[str, bytes], other: Mapping[str, bytes]) -> str:
    """What is different in documents of process 0 and of process ``rank``, and what to do; in one line."""
    for name in sorted(first.keys() ^ other.keys()):
        has, lacks = (0, rank) if name in first else (rank, 0)
        return (
            f"process {lacks} records no {name}, and process {has} does: give the recorders of all processes the same "
            "objects"
        )
    before, after = readable.flat(first), readable.flat(other)
    paths = [path for path in [*before, *(p for p in after if p not in before)] if before.get(path) != after.get(path)]
    said = "; ".join(
        f"{path} is {after.get(path, 'absent')} there and {before.get(path, 'absent')} on process 0"
        for path in paths[:3]
    )
    more = f", and {len(paths) - 3} more differ" if len(paths) > 3 else ""
    names = ", ".join(sorted(first))
    return (
        f"process {rank} disagrees with process 0 about the {names}: {said}{more}. All have to restore it and do the "
        "same steps; record it with per_process= if each process has its own"
    )


def _joined(documents: Sequence[bytes]) -> bytes:
    """A component of all processes, from documents in which only the own place is filled."""
    forms = [
        canonical_json.decode(data, "a component")["value"]["dict"][0][1][rank] for rank, data in enumerate(documents)
    ]
    return canonical_json.encode({"value": {"dict": [[RANKS, forms]]}})
