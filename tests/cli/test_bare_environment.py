"""``pol`` where not everything is installed: no verb's help fails, and what is missing is named in one line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli_runner import all_commands
from ended_process import ran
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
    ("stake", "deposit", "1", "--deployment", str(ROOT / "README.md"), "--rpc", "http://127.0.0.1:1"): "chain",
    ("audit", "rounds", "--worker", "0x" + "11" * 20, "--round", "0"): "rounds",
    ("doctor", "--", "python3", "train.py"): "train",
    ("zk", "setup", "mlp", "--keys", "keys"): "zk",
    ("serve", "s3://bucket"): "s3",
    ("log", "s3://bucket"): "s3",
    ("verify", "s3://bucket", DIGEST, "--exact"): "s3",
}
"""Commands that can't work without an extra, and which."""


Answers = dict[tuple[str, ...], tuple[int, str]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """By environment what each line ends with and prints; one process for all lines of an environment."""
    return {name: _said(extras, tmp_path_factory.mktemp("bare")) for name, extras in ENVIRONMENTS.items()}


def _said(extras: tuple[str, ...], folder: Path) -> Answers:
    lines = [(*path, "--help") for path in all_commands()] + [_plain(path) for path in all_commands() if path]
    # With all that they need, demo, benchmarks and a market would run.
    lines = [line for line in lines if not extras or line[0] not in {"demo", "bench", "up"} or "--help" in line]
    lines += [] if extras else list(NEEDS)
    done = ran([sys.executable, ROOT / "tests" / "bare_environment.py", json.dumps([extras, lines])], cwd=folder)
    return {line: (code, out) for line, (code, out) in zip(lines, json.loads(done.stdout), strict=True)}


def _plain(path: tuple[str, ...]) -> tuple[str, ...]:
    """With nothing said; all checks of a device take a minute."""
    return (*path, "--short") if path == ("selftest",) else path


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_help_works_and_no_verb_ends_in_a_traceback(environment: str, said: dict[str, Answers]) -> None:
    helped = {line: answer for line, answer in said[environment].items() if "--help" in line}
    assert len(helped) == len(all_commands())
    for line, (code, out) in helped.items():
        assert (code, "Usage:" in out) == (0, True), (line, out)
    # With nothing said: usage, or the one line that names what is missing.
    plain = said[environment].keys() - helped.keys() - NEEDS.keys()
    assert len(plain) > 40
    for line in plain:
        code, out = said[environment][line]
        assert code in {0, 1, 2, 3}, (line, out)
        assert "Traceback" not in out, (line, out)
        assert "bug of pol" not in out, (line, out)
        if code:
            assert len(out.strip().splitlines()) == 1 or out.startswith("Usage:"), (line, out)


@pytest.mark.parametrize("line", NEEDS, ids=" ".join)
def test_what_is_missing_is_named_with_its_extra(line: tuple[str, ...], said: dict[str, Answers]) -> None:
    code, out = said["no extra"][line]
    told = out.lstrip("\n")
    assert (code, told.count("\n")) == (3, 1), out
    assert told.startswith("pol: ")
    assert f"pip install 'proof-of-learning[{NEEDS[line]}]'" in out
    assert "Errno" not in out


def test_a_public_name_says_which_extra_it_needs() -> None:
    lines = "from bare_environment import hide; hide(()); import pol; pol.draw; pol.Store; pol.Recorder"
    done = ran([sys.executable, "-c", lines], code=None, cwd=ROOT / "tests")
    said = done.stderr.strip().splitlines()[-1]
    told = "pol.Recorder: this needs torch, which isn't installed: pip install 'proof-of-learning[train]'"
    assert said.endswith(told), done.stderr


def test_the_table_of_verbs_and_that_of_extras_are_complete() -> None:
    for verb in VERBS:
        command = commands.get_command(click.Context(commands), verb)
        assert command is not None
        assert command.name == verb
    declared = (ROOT / "pyproject.toml").read_text()
    for extra in set(EXTRAS.values()):
        assert re.search(rf"^{extra} = \[", declared, re.MULTILINE), extra


@pytest.mark.slow
@pytest.mark.timeout(3600)  # the kernels are compiled
def test_what_pip_installs_alone_explains_every_verb_and_replays(tmp_path: Path) -> None:
    """The environment that tests/bare_environment.py stands for, made for once."""
    made = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    subprocess.run([made / "bin" / "python", "-m", "pip", "install", "--quiet", ROOT], check=True)
    done = subprocess.run([made / "bin" / "python", ROOT / ".ci" / "wheel_check.py"], cwd=tmp_path, check=False)
    assert done.returncode == 0
