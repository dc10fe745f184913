"""``pol`` where not everything is installed: no verb's help fails, and what is missing is named in one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest

from pol.cli.commands import VERBS, commands
from pol.extras import EXTRAS

ROOT = Path(__file__).parents[2]
_SETUP = re.search(r"^venv=\S+ extras=(\S+)", (ROOT / ".ci" / "setup").read_text(), re.MULTILINE)
assert _SETUP is not None
ENVIRONMENTS = {"no extra": (), "the first command of README.md": tuple(_SETUP[1].split(","))}
DIGEST = "00" * 32
NEEDS = {
    ("demo",): "demo",
    ("bench",): "train",
    ("run", "whistleblower", "--rpc", "http://127.0.0.1:1"): "chain",
    ("stake", "deposit", "1"): "chain",
    ("audit", "rounds", "--worker", "0x" + "11" * 20, "--round", "0"): "rounds",
    ("doctor", "--", "python3", "train.py"): "train",
    ("zk", "setup", "mlp", "--keys", "keys"): "zk",
    ("serve", "s3://bucket"): "s3",
    ("log", "s3://bucket"): "s3",
    ("verify", "s3://bucket", DIGEST, "--exact"): "s3",
}
"""Commands that can't work without an extra, and which."""


def run(extras: tuple[str, ...], lines: list[tuple[str, ...]], folder: Path) -> list[tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "bare_environment.py", json.dumps([extras, lines])],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out) for code, out in json.loads(done.stdout)]


@cache
def all_commands() -> list[tuple[str, ...]]:
    """Every verb, and the verbs of verbs."""
    found: list[tuple[str, ...]] = []

    def walk(path: tuple[str, ...], command: click.Command) -> None:
        found.append(path)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                walk((*path, name), below)

    walk((), commands)
    return found


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_help_works_and_no_verb_ends_in_a_traceback(environment: str, tmp_path: Path) -> None:
    extras = ENVIRONMENTS[environment]
    helps = [(*path, "--help") for path in all_commands()]
    for line, (code, out) in zip(helps, run(extras, helps, tmp_path), strict=True):
        assert (code, "Usage:" in out) == (0, True), (line, out)
    # With nothing said: usage, or the one line that names what is missing. Demo, benchmarks and a market would run.
    plain = [path for path in all_commands() if path and (not extras or path[0] not in {"demo", "bench", "up"})]
    for line, (code, out) in zip(plain, run(extras, plain, tmp_path), strict=True):
        assert code in {0, 1, 2, 3}, (line, out)
        assert "Traceback" not in out, (line, out)
        assert "bug of pol" not in out, (line, out)
        if code:
            assert len(out.strip().splitlines()) == 1 or out.startswith("Usage:"), (line, out)


def test_what_is_missing_is_named_with_its_extra(tmp_path: Path) -> None:
    lines = list(NEEDS)
    for line, (code, out) in zip(lines, run((), lines, tmp_path), strict=True):
        assert code == 3, (line, out)
        assert f"pip install 'pol[{NEEDS[line]}]'" in out, (line, out)
        assert len(out.strip().splitlines()) == 1, (line, out)


def test_a_public_name_says_which_extra_it_needs() -> None:
    lines = "from bare_environment import hide; hide(()); import pol; pol.draw; pol.Store; pol.Recorder"
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=ROOT / "tests", capture_output=True, text=True, timeout=300, check=False
    )
    said = done.stderr.strip().splitlines()[-1]
    assert said.endswith("pol.Recorder: this needs torch, which isn't installed: pip install 'pol[train]'"), done.stderr


def test_the_table_of_verbs_and_that_of_extras_are_complete() -> None:
    for verb in VERBS:
        command = commands.get_command(click.Context(commands), verb)
        assert command is not None
        assert command.name == verb
    declared = (ROOT / "pyproject.toml").read_text()
    for extra in set(EXTRAS.values()):
        assert re.search(rf"^{extra} = \[", declared, re.MULTILINE), extra
