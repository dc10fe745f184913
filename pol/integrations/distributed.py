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
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from pol.commitments.array import Array, ArrayType, array_root
from pol.commitments.array_parts import ArrayPart, describe_part, root_of_parts
from pol.commitments.complete_state import CompleteState, Entry, complete_root, document_root
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.training.record.learning_record import HEAD, RecordedCheckpoint
from pol.training.recorder.recorder import PROGRESS, Recorder
from pol.training.recorder.recorder_options import DEFAULT, Checkpoints
from pol.training.state import components as state_components
from pol.training.state import tensors
from pol.training.state.random_state import RandomSources
from pol.training.state.trainer_state import Stateful, TrainerState
from pol.training.storage import sharded_files, stored_checkpoint
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

PER_PROCESS = ("random", "cursor", "environment")
T = TypeVar("T")


@dataclass(frozen=True)
class _Told:
    """What a process tells the others about its part of a state: no elements but those at borders of leaves."""

    documents: bytes
    parts: Mapping[str, tuple[ArrayType, Rows, ArrayPart]]
    wholes: tuple[Entry, ...]


class DistributedRecorder(Recorder):
    """A recorder of which every process of a group has one; all call the same methods at the same time.

    Plain tensors are replicas: those of the first process are recorded. Random generators, the place in the data and
    the environment are recorded for each process. The store is one that all processes reach. The training waits while a
    checkpoint is stored: the recorder's collectives must not mix with the training's.

    group: the processes; all if None. options: those of `Recorder`.

    Raises:
        UnsupportedError: an option that several processes don't have.
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
        """As `Recorder.resume`; then all processes hash what has been put back and compare it with the checkpoint.

        Raises:
            ProtocolError: as there, or an object took its state back otherwise than it gave it.
        """
        if self._rank == 0:
            self.store.clean()
        found = self._gather(self.store.holds(HEAD))  # and nobody cleans at the same time
        if len(set(found)) != 1:
            raise ProtocolError(f"{self.store.url} isn't the same store on all processes: give one that all reach")
        if found[0]:
            self._together(super().resume)
        else:
            super().resume()
        newest = stored_checkpoint.load_document(self.store, self.record.checkpoints[-1].object)
        known = {entry.name: entry for entry in newest.entries}
        state = self._now()
        restored = {entry.name: entry for entry in self._entries(self._told(state), state)}
        # Versions and hardware may be others than they were.
        differing = {name for name in known.keys() | restored.keys() if known.get(name) != restored.get(name)}
        if wrong := sorted(differing - {"environment"}):
            raise ProtocolError(
                f"{wrong[0]} isn't what the checkpoint of step {newest.step} commits to, after it was put back: a file "
                "is corrupt, an object takes its state otherwise than it gave it, or it is spread otherwise than its "
                "parameter"
            )
        return self.epoch

    def _read(self, store: Store, saved: StoredCheckpoint) -> CompleteState:
        """Only what this process needs, if the state is cut as it was; all of it else. `resume` checks the roots."""
        size = dist.get_world_size(self._group)
        self.state.by_rows = (
            saved.data.get("form") == sharded_files.FORM
            and sharded_files.are_equal_runs(saved.types, saved.data, size)
            and self.state.is_cut_into_rows()
        )
        if not self.state.by_rows:
            return super()._read(store, saved)
        return CompleteState(sharded_files.read_run(store, saved.types, saved.data, self._rank), saved.documents)

    def _now(self) -> CompleteState:
        self._rows = {}
        found = {**self.state.components(), PROGRESS: {"steps": self.steps}}
        return state_components.encode(found, take=self._take)

    @torch.no_grad()
    def _take(self, tensor: Tensor, path: str) -> Array:
        """The rows that this process has of a spread tensor, or the whole of a plain one."""
        if not isinstance(tensor, DTensor):
            return tensors.of_tensor(tensor, path)
        if any(placement.is_partial() for placement in tensor.placements):
            raise UnsupportedError(f"{path} is a sum that the processes haven't added up: record it after the step")
        spread: DTensor = tensor
        cut = [dim for dim, placement in enumerate(spread.placements) if not placement.is_replicate()]
        if not cut:
            return tensors.of_tensor(spread.to_local(), path)
        placement = spread.placements[cut[0]]
        if len(cut) > 1 or type(placement) is not Shard or not placement.is_shard(0):
            # Other cuts than one into rows are brought into that form: elements move, but no process gets all.
            rows_only = [Shard(0), *[Replicate()] * (spread.device_mesh.ndim - 1)]
            spread, cut = spread.redistribute(placements=rows_only), [0]
        coordinate = spread.device_mesh.get_coordinate()
        if coordinate is None:
            raise UnsupportedError(f"{path} lies on a mesh that this process isn't part of")
        local, count = tensors.of_tensor(spread.to_local(), path), spread.shape[0]
        first = min(coordinate[cut[0]] * -(-count // spread.device_mesh.size(cut[0])), count)
        self._rows[path] = (ArrayType(local.type.element, tuple(spread.shape)), Rows(path, first, local.type.shape[0]))
        return local

    def _store(self, steps: int, state: CompleteState) -> None:
        told = self._told(state)
        entries = self._entries(told, state)
        root = complete_root(entries)
        files = _files(told)
        pieces = {rows: state.arrays[rows.array] for rows in files[self._rank]}
        self._together(lambda: sharded_files.write(self.store, root, pieces) if pieces else None)

        def publish() -> None:
            saved = StoredCheckpoint(steps, tuple(entries), state.documents, sharded_files.describe(root, files))
            self._publish(RecordedCheckpoint(steps, root, self.store.put(saved.encode())))

        known = self.record
        self._together(publish if self._rank == 0 else lambda: None)
        if not known.checkpoints:
            self.record = self._gather(self.record)[0]  # its name and its start as well
            return
        news = self.record.checkpoints[len(known.checkpoints) :], self.record.heads[len(known.heads) :]
        checkpoints, heads = self._gather(news)[0]
        signer = self._gather(self.record.signer)[0]
        for checkpoint in checkpoints:
            known = known.extended(checkpoint)
        for head in heads:
            known = known.with_head(signer, head)
        self.record = known

    def _told(self, state: CompleteState) -> list[_Told]:
        """What all processes tell about this state."""
        told = self._gather(self._tell(state))
        if len({other.documents for other in told}) != 1:
            raise ProtocolError(
                "the processes disagree about what isn't spread over them, such as the schedule or the groups of the "
                "optimizer: all have to do the same steps"
            )
        return told

    def _entries(self, told: list[_Told], state: CompleteState) -> list[Entry]:
        entries = [*told[0].wholes, *(Entry(name, None, document_root(d)) for name, d in state.documents.items())]
        for name, (type_, _, _) in told[0].parts.items():
            entries.append(Entry(name, type_, root_of_parts(type_, [other.parts[name][2] for other in told])))
        return sorted(entries, key=lambda entry: entry.name.encode())

    def _tell(self, state: CompleteState) -> _Told:
        parts = {}
        for name, (type_, rows) in self._rows.items():
            part = describe_part(rows.first_byte(type_), state.arrays[name].data, state.threads)
            parts[name] = (type_, rows, part)
        wholes: tuple[Entry, ...] = ()
        if self._rank == 0:
            wholes = tuple(
                Entry(name, array.type, array_root(array)) for name, array in state.arrays.items() if name not in parts
            )
        documents = b"".join(keccak256(name.encode()) + keccak256(d) for name, d in sorted(state.documents.items()))
        return _Told(keccak256(documents), parts, wholes)

    def _gather(self, value: T) -> list[T]:
        return _gather(value, self._group)

    def _together(self, action: Callable[[], object]) -> None:
        """Do something that can fail; where one process fails all do, so that none waits for another for ever."""
        failure: tuple[type[Exception], str] | None = None
        try:
            action()
        except (OperationalError, ProtocolError) as error:
            failure = (type(error), str(error))
        for rank, found in enumerate(self._gather(failure)):
            if found is not None:
                raise found[0](f"process {rank}: {found[1]}")


class DistributedState(TrainerState):
    """A trainer's state on several processes; `components` and `load` are called on all of them."""

    def __init__(
        self,
        model: nn.Module,
        parts: Mapping[str, Stateful],
        random: RandomSources,
        *,
        gradients: bool = False,
        group: dist.ProcessGroup | None = None,
    ):
        super().__init__(model, parts, random, gradients=gradients)
        self._group = group
        self.by_rows = False
        """Whether what is loaded holds of spread tensors only the rows of this process."""

    def is_cut_into_rows(self) -> bool:
        """Whether every spread tensor is cut into rows over all processes of the group, in their order."""
        others = [part.state_dict() for part in self.parts.values() if not isinstance(part, Optimizer)]
        held = [*self.model.parameters(), *self.model.buffers(), *_spread_tensors(others)]
        return all(
            tensor.device_mesh.ndim == 1
            and tensor.device_mesh.get_local_rank() == dist.get_rank(self._group)
            and tensor.device_mesh.size() == dist.get_world_size(self._group)
            and tensor.placements[0] in (Shard(0), Replicate())
            for tensor in held
            if isinstance(tensor, DTensor)
        )

    def components(self) -> dict[str, object]:
        """As `TrainerState.components`; what each process has of its own is there for all, by rank."""
        found = super().components()
        everywhere = _gather({name: found[name] for name in PER_PROCESS}, self._group)
        return {**found, **{name: {"ranks": [other[name] for other in everywhere]} for name in PER_PROCESS}}

    def load(self, components: Mapping[str, Any]) -> None:
        """As `TrainerState.load`; every process takes its rows of what is spread.

        Raises:
            ProtocolError: the state is that of another trainer, or of another number of processes.
        """
        found = dict(components)
        size, rank = dist.get_world_size(self._group), dist.get_rank(self._group)
        for name in PER_PROCESS:
            ranks = found[name].get("ranks", [])
            if len(ranks) != size:
                raise ProtocolError(
                    f"the state was recorded on {len(ranks) or 'one'} processes, these are {size}: resume on as many"
                )
            found[name] = ranks[rank]
        parameters = dict(self.model.named_parameters())
        spread = _give_rows if self.by_rows else _spread
        found["parameters"] = _spread_like(found["parameters"], parameters, spread)
        found["buffers"] = _spread_like(found["buffers"], dict(self.model.named_buffers()), spread)
        if self.gradients:
            found["gradients"] = _spread_like(found["gradients"], parameters, spread)
        for name, part in self.parts.items():
            state = found[name]["state"]
            if isinstance(part, Optimizer):
                # A new optimizer has no state yet whose placement could be taken: it is that of the parameter.
                order = [parameters.get(n) for group in found[name]["names"] for n in group]
                placed = {
                    i: {key: spread(value, order[i]) for key, value in values.items()}
                    for i, values in state["state"].items()
                }
                state = {**state, "state": placed}
            else:
                state = _spread_like(state, part.state_dict(), spread)
            found[name] = {**found[name], "state": state}
        super().load(found)


def _files(told: list[_Told]) -> list[list[Rows]]:
    """What each process stores: its rows, unless one before it has the same; the first one what isn't spread."""
    files: list[list[Rows]] = [[] for _ in told]
    files[0] = [Rows(entry.name) for entry in told[0].wholes]
    taken = set()
    for file, other in zip(files, told, strict=True):
        for _, rows, _ in other.parts.values():
            if rows.count and rows not in taken:
                taken.add(rows)
                file.append(rows)
    return files


def _gather(value: T, group: dist.ProcessGroup | None) -> list[T]:
    values: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    return values


def _spread_tensors(value: Any) -> Iterator[DTensor]:
    if isinstance(value, DTensor):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _spread_tensors(item)


def _spread_like(value: Any, like: Any, spread: Callable[[Any, Any], Any]) -> Any:
    """The tensors in a value, spread where those at the same place in another one are."""
    if isinstance(value, Mapping) and isinstance(like, Mapping):
        return {key: _spread_like(item, like.get(key), spread) for key, item in value.items()}
    if isinstance(value, list | tuple) and isinstance(like, list | tuple) and len(value) == len(like):
        return type(value)(_spread_like(item, other, spread) for item, other in zip(value, like, strict=True))
    return spread(value, like)


def _spread(value: Any, like: Any) -> Any:
    """A whole tensor spread as another one of its shape; anything else, such as a count, as it is."""
    if not isinstance(value, Tensor) or not isinstance(like, DTensor) or value.shape != like.shape:
        return value
    # Every process has read the whole tensor, so none has to send anything.
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)


def _give_rows(value: Any, like: Any) -> Any:
    """As `_spread`, where the value is only the rows of this process."""
    if not isinstance(value, Tensor) or not isinstance(like, DTensor) or value.shape != like.to_local().shape:
        return value
    local = value.to(like.to_local().device)
    return DTensor.from_local(local, like.device_mesh, like.placements, shape=like.shape, stride=like.stride())
