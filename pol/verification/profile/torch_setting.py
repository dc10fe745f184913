"""Settings in which torch may execute a training step, and those worth trying on a machine."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class NativeSetting:
    """How torch executes a step. An empty string is torch's default.

    ``capability`` is ATEN_CPU_CAPABILITY (default, avx2, avx512) and ``mkl`` MKL_CBWR (COMPATIBLE: no vector code
    paths); both are read when a process starts. ``precision`` is float32, or float64 as a yardstick: the same step with
    roundings 2^29 times as fine, rounded at its end. No solver trains like that.
    """

    threads: int = 1
    onednn: bool = True
    capability: str = ""
    mkl: str = ""
    compiled: bool = False
    precision: str = "float32"
    device: str = "cpu"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that have to be set before the process starts."""
        given = {"ATEN_CPU_CAPABILITY": self.capability, "MKL_CBWR": self.mkl}
        return {name: value for name, value in given.items() if value}

    @property
    def is_yardstick(self) -> bool:
        """Whether this setting is for comparison only: no solver trains in it."""
        return self.precision != "float32"

    @property
    def name(self) -> str:
        """A name for people."""
        parts = [f"{self.threads} thread{'s' * (self.threads > 1)}" if self.device == "cpu" else self.device]
        parts += ["no oneDNN"] * (not self.onednn)
        parts += [f"ATen {self.capability}"] * bool(self.capability) + [f"MKL {self.mkl.lower()}"] * bool(self.mkl)
        parts += ["torch.compile"] * self.compiled
        parts += [self.precision] * self.is_yardstick
        return ", ".join(parts)


def settings_here(compiled: bool = False, devices: tuple[str, ...] = ()) -> list[NativeSetting]:
    """The settings for this machine: threads, oneDNN and MKL off, the plainest kernels of ATen, float64, ``devices``.

    ``compiled`` adds torch.compile, if there is a C++ compiler: it takes a minute.
    """
    cores = os.cpu_count() or 1
    plain = NativeSetting()
    found = [replace(plain, threads=count) for count in sorted({1, min(2, cores), cores})]
    found += [replace(plain, onednn=False), replace(plain, capability="default"), replace(plain, mkl="COMPATIBLE")]
    found += [replace(plain, compiled=True)] * (compiled and shutil.which("c++") is not None)
    found += [replace(plain, device=device) for device in devices]
    return [*found, replace(plain, precision="float64")]
