"""Replicas of torchft with its lighthouse: killed and resumed, or joining late."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from pol.training.record.newest_checkpoint import NewestCheckpoint, load_newest_checkpoint
from pol.training.storage.store import Store

coordination = pytest.importorskip("torchft.coordination", reason="torchft isn't installed: .ci/setup --slow")
pytestmark = pytest.mark.long


@contextmanager
def lighthouse(least: int) -> Iterator[str]:
    """A quorum has at least so many replicas."""
    server = coordination.LighthouseServer(bind="127.0.0.1:0", min_replicas=least, join_timeout_ms=1000)
    try:
        yield server.address()
    finally:
        server.shutdown()


def start(address: str, *arguments: object) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("torchft_replica.py")
    variables = {**os.environ, "TORCHFT_LIGHTHOUSE": address, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ended(*replicas: subprocess.Popen[str]) -> list[int]:
    outputs = [replica.communicate()[0] for replica in replicas]
    codes = [replica.returncode for replica in replicas]
    assert set(codes) <= {0, -signal.SIGKILL}, "\n".join(outputs)
    return codes


def newest(store: str) -> NewestCheckpoint:
    found = load_newest_checkpoint(Store(store))
    assert found is not None
    return found


def stepped(store: str) -> bool:
    """Whether the record has a checkpoint of a step."""
    found = load_newest_checkpoint(Store(store))
    return found is not None and found.record.checkpoints[-1].step > 0


def test_replicas_that_are_killed_go_on_with_the_same_roots(tmp_path: Path) -> None:
    """No step begins without both: one that isn't committed would draw other numbers in each run."""

    def train(name: str, kill: int) -> list[int]:
        with lighthouse(2) as address:
            return ended(*(start(address, i, 2, 9, f"file://{tmp_path}/{name}{i}", kill) for i in range(2)))

    assert train("whole", 0) == [0, 0]
    assert train("cut", 5) == [-signal.SIGKILL] * 2
    assert train("cut", 0) == [0, 0]
    for number in range(2):
        whole, cut = (newest(f"file://{tmp_path}/{name}{number}").record.checkpoints for name in ("whole", "cut"))
        assert [checkpoint.step for checkpoint in cut] == [0, 3, 6, 9]
        assert [checkpoint.root for checkpoint in cut] == [checkpoint.root for checkpoint in whole]


def test_a_replica_that_joins_late_says_what_it_took_over(tmp_path: Path) -> None:
    with lighthouse(1) as address:
        first = start(address, 0, 1, 10, f"file://{tmp_path}/first", 0)
        while not stepped(f"file://{tmp_path}/first"):
            assert first.poll() is None
            time.sleep(0.1)
        late = start(address, 1, 1, 6, f"file://{tmp_path}/late", 0)
        assert ended(first, late) == [0, 0]
    found = newest(f"file://{tmp_path}/late")
    ((before, after),) = found.components["torchft"]["state"]["taken"]
    assert before == 0
    assert after > 0
    steps = [checkpoint.step for checkpoint in found.record.checkpoints]
    assert steps[0] == 0
    assert all(step > after for step in steps[1:])
    assert newest(f"file://{tmp_path}/first").components["torchft"]["state"]["taken"] == []
    assert torch.isfinite(found.components["parameters"]["0.weight"]).all()
