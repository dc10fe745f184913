"""The tensors of a stored checkpoint, one at a time or piece by piece: the state may be larger than memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType

import numpy as np

from pol.commitments.array import Array, Bytes, array_root, require_elements
from pol.commitments.complete_state import CompleteState, StateEntry
from pol.commitments.distributed_array import describe_part, root_of_parts
from pol.errors import OperationalError, ProtocolError
from pol.training.storage import safetensors_format, sharded_files, updates
from pol.training.storage.safetensors_format import KnownFile
from pol.training.storage.sharded_files import Place
from pol.training.storage.store import OpenFile, Store, read_up_to
from pol.training.storage.stored_checkpoint import StoredCheckpoint, bases, full_file, update_fields


class CheckpointTensors(Mapping[str, Array]):
    """The tensors of a checkpoint, each read, hashed and compared with its root when asked for; bases are followed.

    Files are opened when a tensor in them is asked for, and stay open until `close`.
    """

    def __init__(self, store: Store, saved: StoredCheckpoint):
        self.types = saved.types
        self._step = saved.step
        levels = bases(store, saved)[::-1]
        self._full = _FullTensors(store, levels[0])
        self._updates = [_Update(store, before, after) for before, after in itertools.pairwise(levels)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def __getitem__(self, name: str) -> Array:
        """A tensor in memory."""
        try:
            array = self._full.array(name) if name in self._full.types else None
            for update in self._updates:
                array = update.applied(name, array)
        except MemoryError as error:
            size = self.types[name].nbytes
            raise OperationalError(
                f"no memory for the {size} bytes of tensor {name} of the checkpoint of step {self._step}"
            ) from error
        assert array is not None, "the last update has a type for it"
        return array

    def pieces(self, name: str, size: int) -> Iterator[Bytes]:
        """The bytes of a tensor, ``size`` at a time, a multiple of 256; its root is compared after the last piece.

        Raises:
            ProtocolError, OperationalError: as for a whole one.
        """
        if not self._updates:
            yield from self._full.pieces(name, size)
            return
        data = self[name].data
        yield from (data[first : first + size] for first in range(0, data.size, size))

    def open(self) -> None:
        """Open all files now and check what is known of each, also of those that hold no byte."""
        self._full.open()
        for update in self._updates:
            update.open()

    def close(self) -> None:
        """Close the files; they are opened again when needed."""
        self._full.close()
        for update in self._updates:
            update.close()

    def __enter__(self) -> CheckpointTensors:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def open_state(store: Store, saved: StoredCheckpoint) -> Iterator[CompleteState]:
    """The state of a checkpoint whose tensors are read, hashed and compared when they are asked for."""
    with CheckpointTensors(store, saved) as tensors:
        yield CompleteState(tensors, saved.documents)


def verify(store: Store, saved: StoredCheckpoint) -> None:
    """Hash every tensor of a checkpoint and compare it, in the memory of a piece (of a tensor, for updates).

    Raises:
        ProtocolError: a file holds other tensors than the document says; the message names the first.
        OperationalError: the store failed, or memory ran out.
    """
    with CheckpointTensors(store, saved) as tensors:
        tensors.open()
        # In the order of the file: stores over a network read ahead.
        for name in safetensors_format.by_size(saved.types):
            for _ in tensors.pieces(name, safetensors_format.PIECE):
                pass


class _FullTensors:
    """The tensors of a checkpoint that is stored in full, in one file or in those of several processes."""

    def __init__(self, store: Store, saved: StoredCheckpoint):
        self.types = saved.types
        self._store, self._entries = store, {entry.name: entry for entry in saved.entries}
        if saved.data["form"] == sharded_files.FORM:
            self._where = "the files of several processes"
            self._files, self._places = sharded_files.places(saved.types, saved.data)
        else:
            self._where = full_file(saved.root)
            self._files = {self._where: self.types}
            self._places = {name: [Place(self._where, 0, type_.nbytes)] for name, type_ in self.types.items()}
        self._open: dict[str, KnownFile] = {}
        self._stack = ExitStack()

    def array(self, name: str) -> Array:
        type_, first = self.types[name], 0
        for place in self._places[name]:
            self._file(place.file)  # its size is compared before memory is taken for one that a document states
        data = np.empty(type_.nbytes, np.uint8)
        for piece in self.pieces(name, safetensors_format.PIECE):
            data[first : first + piece.size] = piece
            first += piece.size
        return Array(type_, data)

    def pieces(self, name: str, size: int) -> Iterator[Bytes]:
        type_, parts = self.types[name], []
        for first in range(0, type_.nbytes, size):
            piece = self._read(name, first, min(first + size, type_.nbytes))
            try:
                require_elements(type_.element, piece)
            except ProtocolError as error:
                raise ProtocolError(f"tensor {name} in {self._where}: {error}") from error
            parts.append(describe_part(first, piece))
            yield piece
        _require_root(self._entries[name], root_of_parts(type_, parts), self._where)

    def open(self) -> None:
        for file in self._files:
            self._file(file)

    def close(self) -> None:
        self._open.clear()
        self._stack.close()

    def _read(self, name: str, first: int, end: int) -> Bytes:
        found = []
        for place in self._places[name]:
            begin, until = max(first, place.first), min(end, place.first + place.size)
            if begin < until:
                found.append(self._file(place.file).read(name, begin - place.first, until - begin))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _file(self, name: str) -> KnownFile:
        if name not in self._open:
            opened = safetensors_format.open_known(self._store, name, self._files[name])
            self._open[name] = self._stack.enter_context(opened)
        return self._open[name]


class _Update:
    """The tensors of a checkpoint that are stored as changes of those of the one before."""

    def __init__(self, store: Store, before: StoredCheckpoint, after: StoredCheckpoint):
        fields = update_fields(after)
        parts = [updates.UpdatePart.of_json(item) for item in fields.items("arrays")]
        self._store, self._object = store, fields.digest("object")
        self._size = sum(part.size for part in parts)
        self._parts = updates.offsets(parts, after.types)
        self._entries = {entry.name: entry for entry in after.entries}
        self._file: OpenFile | None = None
        self._stack = ExitStack()
        known = {entry.name: entry for entry in before.entries}
        for name in after.types:
            if name not in self._parts and known.get(name) != self._entries[name]:
                raise ProtocolError(f"tensor {name} isn't that of the base, and the update {self._object} lacks it")

    def applied(self, name: str, base: Array | None) -> Array | None:
        """A tensor after the update; None if the checkpoint has none of this name."""
        entry = self._entries.get(name)
        if entry is None or entry.type is None:
            return None
        if name not in self._parts:
            return base
        offset, part = self._parts[name]
        file = self.open()
        file.seek(offset)
        array = updates.decode(read_up_to(file, part.size), part, entry.type, base)
        _require_root(entry, array_root(array), self._object)
        return array

    def close(self) -> None:
        self._file = None
        self._stack.close()

    def open(self) -> OpenFile:
        """The update object. Its digest is checked before anything in it is decompressed."""
        if self._file is None:
            self._store.require(self._object, limit=self._size)
            file = self._stack.enter_context(self._store.open_file(self._object))
            if file.size != self._size:
                kind = "ends before its last tensor does" if file.size < self._size else "goes on after its last tensor"
                raise ProtocolError(f"the update {self._object} {kind}: it has {file.size} bytes, not {self._size}")
            self._file = file
        return self._file


def _require_root(entry: StateEntry, root: bytes, where: str) -> None:
    if root != entry.content:
        raise ProtocolError(f"tensor {entry.name} in {where} isn't the one that the checkpoint commits to")
