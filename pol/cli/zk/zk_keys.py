"""What commands of ``pol zk`` share: where keys lie, the wait for a prover, the vector after a step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pol.zk.circuits import Circuit
from pol.zk.fixed_point import Integers

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pol" / "zk"
keys_option = click.option(
    "--keys", "root", type=click.Path(path_type=Path), default=CACHE, metavar="DIR", help="Of all keys."
)


@contextmanager
def spinning(what: str, quiet: bool) -> Iterator[None]:
    """Says what is waited for."""
    show: Callable[[str], Any] = Console(stderr=True, quiet=quiet).status
    with show(what):
        yield


def write_next(path: Path, circuit: Circuit, after: Integers) -> None:
    """The vector after a step, which its owner alone may read, as the next step takes it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({f"{circuit.network.inputs[0]}.integers": [int(x) for x in after.ravel()]}, file)
