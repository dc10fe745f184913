"""The compiled contracts that ship with the package, so that no compiler is needed."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from pol.errors import OperationalError


@cache
def artifact(contract: str) -> dict[str, Any]:
    """ABI and creation bytecode of a contract. Raises OperationalError: the artifact is missing."""
    path = files("pol.chain") / "artifacts" / f"{contract}.json"
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise OperationalError(f"no artifact of contract {contract}: build it with .ci/artifacts.py") from error
    return document


@cache
def contracts() -> tuple[str, ...]:
    """Names of all contracts that have an artifact."""
    folder = files("pol.chain") / "artifacts"
    return tuple(sorted(f.name.removesuffix(".json") for f in folder.iterdir() if f.name.endswith(".json")))
