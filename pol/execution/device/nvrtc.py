"""Machine code for GPUs, by NVRTC, kept in a cache. It needs neither a GPU nor a driver."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pol.errors import OperationalError
from pol.execution.device.device import Kernel
from pol.execution.device.sources import translation_unit
from pol.extras import missing_extra

LEAST_CAPABILITY = (7, 5)
_OPTIONS = {"fma": False, "ftz": False, "prec_div": True, "prec_sqrt": True, "std": "c++17"}
"""No product and sum are joined, subnormals stay, division and root are exactly rounded."""
_KERNELS_OF_A_UNIT = 16
"""Reading the headers takes about as long as compiling one kernel; single units keep all threads busy."""
_MOST_CACHED_BYTES = 2**30


def cache_folder() -> Path:
    """Where compiled kernels are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pol" / "kernels"


def architecture(capability: tuple[int, int], supported: Sequence[int]) -> str:
    """The architecture to compile for: the newest that a GPU of this compute capability runs.

    ``supported`` are NVRTC's, as tens of the major number and the minor one. Machine code runs on GPUs of the same
    major number and an equal or greater minor one. Raises OperationalError if the GPU is too old, or too new.
    """
    major, minor = capability
    if capability < LEAST_CAPABILITY:
        raise OperationalError(f"this GPU has compute capability {major}.{minor}, kernels need 7.5: use a newer one")
    fitting = [number for number in supported if number // 10 == major and number % 10 <= minor]
    if not fitting:
        raise OperationalError(
            f"the installed NVRTC makes no code for compute capability {major}.{minor}: "
            "install a newer one (pip install --upgrade nvidia-cuda-nvrtc)"
        )
    return f"sm_{max(fitting)}"


class Compiler:
    """Compiles kernels for one architecture (``sm_90``); what it compiled once is read from a folder.

    A file is named after source, options, architecture and NVRTC's version, and begins with the digest of the rest: one
    that was damaged is compiled again. The folder is for this user only: what lies in it is executed.

    Raises:
        OperationalError: `proof-of-learning[gpu]` is not installed.
    """

    def __init__(self, arch: str, folder: Path | None = None) -> None:
        with reported():
            from cuda.core import ProgramOptions
            from cuda.core.utils import FileStreamProgramCache

            self._options = ProgramOptions(arch=arch, **_OPTIONS)
        folder = cache_folder() if folder is None else folder
        self._cache: Any = None
        with suppress(OSError):  # a home that can't be written to: everything is compiled in every process
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                self._cache = FileStreamProgramCache(folder, max_size_bytes=_MOST_CACHED_BYTES)
        self._lock = threading.Lock()
        self.compiled = 0

    def units(self, kernels: Sequence[Kernel]) -> list[tuple[Sequence[Kernel], bytes]]:
        """Kernels in groups, each with its machine code (a cubin). OperationalError as of `machine_code`."""
        groups = [kernels[i : i + _KERNELS_OF_A_UNIT] for i in range(0, len(kernels), _KERNELS_OF_A_UNIT)]
        if len(groups) == 1:
            return [(groups[0], self.machine_code(translation_unit(groups[0])))]
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            codes = workers.map(lambda group: self.machine_code(translation_unit(group)), groups)
            return list(zip(groups, codes, strict=True))

    def machine_code(self, source: str) -> bytes:
        """The cubin of a translation unit. OperationalError if NVRTC is missing or refuses the source."""
        with reported():
            from cuda.core import Program
            from cuda.core.utils import make_program_cache_key

            key = make_program_cache_key(code=source, code_type="c++", options=self._options, target_type="cubin")
            kept = self._cached(key)
            if kept is not None:
                return kept
            code = bytes(Program(source, "c++", self._options).compile("cubin").code)
        with self._lock:
            self.compiled += 1
        self._keep(key, code)
        return code

    def _cached(self, key: bytes) -> bytes | None:
        try:
            kept = None if self._cache is None else self._cache.get(key)
        except OSError:
            return None
        if kept is None or kept[:32] != hashlib.sha256(kept[32:]).digest():
            return None
        return bytes(kept[32:])

    def _keep(self, key: bytes, code: bytes) -> None:
        if self._cache is None:
            return
        with suppress(OSError):  # a full disk: this process has the code
            self._cache[key] = hashlib.sha256(code).digest() + code


def supported_architectures() -> list[int]:
    """NVRTC's, as tens of the major number and the minor one. OperationalError if it is not installed."""
    with reported():
        from cuda.bindings import nvrtc

        error, numbers = nvrtc.nvrtcGetSupportedArchs()
        if int(error):
            raise OperationalError(f"NVRTC names no architectures ({error!r}): install proof-of-learning[gpu] again")
        return list(numbers)


def version() -> tuple[int, int]:
    """NVRTC's version. OperationalError if it is not installed."""
    with reported():
        from cuda.bindings import nvrtc

        error, major, minor = nvrtc.nvrtcVersion()
        if int(error):
            raise OperationalError(f"NVRTC tells no version ({error!r}): install proof-of-learning[gpu] again")
        return major, minor


@contextmanager
def reported() -> Iterator[None]:
    """What CUDA's packages raise becomes an OperationalError that says what to do."""
    try:
        yield
    except ImportError as error:
        raise OperationalError(missing_extra(error) or f"CUDA's packages don't load: {error}") from error
    except RuntimeError as error:
        if type(error).__name__ != "DynamicLibNotFoundError":
            raise
        raise OperationalError(f"NVRTC is not installed: pip install 'proof-of-learning[gpu]' ({error})") from error
    except Exception as error:
        if not any(base.__name__ == "CUDAError" for base in type(error).__mro__):
            raise
        raise OperationalError(f"CUDA refused: {str(error)[:2000]}") from error
