"""The devices that these tests share: the host as a stand-in, and with ``-m gpu`` the first GPU."""

import functools
import importlib.util

import pytest

from pol.execution.device.device import Device
from pol.execution.device.host import HostDevice


@functools.cache
def opened(name: str, is_optimised: bool = False) -> Device:
    """A device, once per process: what it has compiled is kept. A kernel is compiled longer than a test runs it."""
    if name == "host":
        return HostDevice() if is_optimised else HostDevice(["-O0"])
    from pol.execution.device.cuda import CudaDevice

    return CudaDevice()


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    name: str = request.param
    return opened(name, getattr(request.module, "IS_OPTIMISED", False))


@pytest.fixture
def host_device() -> HostDevice:
    host = opened("host")
    assert isinstance(host, HostDevice)
    return host


@pytest.fixture(scope="session")
def nvrtc() -> None:
    """Skips the test if the compiler for GPUs or the disassembler is not installed."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None:
        pytest.skip("the compiler for GPUs is not installed: pip install 'proof-of-learning[gpu]'")
