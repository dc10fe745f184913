"""The fingerprint of a run: code, versions, modes that change bits, hardware. For comparison; never executed."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import operator
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from pol.release import __version__

PACKAGES = ("accelerate", "lightning", "numpy", "torch", "transformers")


class Environment:
    """The fingerprint of a training that uses some objects (model, optimizer, ...); code is read once."""

    def __init__(self, objects: Iterable[object]):
        self._fixed = {"code": _code(objects), "versions": _versions(), "hardware": _hardware()}

    def state(self) -> dict[str, Any]:
        """The fingerprint, with the present modes."""
        return {**self._fixed, "modes": _modes()}


def _code(objects: Iterable[object]) -> dict[str, str]:
    """SHA-256 of the source files of the main script and of the objects' classes, by module."""
    files: dict[str, str | None] = {"__main__": getattr(sys.modules.get("__main__"), "__file__", None)}
    for thing in objects:
        parts = thing.modules() if isinstance(thing, torch.nn.Module) else [thing]
        for type_ in {type(part) for part in parts}:
            module = inspect.getmodule(type_)
            if module is not None and not module.__name__.startswith("torch."):
                files[module.__name__] = getattr(module, "__file__", None)
    return {
        module: hashlib.sha256(Path(file).read_bytes()).hexdigest()
        for module, file in sorted(files.items())
        if file is not None and Path(file).is_file()
    }


@functools.cache
def _versions() -> dict[str, str]:
    """Read once, as a process doesn't load another version later."""
    found = {"python": platform.python_version(), "pol": __version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if torch.version.cuda is not None:
        found["cuda"] = torch.version.cuda
    return found


def _modes() -> dict[str, Any]:
    """Modes of torch that change bits without a change of code."""
    backends = torch.backends
    precisions = ("", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul", "mkldnn.conv")
    read = {name: f"{name}.fp32_precision".lstrip(".") for name in precisions}
    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "cudnn_deterministic": backends.cudnn.deterministic,
        "cudnn_benchmark": backends.cudnn.benchmark,
        "fp32_precision": {name or "all": _read(backends, path) for name, path in read.items()},
        "float32_matmul_precision": _read(torch, "get_float32_matmul_precision"),
        "mkldnn": backends.mkldnn.enabled,
        "flush_denormal": not torch.full((1,), 2.0**-126).mul(0.5).item(),
        "default_dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
    }


def _read(owner: Any, path: str) -> Any:
    """A switch of torch; None if this torch lacks it, or can't say it because it was set by one that replaces it."""
    try:
        found = operator.attrgetter(path)(owner)
        return found() if callable(found) else found
    except (AttributeError, RuntimeError):
        return None


def _hardware() -> dict[str, Any]:
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "capability": torch.backends.cpu.get_cpu_capability(),
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }
