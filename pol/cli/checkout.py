"""The laboratory of a checkout: benchmarks and searches that no installed package holds."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import click

import pol


def laboratory(module: str) -> ModuleType:
    """A module of ``tests/lab``. Raises click.UsageError: this isn't a checkout."""
    tests = Path(pol.__file__).parents[1] / "tests"
    if not (tests / "lab" / "__init__.py").is_file():
        raise click.UsageError("this needs a checkout of the repository: clone it and run .ci/setup there")
    if str(tests) not in sys.path:
        sys.path.insert(0, str(tests))
    return importlib.import_module(f"lab.{module}")
