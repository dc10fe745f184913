"""The recorder in a loop on several processes: FSDP2 (`fully_shard`), tensor parallelism with DTensors, or replicas.

recorder = DistributedRecorder("s3://bucket/first", model, optimizer, every=100, scheduler=scheduler)
for epoch in range(recorder.resume(), epochs):
    for batch in recorder.batches(loader):
        ...
        recorder.step()
recorder.close()

Every process hashes and stores the rows that it owns. The root is that of the whole state, as one process would have
it: only subtree roots and a few border bytes are exchanged (docs/spec/complete_state.md, "Arrays in parts").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from pol.commitments.array import Array, ArrayType, array_root
from pol.commitments.complete_state import CompleteState, StateEntry, complete_root, document_root
from pol.commitments.distributed_array import ArrayPart, describe_part, root_of_parts
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.integrations.distributed_state import DistributedState, gather
from pol.training.record.learning_record import HEAD, RecordedCheckpoint
from pol.training.recorder.recorder import Recorder
from pol.training.recorder.recorder_options import DEFAULT, Checkpoints
from pol.training.state import components as state_components
from pol.training.state import tensors
from pol.training.storage import sharded_files, stored_checkpoint
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

T = TypeVar("T")


@dataclass(frozen=True)
class _ProcessPart:
    """A process's part of a state as the others see it: roots, and elements only at borders of leaves."""

    documents: bytes
    parts: Mapping[str, tuple[ArrayType, Rows, ArrayPart]]
    wholes: tuple[StateEntry, ...]


class DistributedRecorder(Recorder):
    """The recorder of each process of a group; all processes call the same methods at the same time.

    Plain tensors are replicas, and those of the first process are recorded. Random generators, the place in the data
    and the environment are recorded for each process. All processes must reach the store. The training waits while a
    checkpoint is stored, in the background too: the recorder's collectives must not mix with the training's.

    group: the processes; all if None. options: those of `Recorder`.

    Raises:
        UnsupportedError: an option for one process only.
    """

    def __init__(
        self,
        store: Store | str,
        model: nn.Module,
        optimizer: Optimizer | None = None,
        *,
        group: dist.ProcessGroup | None = None,
        checkpoints: Checkpoints = DEFAULT,
        **options: Any,
    ):
        if checkpoints.updates:
            raise UnsupportedError("updates are for one process: several store their checkpoints in full")
        if options.get("start") is not None or options.get("task") is not None:
            raise UnsupportedError("start= and task= are for one process: load the weights first, on all processes")
        model = model.module if isinstance(model, DistributedDataParallel) else model
        super().__init__(store, model, optimizer, checkpoints=replace(checkpoints, background=False), **options)
        self._group = group
        self._rank = dist.get_rank(group)
        self._rows: dict[str, tuple[ArrayType, Rows]] = {}
        plain = self.state
        self.state: DistributedState = DistributedState(
            model, plain.parts, plain.random, gradients=plain.gradients, group=group
        )

    def resume(self) -> int:
        """As `Recorder.resume`; then all processes hash the restored state and compare it with the checkpoint.

        Raises:
            ProtocolError: as there, or an object restored another state than it gave.
        """
        if self._rank == 0:
            self.store.clean()
        found = self._gather(self.store.holds(HEAD))  # after the first process has cleaned
        if len(set(found)) != 1:
            raise ProtocolError(f"{self.store.url} isn't the same store on all processes: give one that all reach")
        if found[0]:
            self._together(super().resume)
        else:
            super().resume()
        newest = stored_checkpoint.load_document(self.store, self.record.checkpoints[-1].object)
        known = {entry.name: entry for entry in newest.entries}
        state = self._now()
        restored = {entry.name: entry for entry in self._entries(self._exchange(state), state)}
        # Versions and hardware may have changed.
        differing = {name for name in known.keys() | restored.keys() if known.get(name) != restored.get(name)}
        if wrong := sorted(differing - {"environment"}):
            raise ProtocolError(
                f"{wrong[0]} isn't what the checkpoint of step {newest.step} commits to, after it was put back: a file "
                "is corrupt, an object restores another state than it gave, or it is spread differently from its "
                "parameter"
            )
        return self.epoch

    @contextmanager
    def _read(self, store: Store, saved: StoredCheckpoint) -> Iterator[CompleteState]:
        """The state of this process if the cut is unchanged, else the whole one. `resume` checks the roots."""
        size = dist.get_world_size(self._group)
        self.state.by_rows = (
            saved.data.get("form") == sharded_files.FORM
            and sharded_files.are_equal_runs(saved.types, saved.data, size)
            and self.state.is_cut_into_rows()
        )
        if not self.state.by_rows:
            with super()._read(store, saved) as state:
                yield state
            return
        yield CompleteState(sharded_files.read_run(store, saved.types, saved.data, self._rank), saved.documents)

    def _now(self) -> CompleteState:
        self._rows = {}
        return state_components.encode(self._components(), take=self._take)

    @torch.no_grad()
    def _take(self, tensor: Tensor, path: str) -> Array:
        """This process's rows of a spread tensor, or a plain tensor as a whole."""
        if not isinstance(tensor, DTensor):
            return self._bytes_of(tensor, path)
        if any(placement.is_partial() for placement in tensor.placements):
            raise UnsupportedError(f"{path} is a sum that the processes haven't added up: record it after the step")
        spread: DTensor = tensor
        cut = [dim for dim, placement in enumerate(spread.placements) if not placement.is_replicate()]
        if not cut:
            return tensors.of_tensor(spread.to_local(), path)
        placement = spread.placements[cut[0]]
        if len(cut) > 1 or type(placement) is not Shard or not placement.is_shard(0):
            # Other cuts are converted into rows: elements move, but no process gets all of them.
            rows_only = [Shard(0), *[Replicate()] * (spread.device_mesh.ndim - 1)]
            spread, cut = spread.redistribute(placements=rows_only), [0]
        coordinate = spread.device_mesh.get_coordinate()
        if coordinate is None:
            raise UnsupportedError(f"{path} lies on a mesh without this process")
        local, count = tensors.of_tensor(spread.to_local(), path), spread.shape[0]
        first = min(coordinate[cut[0]] * -(-count // spread.device_mesh.size(cut[0])), count)
        self._rows[path] = (ArrayType(local.type.element, tuple(spread.shape)), Rows(path, first, local.type.shape[0]))
        return local

    def _store(self, steps: int, state: CompleteState) -> None:
        shared = self._exchange(state)
        entries = self._entries(shared, state)
        root = complete_root(entries)
        files = _files(shared)
        pieces = {rows: state.arrays[rows.array] for rows in files[self._rank]}
        self._together(lambda: sharded_files.write(self.store, root, pieces) if pieces else None)

        def publish() -> None:
            saved = StoredCheckpoint(steps, tuple(entries), state.documents, sharded_files.describe(root, files))
            self._publish(RecordedCheckpoint(steps, root, self.store.put(saved.encode())))

        known = self.record
        self._together(publish if self._rank == 0 else lambda: None)
        if not known.checkpoints:
            self.record = self._gather(self.record)[0]  # with its name and start
            return
        news = self.record.checkpoints[len(known.checkpoints) :], self.record.heads[len(known.heads) :]
        checkpoints, heads = self._gather(news)[0]
        signer = self._gather(self.record.signer)[0]
        for checkpoint in checkpoints:
            known = known.extended(checkpoint)
        for head in heads:
            known = known.with_head(signer, head)
        self.record = known

    def _exchange(self, state: CompleteState) -> list[_ProcessPart]:
        """The parts of all processes."""
        shared = self._gather(self._describe(state))
        if len({other.documents for other in shared}) != 1:
            raise ProtocolError(
                "the processes disagree about state that isn't spread over them, such as the schedule or the groups of "
                "the optimizer: all have to do the same steps"
            )
        return shared

    def _entries(self, shared: list[_ProcessPart], state: CompleteState) -> list[StateEntry]:
        entries = [
            *shared[0].wholes,
            *(StateEntry(name, None, document_root(d)) for name, d in state.documents.items()),
        ]
        for name, (type_, _, _) in shared[0].parts.items():
            entries.append(StateEntry(name, type_, root_of_parts(type_, [other.parts[name][2] for other in shared])))
        return sorted(entries, key=lambda entry: entry.name.encode())

    def _describe(self, state: CompleteState) -> _ProcessPart:
        parts = {}
        for name, (type_, rows) in self._rows.items():
            part = describe_part(rows.first_byte(type_), state.arrays[name].data, state.threads)
            parts[name] = (type_, rows, part)
        wholes: tuple[StateEntry, ...] = ()
        if self._rank == 0:
            wholes = tuple(
                StateEntry(name, array.type, array_root(array))
                for name, array in state.arrays.items()
                if name not in parts
            )
        documents = b"".join(keccak256(name.encode()) + keccak256(d) for name, d in sorted(state.documents.items()))
        return _ProcessPart(keccak256(documents), parts, wholes)

    def _gather(self, value: T) -> list[T]:
        return gather(value, self._group)

    def _together(self, action: Callable[[], object]) -> None:
        """Run an action that can fail. If it fails in one process, all raise, so that none waits for ever."""
        failure: tuple[type[Exception], str] | None = None
        try:
            action()
        except (OperationalError, ProtocolError) as error:
            failure = (type(error), str(error))
        for rank, found in enumerate(self._gather(failure)):
            if found is not None:
                raise found[0](f"process {rank}: {found[1]}")


def _files(shared: list[_ProcessPart]) -> list[list[Rows]]:
    """The file of each process: its rows, unless an earlier one has the same; the first one adds plain tensors."""
    files: list[list[Rows]] = [[] for _ in shared]
    files[0] = [Rows(entry.name) for entry in shared[0].wholes]
    taken = set()
    for file, other in zip(files, shared, strict=True):
        for _, rows, _ in other.parts.values():
            if rows.count and rows not in taken:
                taken.add(rows)
                file.append(rows)
    return files
