"""Tensors in a safetensors file, or in several, as a Hugging Face model has: one state, read from memory maps.

A model may be cut into files in any way: each name of a tensor stands once.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, Bytes
from pol.commitments.complete_state import StateEntry
from pol.commitments.distributed_array import describe_part, root_of_parts
from pol.errors import OperationalError, ProtocolError, UnsupportedError, reason_of
from pol.training.storage import safetensors_format
from pol.training.storage.safetensors_format import HEADER_LIMIT


class SafetensorsFile:
    """A safetensors file. The tensors are views of the file: its content must not change while they are used."""

    def __init__(self, path: Path):
        self.path = path
        try:
            with path.open("rb") as file:
                if not file.seek(0, 2):  # which can't be mapped
                    raise ProtocolError(f"{path} has 0 bytes: not a safetensors file")
                # Not closed by hand: views of it may outlive this object, and the last one frees it.
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise OperationalError(f"can't read {path}: {reason_of(error)}") from error
        self._begin, header = safetensors_format.split(memoryview(self._map), str(path))
        self.types, self._offsets, self.metadata = header
        self._bytes: Bytes = np.frombuffer(self._map, np.uint8)

    def array(self, name: str) -> Array:
        """A tensor, without a copy. Raises ProtocolError: a boolean that is neither 0 nor 1."""
        begin, end = self._offsets[name]
        try:
            return Array(self.types[name], self._bytes[self._begin + begin : self._begin + end])
        except ProtocolError as error:
            raise ProtocolError(f"{self.path}, tensor {name}: {error}") from error

    def release(self, name: str, first: int = 0, size: int | None = None) -> None:
        """Say that a tensor, or ``size`` bytes of it from ``first`` on, isn't needed for now.

        The system may take the memory back; it reads the file again if it is needed after all.
        """
        begin, end = (self._begin + offset for offset in self._offsets[name])
        begin += first
        end = end if size is None else min(end, begin + size)
        begin -= begin % mmap.PAGESIZE
        if hasattr(self._map, "madvise") and end > begin:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)


ENDING = ".safetensors"
INDEX = ".safetensors.index.json"
PIECE = 1 << 24
"""Bytes that are hashed at a time; whole leaves."""
PICKLED = frozenset({".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"})
_SHARD = re.compile(r"(.*-)(\d{1,9})-of-(\d{1,9})\.safetensors")
"""A file of a model that is cut into several, as Hugging Face names them."""
_MAGIC = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class TensorFiles:
    """The tensors of some files under their names. ``left_out`` names other files of the folder."""

    def __init__(self, files: list[SafetensorsFile], left_out: tuple[str, ...] = ()):
        self._files: dict[str, SafetensorsFile] = {}
        for file in files:
            for name in file.types:
                if (other := self._files.setdefault(name, file)) is not file:
                    raise ProtocolError(
                        f"{other.path.name} and {file.path.name} both hold a tensor {name!r}: these are two models in "
                        "one folder, or a file was renamed; name one of the files, or its model's index"
                    )
        self.types: Mapping[str, ArrayType] = {name: file.types[name] for name, file in self._files.items()}
        self.left_out = left_out

    def pieces(self, name: str, size: int = PIECE) -> Iterator[Bytes]:
        """The bytes of a tensor, ``size`` at a time; the system may take a piece back once the next is asked for."""
        file = self._files[name]
        data = file.array(name).data
        for first in range(0, data.size, size):
            yield data[first : first + size]
            file.release(name, first, size)

    def entries(self, threads: int = 0) -> tuple[StateEntry, ...]:
        """The entries of the complete state that holds these tensors and nothing else."""
        return tuple(StateEntry(n, self.types[n], self._root(n, threads)) for n in sorted(self.types, key=str.encode))

    def _root(self, name: str, threads: int) -> bytes:
        """Hashed piece by piece: a tensor of any size takes the memory of one piece."""
        parts, first = [], 0
        for piece in self.pieces(name):
            parts.append(describe_part(first, piece, threads))
            first += piece.size
        return root_of_parts(self.types[name], parts)


def open_tensors(path: Path) -> TensorFiles:
    """The tensors of a safetensors file, of a folder of them, or of an index (``model.safetensors.index.json``).

    In a folder with an index they are those that it names, else those of all files.

    Raises:
        UnsupportedError: a pickled checkpoint.
        OperationalError: nothing there, or it can't be read.
    """
    if path.is_dir():
        return _open_folder(path)
    if not path.is_file():
        if path.exists():
            raise OperationalError(f"{path} is neither a file nor a folder")
        raise OperationalError(f"there is no file or folder {path}")
    if path.name.endswith(INDEX):
        return _open_index(path)
    _refuse_pickle(path)
    return TensorFiles([SafetensorsFile(path)])


def _open_folder(folder: Path) -> TensorFiles:
    names = _files_in(folder)
    files = [name for name in names if name.endswith(ENDING)]
    indexes = [name for name in names if name.endswith(INDEX)]
    if not files and not indexes:
        for name in names:
            _refuse_pickle(folder / name)
        raise OperationalError(f"{folder} holds no safetensors file and no learning record")
    if len(indexes) > 1:
        raise ProtocolError(
            f"{folder} holds the indexes {', '.join(indexes)}: name that of one model, such as {folder / indexes[0]}"
        )
    if indexes:
        return _open_index(folder / indexes[0])
    _require_shards(folder, files)
    return TensorFiles([SafetensorsFile(folder / name) for name in files], _others(names, files))


def _open_index(index: Path) -> TensorFiles:
    """The tensors that an index names; they have to be all tensors of its files."""
    placed, folder = _read_index(index), index.parent
    names, used = _files_in(folder), sorted(set(placed.values()))
    for name in used:
        # A stranger's index must not lead to other folders of this machine.
        if Path(name).name != name or not name.endswith(ENDING):
            raise ProtocolError(
                f"{index} names the file {name!r}: an index names safetensors files beside it, without a folder; take "
                "the model from its author again"
            )
    if missing := sorted(set(used) - set(names)):
        raise OperationalError(
            f"{folder} lacks {missing[0]}, which {index.name} names ({len(used) - len(missing)} of {len(used)} files "
            f"are there): download {', '.join(missing[:3])}{' and the others' if len(missing) > 3 else ''} into it"
        )
    files = [SafetensorsFile(folder / name) for name in used]
    tensors = TensorFiles(files, _others(names, used))
    found = {tensor: file.path.name for file in files for tensor in file.types}
    if found != placed:
        name = min(dict(found.items() ^ placed.items()))
        raise ProtocolError(
            f"{index.name} says that tensor {name!r} is in {placed.get(name, 'no file')}, it is in "
            f"{found.get(name, 'no file')}: index and files are of two models, or one file was replaced; take all of "
            "them from one source, or move the index away to take every file as it is"
        )
    return tensors


def _files_in(folder: Path) -> list[str]:
    try:
        return sorted(item.name for item in folder.iterdir() if item.is_file())
    except OSError as error:
        raise OperationalError(f"can't read {folder}: {reason_of(error)}") from error


def _others(names: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in used)


def _require_shards(folder: Path, files: Sequence[str]) -> None:
    """Files without an index whose names count them, model-00001-of-00003.safetensors, are all there."""
    there = set(files)
    # One file of each model that is cut in this way; a hostile folder may have as many of them as files.
    for match in {(m[1], len(m[2]), m[3]): m for m in map(_SHARD.fullmatch, files) if m}.values():
        stem, count = match[1], match[3]
        # As many as the folder holds files, plus one, are looked for, whatever number a name states.
        for number in range(1, min(int(count), len(files) + 1) + 1):
            shard = f"{stem}{number:0{len(match[2])}}-of-{count}{ENDING}"
            if shard not in there:
                raise OperationalError(
                    f"{folder} holds {match[0]} and lacks {shard}: download all {int(count)} files of the model, or "
                    "name one file to take it alone"
                )


def _read_index(path: Path) -> dict[str, str]:
    """The file of each tensor."""
    try:
        if path.stat().st_size > HEADER_LIMIT:
            raise ProtocolError(f"{path} has more than {HEADER_LIMIT} bytes")
        document = canonical_json.parse(path.read_bytes(), str(path), unique=True)
    except OSError as error:
        raise OperationalError(f"can't read {path}: {reason_of(error)}") from error
    placed = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(placed, dict) or not all(isinstance(file, str) for file in placed.values()):
        raise ProtocolError(
            f"{path} has no weight_map from tensors to files: not an index of Hugging Face; name the safetensors files"
        )
    if not placed:
        raise ProtocolError(f"{path} names no tensor: name the safetensors files, or take the model again")
    return placed


def _refuse_pickle(path: Path) -> None:
    try:
        with path.open("rb") as file:
            begin = file.read(4)
    except OSError as error:
        raise OperationalError(f"can't read {path}: {reason_of(error)}") from error
    # A safetensors file that begins like a pickle would state a header of more bytes than allowed.
    if path.suffix in PICKLED or (path.suffix != ENDING and begin.startswith(_MAGIC)):
        raise UnsupportedError(
            f"{path} is a pickled checkpoint: loading one runs its author's code, so pol never does. Convert it where "
            f"you trust it: safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'model{ENDING}')"
        )
