"""A process that has ended."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(command: Sequence[str | Path], code: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """What it has said, once it has ended with this exit code; with any if that is None."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert code in (None, done.returncode), f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
