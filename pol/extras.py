"""Names that load when they are first used, and the extra that installs a missing module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

EXTRAS = {
    "web3": "chain",
    "eth_abi": "chain",
    "eth_account": "chain",
    "eth_typing": "chain",
    "eth_utils": "chain",
    "hexbytes": "chain",
    "requests": "chain",
    "prometheus_client": "chain",
    "tomlkit": "chain",
    "eth_keys": "rounds",
    "torch": "train",
    "eth_tester": "embedded",
    "eth": "embedded",
    "coincurve": "embedded",
    "py_arkworks_bls12381": "beacon",
    "py_ecc": "beacon",
    "ray": "ray",
    "playwright": "browser",
    "ezkl": "zk",
    "onnx": "zk",
    "transformers": "integrations",
    "lightning": "integrations",
    "accelerate": "integrations",
    "safetensors": "integrations",
    "s3fs": "s3",
    "cuda": "gpu",
    "blake3": "dev",
}
"""By top-level module: the extra that installs it."""


def missing_extra(error: BaseException | None) -> str | None:
    """Advice if an exception comes from a missing module of an extra, else None."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            module = error.name.partition(".")[0]
            if module in EXTRAS:
                return f"this needs {module}, which isn't installed: pip install 'proof-of-learning[{EXTRAS[module]}]'"
        error = error.__cause__ or error.__context__
    return None


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package with a stub: names load when they are first used.

    The stub beside ``file`` holds one ``from .module import name as name`` for each, without a name of a module
    for modules; more dots lead above. If a module is missing, ModuleNotFoundError says which extra installs it.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.level]
    modules = {alias.name: (node.module, "." * node.level) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module, dots = modules[name]
            # ``from . import name`` is a module itself.
            holder = import_module(f"{dots}{module or name}", package)
            value = holder if module is None else getattr(holder, name)
        except ModuleNotFoundError as error:
            advice = missing_extra(error)
            if advice is None:
                raise
            raise ModuleNotFoundError(f"{package}.{name}: {advice}", name=error.name) from error
        vars(sys.modules[package])[name] = value
        return value

    class Package(ModuleType):
        def __setattr__(self, name: str, value: object) -> None:
            # An import binds a submodule to its package. It must not hide a public name of the same spelling.
            if not (isinstance(value, ModuleType) and modules.get(name, (None, ""))[0]):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    return get, lambda: sorted(modules), sorted(modules)
