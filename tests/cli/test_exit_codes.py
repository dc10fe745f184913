"""Exit codes mean the same in every verb (docs/guides/commit.md, "Exit codes")."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
import torch
from safetensors.torch import save_file

from pol.cli.main import EXIT_OPERATIONAL, EXIT_PROTOCOL, EXIT_UNREAD, EXIT_USAGE, _run

DIGEST = "00" * 32
MISSING: tuple[tuple[str, ...], ...] = (
    ("check", "{}"),
    ("commit", "{}"),
    ("diff", "{}", "{}"),
    ("inspect", "{}"),
    ("verify", "{}", DIGEST, "--exact"),
    ("profile", "{}", DIGEST),
    ("log", "{}"),
    ("replay", "{}"),
    ("serve", "{}"),
    ("zk", "exact", "verify", "{}"),
)
"""Lines that name something that isn't there."""
PLACE = ("--rpc", "http://127.0.0.1:1", "--store", "nowhere")


def code_of(monkeypatch: pytest.MonkeyPatch, *line: str) -> int:
    monkeypatch.setattr(sys, "argv", ["pol", *line])
    return _run()


@pytest.mark.parametrize("line", MISSING, ids=lambda line: line[0])
def test_what_is_not_there_could_not_be_looked_at(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert code_of(monkeypatch, *(part.format(nowhere) for part in line)) == EXIT_OPERATIONAL, capsys.readouterr()
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("verb", sorted({line[0] for line in MISSING} - {"zk"}))
def test_wrong_usage(verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(monkeypatch, verb, "--no-such-option") == EXIT_USAGE
    assert "no such option" in capsys.readouterr().err.lower()


def test_a_document_that_is_none_of_a_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}")
    assert code_of(monkeypatch, "stake", "show", "--deployment", str(file), *PLACE) == EXIT_PROTOCOL
    told = capsys.readouterr().err
    assert "no member 'chain_id'" in told
    assert "`pol deploy` wrote" in told


@pytest.mark.parametrize(
    "line",
    [
        ("zk", "verify", "{}"),
        ("zk", "exact", "verify", "{}"),
        ("report", "--deployment", "{}", "--rpc", "http://127.0.0.1:1", "--out", "x.html"),
        ("inspect", "{}"),
    ],
    ids=lambda line: line[0],
)
def test_brackets_of_a_stranger_end_no_process(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parser recurses in C, and the EVM in Python lifts the bound that would stop it."""
    file = tmp_path / "deep.json"
    file.write_text('{"a":' * 200_000 + "0" + "}" * 200_000)
    assert code_of(monkeypatch, *(part.format(file) for part in line)) == EXIT_PROTOCOL
    told = capsys.readouterr().err
    assert "nested deeper than 64" in told
    assert len(told.strip().splitlines()) == 1


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
