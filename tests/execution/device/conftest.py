"""The stand-in for a GPU that these tests share."""

import pytest

from pol.execution.device.host import HostDevice


@pytest.fixture(scope="session")
def host_device() -> HostDevice:
    return HostDevice()
