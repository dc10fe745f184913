"""`pol commit`, `check` and `diff` on states larger than the memory that their process may use."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from lab.benchmarks.checkpoint_memory import COUNT, recording, write_model, write_record
from pol.commitments.array import ArrayType, ElementType
from pol.training.record.recorded_run import open_run

pytestmark = pytest.mark.long

LIMIT = 160 << 20
"""Bytes of private memory for a whole process, imports included; a file that is mapped doesn't count."""
TENSOR = ArrayType(ElementType.F32, (5 << 8, 1 << 12))
"""A quarter of a state is as large as the limit."""


def limited(*arguments: str | Path) -> tuple[int, str]:
    """Exit code and output of `pol` in a process of its own, on one core: each thread's stack counts too."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    command = [sys.executable, "-m", "pol.cli.main", *map(str, arguments)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, preexec_fn=limit, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_model_in_shards_larger_than_memory(tmp_path: Path) -> None:
    assert COUNT * TENSOR.nbytes >= 4 * LIMIT
    index = write_model(tmp_path / "model", TENSOR)
    commitment = tmp_path / "commitment.json"
    assert limited("commit", index, "--out", commitment)[0] == 0
    code, said = limited("check", index.parent, commitment)
    assert code == 0, said
    assert f"equal: all {COUNT} entries" in said


def test_a_record_larger_than_memory(tmp_path: Path) -> None:
    one, other = (write_record(tmp_path / str(mark), TENSOR, mark) for mark in (0, 1))
    code, said = limited("commit", one)
    assert code == 0, said
    assert open_run(str(one)).record.checkpoints[0].root.hex() in said
    code, said = limited("check", one)
    assert code == 0, said
    code, said = limited("diff", one, other)
    assert code == 1, said
    assert f"0 of {COUNT} tensors are equal" in said


def test_one_false_byte_is_found_in_little_memory(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "record", TENSOR)
    (file,) = folder.rglob("*.safetensors")
    with file.open("r+b") as opened:
        opened.seek(-1, 2)
        opened.write(b"\1")
    last = f"parameters/layers.{max(map(str, range(COUNT)))}.weight"
    code, said = limited("check", folder, "--json")
    assert code == 1, said
    assert f"tensor {last} in {file.name} isn't the one that the checkpoint commits to" in said


def test_updates_take_the_memory_of_a_tensor(tmp_path: Path) -> None:
    assert recording("updates", tmp_path)["state"] > LIMIT
    folder = tmp_path / "updates"
    code, said = limited("check", folder)
    assert code == 0, said
    run = open_run(str(folder))
    assert run.document(run.checkpoint()).data["form"] == "updates"
    assert limited("diff", f"{folder}@0", f"{folder}@1")[0] == 1
