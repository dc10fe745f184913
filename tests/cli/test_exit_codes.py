"""Output that can't be written, or that nobody reads, has exit codes of its own; others: test_misuse.py."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
import torch
from safetensors.torch import save_file

from pol.cli.main import EXIT_OPERATIONAL, EXIT_UNREAD, EXIT_USAGE


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["table", "json"])
@pytest.mark.parametrize("verb", ["commit", "no such verb"])
def test_a_full_disk_takes_no_output(verb: str, json: tuple[str, ...], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = _process(verb, *json, stdout=full, folder=tmp_path)
    said = "no such verb" if verb != "commit" and not json else "can't write the output: No space left on device"
    assert done.returncode == (EXIT_USAGE if verb != "commit" and not json else EXIT_OPERATIONAL), done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["table", "json"])
def test_output_that_nobody_reads_ends_quietly(json: tuple[str, ...], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = _process("commit", *json, stdout=pipe, folder=tmp_path)
    assert (done.returncode, done.stderr) == (EXIT_UNREAD, "")


def test_words_that_cannot_be_written_change_no_code(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pol.cli.main", "commit", tmp_path / "none"], stderr=full, check=False
        )
    assert done.returncode == EXIT_OPERATIONAL


def _process(verb: str, *options: str, stdout: IO[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command about a model whose table is longer than any buffer."""
    save_file({f"layer.{number}": torch.zeros(1) for number in range(200)}, folder / "model.safetensors")
    line = [sys.executable, "-m", "pol.cli.main", verb, folder / "model.safetensors", *options]
    return subprocess.run(line, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
