"""Writes the networks of circuits/ from their steps, or names those that differ: python -m pol.zk.export [--check]."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from pol.errors import OperationalError
from pol.zk.circuits import CIRCUIT, NETWORK, STEP, folder
from pol.zk.network import StepNetwork
from pol.zk.tracing import trace

SCALE = 20
"""Numbers of the circuits are multiples of 2**-20."""


def step_module(place: Path) -> ModuleType:
    """The module that defines a circuit's step. It is executed, so it has to be trusted.

    Raises OperationalError if there is none.
    """
    spec = importlib.util.spec_from_file_location(f"circuit_{place.name}", place / STEP)
    if spec is None or spec.loader is None or not (place / STEP).is_file():
        raise OperationalError(f"there is no {place / STEP}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def network_of(place: Path) -> StepNetwork:
    """The network of a circuit's step."""
    module = step_module(place)
    return trace(module.step, module.INPUTS, SCALE)


def main(arguments: list[str]) -> int:
    """Number of files that differ, which are written unless `--check` is given."""
    differing = 0
    for place in sorted(path.parent for path in folder().glob(f"*/{CIRCUIT}")):
        data = network_of(place).to_json()
        file = place / NETWORK
        if not file.is_file() or file.read_bytes() != data:
            differing += 1
            print(f"{file} {'differs from its step' if '--check' in arguments else 'written'}")
            if "--check" not in arguments:
                file.write_bytes(data)
    return differing if "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
