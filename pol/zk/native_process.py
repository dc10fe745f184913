"""Calls to native provers, each in its own process."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from pol.errors import OperationalError

WORKER = "pol.zk.ezkl.worker"
TIMEOUT = 3600.0
VERSION = "23.0.5"
"""The version of EZKL: other versions have other circuits, keys and arguments."""


@dataclass(frozen=True)
class ProverResult:
    """The result of a call and its cost: seconds of wall time and of all threads, and peak memory in bytes."""

    result: Any
    seconds: float
    processor_seconds: float
    peak_bytes: int


def call(name: str, timeout: float | None = None, /, **arguments: Any) -> ProverResult:
    """One call of `pol.zk.ezkl.worker`, for an hour at most if no ``timeout`` (seconds) is given.

    Raises OperationalError if the prover is missing, refuses, panics, dies or takes too long.
    """
    if not name.startswith("exact_"):
        require()
    timeout = timeout or TIMEOUT
    command = [sys.executable, "-m", WORKER]
    request = json.dumps({"call": name, "arguments": arguments})
    environment = {**os.environ, "RUST_LOG": "error", "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(
            command, input=request, capture_output=True, text=True, timeout=timeout, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OperationalError(f"the prover's {name} took longer than {timeout:.0f} s and was stopped") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise OperationalError(f"the prover's {name} {_ending(done.returncode)}: {_last(done.stderr)}")
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise OperationalError(f"the prover's {name} failed: {answer['error']}{_reason(done.stdout + done.stderr)}")
    return ProverResult(answer["result"], answer["seconds"], answer["processor_seconds"], answer["peak_bytes"])


def require() -> None:
    """Raises OperationalError, saying what to do, if EZKL isn't installed or is of another version."""
    if importlib.util.find_spec("ezkl") is None:
        raise OperationalError(
            "EZKL is not installed: pip install 'proof-of-learning[zk]' (it has no license: see docs/guides/zk.md)"
        )
    from importlib.metadata import version

    if version("ezkl") != VERSION:
        raise OperationalError(
            f"EZKL {version('ezkl')} is installed, the circuits are for {VERSION}: pip install 'proof-of-learning[zk]'"
        )


def _ending(code: int) -> str:
    if code < 0:
        hint = ", perhaps for lack of memory" if -code == signal.SIGKILL else ""
        return f"was ended by {signal.Signals(-code).name}{hint}"
    return f"ended with {code}"


def _last(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "without output")


def _reason(text: str) -> str:
    """A cause that EZKL writes only to its log."""
    lines = [line for line in text.splitlines() if "too large" in line or "ERROR" in line]
    if not lines:
        return ""
    hint = "; scale the data down, or give circuit.json more digits" if "too large" in lines[-1] else ""
    return f" ({lines[-1].strip()}){hint}"
