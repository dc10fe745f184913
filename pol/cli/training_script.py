"""A user's own training script, run here: the whole of it, or a function that it names."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pol.errors import OperationalError, PolError


def script_parts(script: str) -> tuple[Path, str]:
    """The file, and the function or an empty string."""
    name, separator, function = script.rpartition(":")
    path = Path(name if separator and function.isidentifier() else script)
    if not path.is_file():
        raise OperationalError(f"there is no file {path}: give the path of a Python script")
    return path, function if separator and function.isidentifier() else ""


@contextmanager
def as_script(path: Path) -> Iterator[None]:
    """Modules beside the script can be imported, and it sees no arguments of this command."""
    arguments, places = sys.argv, list(sys.path)
    sys.argv, sys.path[:0] = [str(path)], [str(path.resolve().parent)]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = arguments, places


def run_script(path: Path, function: str) -> Any:
    """What the function gives; of a whole script nothing."""
    try:
        space = runpy.run_path(str(path), run_name="pol_capture" if function else "__main__")
        if not function:
            return None
        if not callable(space.get(function)):
            raise OperationalError(f"{path.name} has no function {function}: name one that takes no arguments")
        return space[function]()
    except SystemExit:
        return None
    except PolError:
        raise
    except Exception as error:
        raise OperationalError(
            f"{path} fails with {type(error).__name__}: {error}: let it run by itself first"
        ) from error
