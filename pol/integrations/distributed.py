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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from pol.commitments.array import Array, ArrayType
from pol.commitments.complete_state import CompleteState, StateEntry, complete_root
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.integrations import exchanged_state
from pol.integrations.distributed_state import DistributedState, gather
from pol.integrations.exchanged_state import ExchangedState
from pol.training.record.learning_record import HEAD, RecordedCheckpoint
from pol.training.recorder.recorder import Recorder
from pol.training.recorder.recorder_options import DEFAULT, Checkpoints
from pol.training.state import components as state_components
from pol.training.state import tensors
from pol.training.storage import sharded_files
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

T = TypeVar("T")


class DistributedRecorder(Recorder):
    """The recorder of each process of a group; all processes call the same methods at the same time.

    Plain tensors are replicas, and those of the first process are recorded. Random generators, the place in the data
    and the environment are recorded for each process. All processes must reach the store. The training waits while a
    checkpoint is stored, in the background too: the recorder's collectives must not mix with the training's.

    group: the processes; all if None. per_process: components that differ between processes, and are recorded for
    each: "parameters", "buffers", "optimizer" and others of workers that go apart between two averages, or a part such
    as a residual. options: those of `Recorder`.

    Raises:
        UnsupportedError: an option for one process only, FSDP of version 1, or a name in per_process that isn't a
            component's.
    """

    def __init__(
        self,
        store: Store | str,
        model: nn.Module,
        optimizer: Optimizer | None = None,
        *,
        group: dist.ProcessGroup | None = None,
        per_process: Collection[str] = (),
        checkpoints: Checkpoints = DEFAULT,
        **options: Any,
    ):
        if checkpoints.updates:
            raise UnsupportedError("updates are for one process: several store their checkpoints in full")
        if options.get("start") is not None or options.get("task") is not None:
            raise UnsupportedError("start= and task= are for one process: load the weights first, on all processes")
        if any(isinstance(module, FullyShardedDataParallel) for module in model.modules()):
            raise UnsupportedError(
                "FSDP of version 1 keeps parts of tensors that don't say their place: shard with fully_shard (FSDP2)"
            )
        model = model.module if isinstance(model, DistributedDataParallel) else model
        self._group = group
        super().__init__(store, model, optimizer, checkpoints=replace(checkpoints, background=False), **options)
        self._rank = dist.get_rank(group)
        self._rows: dict[str, tuple[ArrayType, Rows]] = {}
        plain = self.state
        self.state: DistributedState = DistributedState(
            model, plain.parts, plain.random, gradients=plain.gradients, group=group, per_process=per_process
        )

    def _restore(self) -> bool:
        if self._rank == 0:
            self.store.clean()
        found = self._gather(self.store.holds(HEAD))  # after the first process has cleaned
        if len(set(found)) != 1:
            raise ProtocolError(f"{self.store.url} isn't the same store on all processes: give one that all reach")
        if not found[0]:
            return super()._restore()
        self._together(super()._restore)
        return True

    def _whole(self, state: CompleteState) -> tuple[Sequence[StateEntry], Mapping[str, bytes]]:
        exchanged = self._exchange(state)
        return exchanged.entries(), exchanged.documents

    def _first_process(self) -> int | None:
        return dist.get_process_group_ranks(self._group)[0]

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
        component = path.partition("/")[0]
        if component in self.state.per_process:
            raise UnsupportedError(
                f"{path} is spread over several processes, and per_process= says that each has {component} of its own: "
                "give each worker of several processes a recorder of its own, with group="
            )
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
        exchanged = self._exchange(state)
        if self._rehearsal is not None:
            self._rehearsal.note_parted(steps, exchanged.parted(state))
        entries = exchanged.entries()
        root = complete_root(entries)
        files = exchanged.files()
        pieces = {rows: state.arrays[rows.array] for rows in files[self._rank]}
        self._together(lambda: sharded_files.write(self.store, root, pieces) if pieces else None)

        def publish() -> None:
            saved = StoredCheckpoint(steps, tuple(entries), exchanged.documents, sharded_files.describe(root, files))
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

    def _exchange(self, state: CompleteState) -> ExchangedState:
        """The state of all processes; ProtocolError if they disagree about what they have alike."""
        per_process = self.state.per_process
        shared = self._gather(exchanged_state.describe(state, self._rows, self._rank, per_process))
        if (found := exchanged_state.first_disagreeing(shared)) is not None:
            rank, odd = found
            documents = self._gather({name: data for name, data in state.documents.items() if name in odd})
            raise ProtocolError(exchanged_state.disagreement(rank, documents[0], documents[rank]))
        return exchanged_state.join(shared, state.documents)

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


def recorder_of_processes(
    count: int, own: Collection[str], store: Store | str, model: nn.Module, *others: Any, **options: Any
) -> Recorder:
    """The recorder of a trainer on ``count`` processes; ``own`` names the parts that each of several has of its own.

    Raises:
        UnsupportedError: as `DistributedRecorder`, or per_process= for one process.
    """
    if count == 1:
        if options.pop("per_process", ()):
            raise UnsupportedError("per_process= is for several processes: leave it out")
        return Recorder(store, model, *others, **options)
    per_process = {*own, *options.pop("per_process", ())}
    return DistributedRecorder(store, model, *others, per_process=per_process, **options)
