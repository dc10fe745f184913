"""What ``pol --help`` and every verb's ``--help`` show: groups, one line each, examples that parse, fast."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cli_runner import pol
from pol.cli.commands import GROUPS, VERBS, commands
from pol.cli.incentives.econ import OF_A_CHECKOUT

COLUMNS = 80
MOST_MODULES = 500
"""Modules that ``pol --help`` may import; torch or web3 alone bring more."""
ENVIRONMENT = {"POL_RPC": "http://127.0.0.1:1", "POL_DEPLOYMENT": "deployment.json", "POL_STORE": "store"}
"""What a file of settings says where the examples leave it out."""


def leaves() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []

    def walk(path: tuple[str, ...], command: click.Command) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                walk((*path, name), below)
        if path:
            found.append(path)

    walk((), commands)
    return found


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and the words that are left for it."""
    command: click.Command = commands
    while isinstance(command, click.Group) and words:
        below = command.get_command(click.Context(command), words[0])
        assert below is not None, words
        command, words = below, words[1:]
    return command, words


def examples_of(path: tuple[str, ...]) -> list[str]:
    command, _ = command_of(list(path))
    return re.findall(r"^  (\S.*)$", command.epilog or "", re.MULTILINE)


def test_help_has_groups_and_one_line_for_each_verb() -> None:
    said = pol("--help")
    assert said.code == 0
    lines = said.out.splitlines()
    for title, group in GROUPS.items():
        start = lines.index(f"{title}:") + 1
        assert [line.split()[0] for line in lines[start : start + len(group)]] == list(group)
        assert lines[start + len(group)] == ""
    assert max(map(len, lines)) <= COLUMNS
    assert len(VERBS) == sum(map(len, GROUPS.values())), "a verb stands in one group"
    assert {title.split()[0] for title in GROUPS} == {"Record", "Verify", "Dispute", "Market", "Operate", "Develop,"}
    for group in GROUPS.values():
        assert all(re.fullmatch(r"[A-Z].*[.?]", line) for _, line in group.values())


@pytest.mark.parametrize("path", leaves(), ids=" ".join)
def test_every_verb_has_examples_that_parse(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "worker.pem").write_bytes(key)
    (tmp_path / "worker.pem").chmod(0o600)
    said = pol(*path, "--help")
    examples = examples_of(path)
    assert examples
    assert any(" ".join(("pol", *path)) in example for example in examples)
    for example in examples:
        assert f"    {example}\n" in said.out
        if path == ("completion",):
            continue  # these lines are a shell's
        program, *words = shlex.split(example)
        assert program == "pol"
        command, rest = command_of(words)
        command.make_context("pol", rest)


@pytest.mark.parametrize(
    ("line", "near"),
    [
        (("verfy",), "No such command 'verfy'. Did you mean 'verify'?"),
        (("zk", "prov"), "No such command 'prov'. Did you mean 'prove'?"),
        (("econ", "simulte"), "No such command 'simulte'. Did you mean 'simulate'?"),
        (("verify", "--exct"), "No such option '--exct'. Did you mean '--exact'?"),
        (("xyzzy",), "No such command 'xyzzy'. `pol --help` lists them."),
    ],
)
def test_what_is_misspelled_is_suggested(line: tuple[str, ...], near: str) -> None:
    said = pol(*line)
    assert (said.code, said.out) == (2, f"pol: {near}\n")


@pytest.mark.parametrize("words", [(), ("zk",)])
def test_no_verb_shows_the_help_as_it_is(words: tuple[str, ...]) -> None:
    said, helped = pol(*words), pol(*words, "--help")
    assert (said.code, said.out) == (2, helped.out)


def test_the_list_of_verbs_imports_none_of_them() -> None:
    program = "import sys; from pol.cli.main import _run; _run(); print(len(sys.modules), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True)
    count, *modules = done.stdout.splitlines()[-1].split()
    assert int(count) < MOST_MODULES
    assert not {"torch", "numpy", "web3", "rich", "cryptography", "asyncio"} & set(modules)


def test_verbs_of_a_checkout_have_examples_too() -> None:
    assert {path[1] for path in leaves() if path[0] == "econ" and len(path) > 1} == {"design", *OF_A_CHECKOUT}


def test_every_verb_that_prints_facts_prints_them_as_json_too() -> None:
    found = {path: command_of(list(path))[0] for path in leaves()}
    without = {
        path
        for path, command in found.items()
        if not isinstance(command, click.Group) and "--json" not in {o for p in command.params for o in p.opts}
    }
    assert without == {("completion",)}, "its output is a script"
