"""Devices by name: ``cuda``, ``cuda:1``, ``host``; and executors on them."""

from __future__ import annotations

import functools
import importlib
import re
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.device.device import Device
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice
from pol.execution.device.self_test.first_use import cache_folder, driver_version, require_tested
from pol.graph.step_program import StepProgram

CPU = "cpu"
"""The processor's own kernels: no device."""
Executors: TypeAlias = Callable[[StepProgram, Sequence[Words]], CpuExecutor | DeviceExecutor]
_NAME = re.compile(r"cpu|host|cuda(?::(\d{1,3}))?")


def require_device_name(name: str) -> str:
    """The name itself; ProtocolError unless it is that of a device, or ``cpu``."""
    if _NAME.fullmatch(name) is None:
        raise ProtocolError(f"there is no device {name!r}: name cpu, cuda, cuda:1 (the second GPU) or host")
    return name


def is_gpu(name: str) -> bool:
    """Whether a name is that of a GPU."""
    return name.startswith("cuda")


@functools.cache
def open_device(name: str, cache: Path | None = None) -> Device:
    """The device, which this process opens once. A GPU has passed the self-test; the first time it runs now.

    Args:
        name: ``cuda`` for the first GPU, ``cuda:N`` for another one, ``host`` for the stand-in of tests.
        cache: the folder that remembers passed tests; by default a folder of the user.

    Raises:
        OperationalError: there is no such device, it can't compile kernels, or it doesn't give the defined bits.
    """
    if name == "cuda:0":
        return open_device("cuda", cache)
    device = untested_device(name)
    if is_gpu(name):
        require_tested(device, driver_version(), cache or cache_folder())
    return device


def untested_device(name: str) -> Device:
    """A device that may not have passed the self-test. Raises as `open_device`, but not for wrong bits."""
    if require_device_name(name) == CPU:
        raise ProtocolError("the processor is no device: its own kernels are faster")
    return _gpu(int(name.partition(":")[2] or 0)) if is_gpu(name) else HostDevice()


@functools.cache
def executors_on(name: str, threads: int = 0) -> Executors:
    """What makes executors on a device, or on this many threads of the processor (0: all) for ``cpu``.

    The device is opened when the first executor is made. Executors share constants on it with the one made before them,
    as long as that is in use. Raises ProtocolError if there is no such name.
    """
    if require_device_name(name) == CPU:
        return functools.partial(CpuExecutor, threads=threads)
    return _DeviceExecutors(name)


class _DeviceExecutors:
    def __init__(self, name: str) -> None:
        self._name = name
        self._last: Callable[[], DeviceExecutor | None] = lambda: None

    def __call__(self, program: StepProgram, constants: Sequence[Words]) -> DeviceExecutor:
        made = DeviceExecutor(program, constants, open_device(self._name), other=self._last())
        self._last = weakref.ref(made)
        return made


def _gpu(index: int) -> Device:
    try:
        module = importlib.import_module("pol.execution.device.cuda")
    except ImportError as error:
        raise OperationalError(f"can't use a GPU: {error}; pip install 'proof-of-learning[gpu]'") from error
    device: Device = module.CudaDevice(index)
    return device
