"""``pol up`` as a process of its own, and what it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from anvil_node import ANVIL

TRAIN = """
import torch
from torch import nn

from pol.demo import digits


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.again = nn.Linear(64, 64), nn.Linear(64, 64)
        self.again.weight = self.first.weight
        self.last = nn.Linear(64, 10)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.ones(()), persistent=False)

    def forward(self, images):
        self.seen += len(images)
        return self.last(torch.relu(self.again(torch.relu(self.first(images * self.scale)))))


def make_model():
    torch.manual_seed(0)
    return Tied()


def make_task():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, nn.functional.cross_entropy, optimizer, digits.dataset()


def half_a_task():
    return make_model(), nn.functional.cross_entropy


def no_task():
    return 7


def broken():
    raise RuntimeError("no such data set")
"""
"""A user's script: a model with tied weights, a counter, and a buffer that its state_dict leaves out."""


class RunningMarket:
    """A context in which `pol up` runs; at its end it gets a ^C."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.lines = folder, list[dict[str, Any]]()
        self._options = options

    def __enter__(self) -> RunningMarket:
        own = {**os.environ, "PATH": f"{ANVIL.parent}{os.pathsep}{os.environ['PATH']}"}
        command = [sys.executable, "-m", "pol.cli.main", "up", "--folder", str(self.folder), "--no-browser", "--json"]
        self.log, self.warnings = (self.folder.with_suffix(f".{kind}") for kind in ("jsonl", "warnings"))
        self._output, aside = self.log.open("w"), self.warnings.open("w")
        with aside:  # a transaction that lost a race is a warning: it is sent again
            self.process = subprocess.Popen([*command, *self._options], stdout=self._output, stderr=aside, env=own)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait()
        finally:
            self.process.kill()
            self._output.close()
            for log in sorted((self.folder / "logs").glob("*[!e].log")) if error is not None else ():
                print(f"--- {log.stem}", *log.read_text().splitlines()[-40:], sep="\n")

    def told(self) -> list[dict[str, Any]]:
        """All lines so far; a line that isn't JSON is an error of the command."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first line of which something holds."""
        while not (found := [line for line in self.told() if holds(line)]):
            assert self.process.poll() is None, self.log.read_text() + self.warnings.read_text()
            time.sleep(0.1)
        return found[0]

    def ready(self) -> dict[str, Any]:
        """The line that says that all parties run."""
        return self.until(lambda line: line["event"] == "ready")


def alive(pid: int) -> bool:
    """Whether a process runs; zombies don't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
