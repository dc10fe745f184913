"""Shared by the commands of ``pol zk``: the folder of keys, a spinner, and the file of the vector after a step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pol.errors import OperationalError, reason_of
from pol.zk.circuits import Circuit
from pol.zk.fixed_point import Integers

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pol" / "zk"
keys_option = click.option(
    "--keys", "root", type=click.Path(path_type=Path), default=CACHE, metavar="DIR", help="Of all keys."
)


@contextmanager
def spinning(what: str, quiet: bool) -> Iterator[None]:
    """Shows a spinner with a description of the work."""
    show: Callable[[str], Any] = Console(stderr=True, quiet=quiet).status
    with show(what):
        yield


def write_next(path: Path, circuit: Circuit, after: Integers) -> None:
    """Write the vector after a step as input of the next one; only its owner may read the file.

    Raises OperationalError if it can't be written.
    """
    document = {f"{circuit.network.inputs[0]}.integers": [int(x) for x in after.ravel()]}
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(document, file)
    except OSError as error:
        raise OperationalError(f"can't write {path}: {reason_of(error)}") from error
