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

from pol import Recorder
from pol.cli.main import EXIT_OPERATIONAL, EXIT_PROTOCOL, EXIT_UNREAD, EXIT_USAGE, _run
from pol.training import Checkpoints

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


NEEDS = ("--task-value", "25", "--verify-cost", "1", "--cheat-gain", "2")
DESIGN = ("econ", "design", *NEEDS)
WRONG = (
    (("log", "{run}", "--consistency", "-1", "2"), "sizes are from 1 to 2"),
    (("log", "{run}", "--consistency", "2", "1"), "the smaller one first"),
    (("log", "{run}", "--consistency", "2", "999"), "sizes are from 1 to 2"),
    (("log", "{run}", "--signer", "zz"), "64 hexadecimal digits"),
    (("log", "{run}", "--in-toto", "x", "--key", "{empty}"), "holds no private key"),
    (("profile", "{run}", DIGEST, "--key", "{empty}"), "holds no private key"),
    (("inspect", "{run}", "abc"), "64 lower-case hexadecimal digits"),
    (("beacon", "--round", "1" + "0" * 26), "18446744073709551615"),
    (("beacon", "--after", "1" + "0" * 30), "there is no round"),
    (("beacon", "--round", "5", "--signature", "zz"), "hexadecimal"),
    ((*DESIGN, "--coalition", "1"), "coalition has to be from 0 to 0.95"),
    ((*DESIGN, "--verify-cost", "0"), "verify_cost has to be above zero"),
    ((*DESIGN, "--detection", "1"), "detection has to be from 0 to 0.9999999"),
    ((*DESIGN, "--confidence", "1"), "at most 0.9999999"),
    ((*DESIGN, "--capital", "nan"), "capital has to be a number"),
    ((*DESIGN, "--slowest", "inf"), "slowest has to be a number"),
    (("econ", "simulate", *NEEDS, "--verifiers", "honest=0"), "is nobody"),
)
"""Lines that ask for what can't be, and what is said."""


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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    with Recorder(
        f"file://{folder}/run", torch.nn.Linear(1, 1), every=1, checkpoints=Checkpoints(background=False)
    ) as recorder:
        recorder.resume()
        recorder.step()
    (folder / "empty").touch()
    return folder


@pytest.mark.parametrize(("line", "told"), WRONG, ids=lambda value: value[0] if isinstance(value, tuple) else None)
def test_what_cannot_be_meant_is_wrong_usage(
    line: tuple[str, ...],
    told: str,
    recorded: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = (part.format(run=recorded / "run", empty=recorded / "empty") for part in line)
    assert code_of(monkeypatch, *asked) == EXIT_USAGE
    said = capsys.readouterr().err
    assert told in said
    assert len(said.strip().splitlines()) == 1


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
