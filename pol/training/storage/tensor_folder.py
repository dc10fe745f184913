"""Tensors in a safetensors file, or in a folder of them such as a Hugging Face model.

A model may be cut into files in any way: each name of a tensor stands once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType
from pol.commitments.complete_state import StateEntry
from pol.commitments.distributed_array import describe_part, root_of_parts
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.training.storage.safetensors_file import SafetensorsFile
from pol.training.storage.safetensors_format import HEADER_LIMIT

ENDING = ".safetensors"
INDEX = ".safetensors.index.json"
PIECE = 1 << 26
"""Bytes that are hashed at a time; whole leaves."""
PICKLED = frozenset({".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"})
_MAGIC = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class TensorFiles:
    """The tensors of some files under their names. ``left_out`` names other files of the folder.

    Raises:
        ProtocolError: a name stands in two files.
    """

    def __init__(self, files: list[SafetensorsFile], left_out: tuple[str, ...] = ()):
        self._files: dict[str, SafetensorsFile] = {}
        for file in files:
            for name in file.types:
                if (other := self._files.setdefault(name, file)) is not file:
                    raise ProtocolError(
                        f"{other.path.name} and {file.path.name} both hold a tensor {name!r}: these are two models in "
                        "one folder; name one of the files"
                    )
        self.types: Mapping[str, ArrayType] = {name: file.types[name] for name, file in self._files.items()}
        self.left_out = left_out

    def array(self, name: str) -> Array:
        """A tensor, without a copy; ProtocolError for a boolean that is neither 0 nor 1."""
        return self._files[name].array(name)

    def release(self, name: str) -> None:
        """Say that a tensor isn't needed for now."""
        self._files[name].release(name)

    def entries(self, threads: int = 0) -> tuple[StateEntry, ...]:
        """The entries of the complete state that holds these tensors and nothing else.

        Raises:
            ProtocolError: a boolean that is neither 0 nor 1.
        """
        return tuple(StateEntry(n, self.types[n], self._root(n, threads)) for n in sorted(self.types, key=str.encode))

    def _root(self, name: str, threads: int) -> bytes:
        """Hashed piece by piece: a tensor of any size takes the memory of one piece."""
        data = self.array(name).data
        parts = []
        for first in range(0, data.size, PIECE):
            parts.append(describe_part(first, data[first : first + PIECE], threads))
            self._files[name].release(name, first, PIECE)
        return root_of_parts(self.types[name], parts)


def open_tensors(path: Path) -> TensorFiles:
    """The tensors of a safetensors file, or of a folder of them.

    In a folder with an index (``model.safetensors.index.json``) they are those that it names, else those of all files.

    Raises:
        ProtocolError: a malformed file, two tensors of one name, or an index that doesn't fit the files.
        UnsupportedError: a pickled checkpoint.
        OperationalError: nothing there, or it can't be read.
    """
    if path.is_dir():
        return _open_folder(path)
    if not path.is_file():
        if path.exists():
            raise OperationalError(f"{path} is neither a file nor a folder")
        raise OperationalError(f"there is no file or folder {path}")
    _refuse_pickle(path)
    return TensorFiles([SafetensorsFile(path)])


def _open_folder(folder: Path) -> TensorFiles:
    try:
        names = sorted(item.name for item in folder.iterdir() if item.is_file())
    except OSError as error:
        raise OperationalError(f"can't read {folder}: {error}") from error
    files = [name for name in names if name.endswith(ENDING)]
    indexes = [name for name in names if name.endswith(INDEX)]
    if not files:
        for name in names:
            _refuse_pickle(folder / name)
        raise OperationalError(f"{folder} holds no safetensors file and no learning record")
    if len(indexes) > 1:
        raise ProtocolError(f"{folder} holds the indexes {', '.join(indexes)}: name the files of one model")
    if not indexes:
        used, opened = files, [SafetensorsFile(folder / name) for name in files]
        return TensorFiles(opened, tuple(name for name in names if name not in used))
    placed = _read_index(folder / indexes[0])
    if missing := sorted(set(placed.values()) - set(files)):
        raise OperationalError(f"{folder} lacks {missing[0]}, which its index names")
    used = sorted(set(placed.values()))
    opened = [SafetensorsFile(folder / name) for name in used]
    found = {tensor: file.path.name for file in opened for tensor in file.types}
    tensors = TensorFiles(opened, tuple(name for name in names if name not in used))
    if found != placed:
        name = sorted(dict(found.items() ^ placed.items()))[0]
        raise ProtocolError(
            f"{indexes[0]} says that tensor {name!r} is in {placed.get(name, 'no file')}, it is in "
            f"{found.get(name, 'no file')}"
        )
    return tensors


def _read_index(path: Path) -> dict[str, str]:
    """The file of each tensor."""
    try:
        if path.stat().st_size > HEADER_LIMIT:
            raise ProtocolError(f"{path} has more than {HEADER_LIMIT} bytes")
        document = canonical_json.parse(path.read_bytes(), str(path), unique=True)
    except OSError as error:
        raise OperationalError(f"can't read {path}: {error}") from error
    placed = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(placed, dict) or not all(isinstance(file, str) for file in placed.values()):
        raise ProtocolError(f"{path} has no weight_map from tensors to files")
    return placed


def _refuse_pickle(path: Path) -> None:
    try:
        with path.open("rb") as file:
            begin = file.read(4)
    except OSError as error:
        raise OperationalError(f"can't read {path}: {error}") from error
    # A safetensors file that begins like a pickle would state a header of more bytes than allowed.
    if path.suffix in PICKLED or (path.suffix != ENDING and begin.startswith(_MAGIC)):
        raise UnsupportedError(
            f"{path} is a pickled checkpoint: loading one runs its author's code, so pol never does. Convert it where "
            f"you trust it: safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'model{ENDING}')"
        )
