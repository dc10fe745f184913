"""This machine's processor as a device: the kernels of a GPU, compiled by its C++ compiler. It is for tests."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError
from pol.execution.device.device import Kernel
from pol.execution.device.sources import translation_unit

_FLAGS = ("-std=c++17", "-shared", "-fPIC", "-O1", "-ffp-contract=off", "-fno-math-errno", "-w")


class HostDevice:
    """Runs kernels as loops over blocks and threads.

    Args:
        flags: further flags of the compiler: a sanitizer, ``-DPOL_BACKWARDS=1``.
        threads: of this machine, among which blocks are divided.

    Raises:
        OperationalError: there is no C++ compiler.
    """

    def __init__(self, flags: Sequence[str] = (), threads: int = 1) -> None:
        compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise OperationalError("there is no C++ compiler to build kernels with; install g++ or set CXX")
        self._command = [compiler, *_FLAGS, *_fused_multiply_add(), *flags]
        self._folder = Path(tempfile.mkdtemp(prefix="pol-kernels-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._functions: dict[str, ctypes._NamedFuncPointer] = {}
        self._threads = threads
        self._workers = ThreadPoolExecutor(threads) if threads > 1 else None

    @property
    def name(self) -> str:
        """The device, in words."""
        return "host"

    @property
    def packages(self) -> str:
        """NumPy, which sorts, with its version."""
        return f"numpy {np.__version__}"

    def load(self, kernels: Sequence[Kernel]) -> None:
        """Compile kernels that are not there yet, in one call of the compiler; OperationalError if it fails."""
        new = list({kernel.name: kernel for kernel in kernels if kernel.name not in self._functions}.values())
        if not new:
            return
        source = translation_unit(new)
        path = self._folder / f"{hashlib.sha256(source.encode()).hexdigest()[:32]}.so"
        command = [*self._command, "-x", "c++", "-", "-o", str(path)]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OperationalError(f"the C++ compiler could not build the kernels: {done.stderr.strip()[:2000]}")
        library = ctypes.CDLL(str(path))
        for kernel in new:
            self._functions[kernel.name] = getattr(library, kernel.name)

    def launch(self, kernel: Kernel, buffers: Sequence[Words], number: int, blocks: int | None = None) -> None:
        """Run a kernel and wait for it."""
        self.load([kernel])
        function = self._functions[kernel.name]
        count = kernel.blocks if blocks is None else blocks
        arguments = [ctypes.c_void_p(buffer.ctypes.data) for buffer in buffers]

        def run(first: int, last: int) -> None:
            function(ctypes.c_longlong(first), ctypes.c_longlong(last - first), *arguments, ctypes.c_longlong(number))

        if self._workers is None or count == 1:
            run(0, count)
            return
        cuts = [count * part // self._threads for part in range(self._threads + 1)]
        list(self._workers.map(run, cuts, cuts[1:]))

    def empty(self, words: int) -> Words:
        """Memory for this many words."""
        return np.empty(words, np.uint32)

    def put(self, words: Words) -> Words:
        """A flat copy."""
        return words.reshape(-1).copy()

    def get(self, buffer: Words, shape: tuple[int, ...]) -> Words:
        """A copy of this shape."""
        return buffer.reshape(shape).copy()

    def part(self, buffer: Words, first: int) -> Words:
        """The words from one on."""
        return buffer[first:]

    def sort(self, keys: Words, lines: int) -> tuple[Words, Words]:
        """Sorted keys and where they were, by line."""
        rows = keys.view(np.int32).reshape(lines, -1)
        order = np.argsort(rows, axis=1, kind="stable")
        in_order = np.take_along_axis(rows, order, axis=1)
        return in_order.reshape(-1).view(np.uint32), order.astype(np.uint32).reshape(-1)


@functools.cache
def _fused_multiply_add() -> tuple[str, ...]:
    """The flag that lets the compiler use the processor's fused multiply-add, if it has one."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    return ("-mfma",) if " fma " in flags else ()
