"""A GPU has to pass the short self-test before its first use, and again after a new driver or new kernels."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from pathlib import Path

import pol.execution.device
from pol.execution.device.device import Device
from pol.execution.device.self_test.self_test import require_self_test
from pol.execution.device.self_test.subjects import DeviceSubject

_DRIVER = Path("/proc/driver/nvidia/version")


def cache_folder() -> Path:
    """Where passed tests are remembered: a folder of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pol" / "devices"


def driver_version() -> str:
    """The version of NVIDIA's driver here; empty without one."""
    try:
        found = re.search(r"Kernel Module(?: for \w+)?\s+([\d.]+)", _DRIVER.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[1] if found else ""


@functools.cache
def source_digest() -> str:
    """Of the sources that kernels are made from, and of the self-test."""
    folder = Path(pol.execution.device.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for kind in ("*.h", "*.py", "*.step") for path in folder.rglob(kind)):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def require_tested(device: Device, driver: str, folder: Path) -> None:
    """Run the short self-test unless this device has passed it with these packages, this driver and these sources.

    Nothing is remembered of a driver whose version is not known (empty), or in a folder that can't be written to.

    Raises:
        OperationalError: the device doesn't give the defined bits.
    """
    about = f"{device.name}\n{device.packages}\n{driver}\n{source_digest()}\n"
    passed = folder / hashlib.sha256(about.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError, UnicodeDecodeError):  # nothing kept, or a damaged file: the test runs again
        if driver and passed.read_text(encoding="utf-8") == about:
            return
    require_self_test(DeviceSubject(device))
    if not driver:
        return
    with contextlib.suppress(OSError):  # a home that can't be written to: each process tests again
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(about)
        Path(file.name).replace(passed)
