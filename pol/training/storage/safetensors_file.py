"""Safetensors files on this machine, whoever wrote them: a memory map behind a strictly parsed header."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from pol.commitments.array import Array, Bytes
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.training.storage import safetensors_format


class SafetensorsFile:
    """A safetensors file. The tensors are views of the file: its content must not change while they are used.

    Raises:
        ProtocolError: not a valid safetensors file; the message says where.
        OperationalError: the file can't be read.
    """

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
        """A tensor, without a copy.

        Raises:
            ProtocolError: a boolean that is neither 0 nor 1.
        """
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
