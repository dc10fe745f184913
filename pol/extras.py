"""Names that load when they are first used, and the extra that installs a missing module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader  # type: ignore[import-untyped]  # it has no types

EXTRAS = {
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
                return f"this needs {module}, which isn't installed: pip install 'pol[{EXTRAS[module]}]'"
        error = error.__cause__ or error.__context__
    return None


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package with a stub: names load when they are first used.

    If a module is missing, ModuleNotFoundError says which extra installs it.
    """
    load, names, public = lazy_loader.attach_stub(package, file)

    def get(name: str) -> Any:
        try:
            return load(name)
        except ModuleNotFoundError as error:
            advice = missing_extra(error)
            if advice is None:
                raise
            raise ModuleNotFoundError(f"{package}.{name}: {advice}", name=error.name) from error

    return get, names, public
