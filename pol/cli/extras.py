"""Which extra of the package brings a module that isn't installed."""

from __future__ import annotations

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
    "zksnake": "zk",
    "transformers": "integrations",
    "lightning": "integrations",
    "accelerate": "integrations",
    "s3fs": "s3",
    "blake3": "dev",
}
"""Top-level modules, and the extras that the modules of this package which import them need."""


def missing_extra(error: BaseException | None) -> str | None:
    """What to install, if an exception comes from a module of an extra that isn't there; else None."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            module = error.name.partition(".")[0]
            if module in EXTRAS:
                return f"this needs {module}, which isn't installed: pip install 'pol[{EXTRAS[module]}]'"
        error = error.__cause__ or error.__context__
    return None
