"""A GPU of NVIDIA as a device: torch has its memory, NVRTC compiles its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError
from pol.execution.device.device import Kernel
from pol.execution.device.nvrtc import Compiler, architecture, reported, supported_architectures, version
from pol.extras import missing_extra

if TYPE_CHECKING:
    import torch

MOST_BLOCKS = 2**31 - 1
"""Of one launch, along the dimension of a grid that kernels use."""


class CudaDevice:
    """Runs kernels on torch's current stream of one GPU, in memory of torch's allocator.

    A launch makes the GPU the calling thread's current one.

    Args:
        index: of the GPU, among those that CUDA_VISIBLE_DEVICES leaves.
        cache: folder of compiled kernels, else the user's cache folder.

    Raises:
        OperationalError: torch is built without CUDA, there is no driver or no such GPU, the GPU or the driver is too
            old, or `proof-of-learning[gpu]` is not installed. Later: the GPU's memory is full, or a kernel failed.
    """

    def __init__(self, index: int = 0, cache: Path | None = None) -> None:
        self._torch = _torch_with_gpu(index)
        self._index = index
        self._place = self._torch.device("cuda", index)
        with reported():
            from cuda.bindings import driver

            error, supported = driver.cuDriverGetVersion()
            if int(error):
                raise OperationalError(f"the driver does not tell its version: {error!r}; run nvidia-smi")
        check_driver(supported, version()[0])
        capability = self._torch.cuda.get_device_capability(index)
        self._compiler = Compiler(architecture(capability, supported_architectures()), cache)
        self._kernels: dict[str, Any] = {}
        self._streams: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """The device, in words."""
        return str(self._torch.cuda.get_device_name(self._index))

    @property
    def packages(self) -> str:
        """NVRTC, cuda-core and torch, each with its version."""
        with reported():
            import cuda.core

            compiler = ".".join(map(str, version()))
            return f"nvrtc {compiler}, cuda-core {cuda.core.__version__}, torch {self._torch.__version__}"

    def load(self, kernels: Sequence[Kernel]) -> None:
        """Compile and load kernels that are not there yet; OperationalError if it fails."""
        new = list({kernel.name: kernel for kernel in kernels if kernel.name not in self._kernels}.values())
        if not new:
            return
        units = self._compiler.units(new)
        with reported():
            from cuda.core import ObjectCode

            self._make_current()
            for group, code in units:
                library = ObjectCode.from_cubin(code)
                for kernel in group:
                    self._kernels[kernel.name] = library.get_kernel(kernel.name)

    def launch(self, kernel: Kernel, buffers: Sequence[torch.Tensor], number: int, blocks: int | None = None) -> None:
        """Start a kernel; later calls on this stream see what it wrote."""
        self.load([kernel])
        count = kernel.blocks if blocks is None else blocks
        check_blocks(count)
        with reported():
            from cuda.core import LaunchConfig, launch

            self._make_current()
            # An int is passed as 64 bits: an address, or the `Long` that every kernel ends with.
            arguments = [*(buffer.data_ptr() for buffer in buffers), number]
            launch(
                self._stream(), LaunchConfig(grid=count, block=kernel.threads), self._kernels[kernel.name], *arguments
            )

    def empty(self, words: int) -> torch.Tensor:
        """Memory for this many words."""
        with torch_errors(words):
            buffer: torch.Tensor = self._torch.empty(words, dtype=self._torch.int32, device=self._place)
        return buffer

    def put(self, words: Words) -> torch.Tensor:
        """A flat copy."""
        flat = np.require(words.reshape(-1).view(np.int32), requirements=["C", "W"])
        with torch_errors(flat.size):
            buffer: torch.Tensor = self._torch.from_numpy(flat).to(self._place)
        return buffer

    def get(self, buffer: torch.Tensor, shape: tuple[int, ...]) -> Words:
        """A copy of this shape, once everything before it is done."""
        with torch_errors(0):
            return buffer.cpu().numpy().view(np.uint32).reshape(shape)

    def part(self, buffer: torch.Tensor, first: int) -> torch.Tensor:
        """The words from one on."""
        return buffer[first:]

    def sort(self, keys: torch.Tensor, lines: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Sorted keys and where they were, by line."""
        with torch_errors(4 * keys.numel()):
            in_order, order = self._torch.sort(keys.view(lines, -1), dim=1, stable=True)
            return in_order.reshape(-1), order.to(self._torch.int32).reshape(-1)

    def _make_current(self) -> None:
        """The GPU's primary context, which torch uses as well, becomes the thread's."""
        from cuda.core import Device

        Device(self._index).set_current()

    def _stream(self) -> Any:
        """Torch's current stream of this GPU."""
        from cuda.core import Stream

        handle = self._torch.cuda.current_stream(self._index).cuda_stream
        if handle not in self._streams:
            self._streams[handle] = Stream.from_handle(handle)
        return self._streams[handle]


def check_driver(supported: int, major: int) -> None:
    """OperationalError if a driver can't load code of NVRTC's major version.

    ``supported`` is the newest CUDA that the driver knows: 1000 times the major number, 10 times the minor one.
    """
    if supported // 1000 < major:
        raise OperationalError(
            f"the driver knows CUDA {supported // 1000}.{supported % 1000 // 10}, the installed NVRTC makes code for "
            f"CUDA {major}: update the driver, or pip install 'proof-of-learning[gpu-cuda12]' in a fresh environment"
        )


def check_blocks(count: int) -> None:
    """OperationalError if a grid can't have this many blocks."""
    if not 0 < count <= MOST_BLOCKS:
        raise OperationalError(f"a grid has 1 to {MOST_BLOCKS:,} blocks, not {count:,}: run the program on the CPU")


def _torch_with_gpu(index: int) -> Any:
    """The module torch, once it has such a GPU."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise OperationalError(missing_extra(error) or str(error)) from error
    if torch.version.cuda is None:
        raise OperationalError(
            f"torch {torch.__version__} is built without CUDA: install a build with it (pytorch.org/get-started)"
        )
    if not torch.cuda.is_available():
        raise OperationalError(
            "torch finds no GPU: there is no driver of NVIDIA, or CUDA_VISIBLE_DEVICES hides it; run nvidia-smi"
        )
    count = torch.cuda.device_count()
    if not 0 <= index < count:
        raise OperationalError(f"there is no GPU {index}: choose one of 0 to {count - 1}")
    return torch


@contextmanager
def torch_errors(words: int) -> Iterator[None]:
    """Torch's errors of a GPU become OperationalErrors that say what to do."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OperationalError(
            f"the GPU's memory is full ({4 * words / 1e9:,.1f} GB more were wanted): end other programs that use it "
            "(nvidia-smi), take a GPU with more memory, or run the program on the CPU"
        ) from error
    except torch.AcceleratorError as error:
        raise OperationalError(f"the GPU failed; start the process again. CUDA says: {str(error)[:500]}") from error
