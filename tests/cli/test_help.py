"""What ``pol --help`` and every verb's ``--help`` show: groups, one line each, examples that parse, fast.

The tab key; and exit codes of output that can't be written, or that nobody reads (others: test_misuse.py).
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import IO

import click
import pytest
import torch
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from safetensors.torch import save_file

from cli_runner import Said, all_commands, pol
from pol.cli.commands import GROUPS, VERBS, commands
from pol.cli.main import EXIT_OPERATIONAL, EXIT_UNREAD, EXIT_USAGE
from pol.cli.market import explain

COLUMNS = 80
MOST_MODULES = 500
"""Modules that ``pol --help`` may import; torch or web3 alone bring more."""
ENVIRONMENT = {"POL_RPC": "http://127.0.0.1:1", "POL_DEPLOYMENT": "deployment.json", "POL_STORE": "store"}
"""What a file of settings says where the examples leave it out."""


VERBS_OF_VERBS = [path for path in all_commands() if path]


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


@pytest.mark.parametrize("path", VERBS_OF_VERBS, ids=" ".join)
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
    examples = re.findall(r"^  (\S.*)$", all_commands()[path].epilog or "", re.MULTILINE)
    assert examples
    assert any(" ".join(("pol", *path)) in example for example in examples)
    for example in examples:
        assert f"    {example}\n" in said.out
        if path == ("completion",):
            continue  # these lines are a shell's
        program, *words = shlex.split(example)
        assert program == "pol"
        depth = max(n for n in range(1, len(words) + 1) if tuple(words[:n]) in all_commands())
        all_commands()[tuple(words[:depth])].make_context("pol", words[depth:])


@pytest.mark.parametrize(
    ("line", "near"),
    [
        (("verfy",), "No such command 'verfy'. Did you mean 'verify'?"),
        (("zk", "prov"), "No such command 'prov'. Did you mean 'prove'?"),
        (("verify", "--exct"), "No such option '--exct'. Did you mean '--exact'?"),
        (("xyzzy",), "No such command 'xyzzy'. `pol --help` lists them."),
    ],
)
def test_what_is_misspelled_is_suggested(line: tuple[str, ...], near: str) -> None:
    said = pol(*line)
    assert (said.code, said.out) == (2, f"pol: {near}\n")


def test_an_option_that_there_is_not_is_wrong_usage_of_every_verb() -> None:
    for path, command in all_commands().items():
        if not isinstance(command, click.Group) and path != ("doctor",):  # there it is a program's
            told = "No such option '--no-such-option'"
            assert pol(*path, "--no-such-option") == Said(2, match=told), path


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


MARKET = ("--deployment", "no.json", "--rpc", "http://127.0.0.1:1")
VERBS_OF_A_STORE = (("run", "solver"), ("stake", "show"), ("explain", "1"), ("price", "1"))
WRONG_PATHS = [
    *[(*verb, *MARKET, "--store", "s") for verb in VERBS_OF_A_STORE],
    *[(*verb, *MARKET) for verb in (("monitor",), ("explore",), ("object", "s", "1", "--segment", "0", "--dry-run"))],
    ("submit", "no.py:f", "--price", "1"),
    *[(verb, "no.file") for verb in ("commit", "inspect", "log", "serve", "replay", "verify", "audit")],
    ("capture", "check", "no.py:f"), ("check", "no.file", "no.json"), ("diff", "no.file", "no.other"),
]  # fmt: skip
IMPORTS = """
import sys
from pol.cli.commands import VERBS, commands
for line in [[verb, "--help"] for verb in VERBS] + {wrong}:
    try:
        commands(line, standalone_mode=False)
    except Exception as error:
        print(type(error).__name__, error)
    print("imported:", *line, *({{"torch", "web3"}} & set(sys.modules)))
"""


def test_helps_and_refusals_of_wrong_paths_import_neither_torch_nor_web3(tmp_path: Path) -> None:
    lines = [[*words] for words in WRONG_PATHS]
    program = [sys.executable, "-c", IMPORTS.format(wrong=lines)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=tmp_path)
    seen = [line.removeprefix("imported: ") for line in done.stdout.splitlines() if line.startswith("imported: ")]
    assert seen == [" ".join(line) for line in [[verb, "--help"] for verb in VERBS] + lines]


def test_defaults_that_a_help_shows_are_those_of_what_it_does_not_import() -> None:
    from pol.chain.desks.market import Matter
    from pol.local_market.local_node import PORT
    from pol.roles.submitter.submitter import TOLERANT, Offer
    from pol.roles.whistleblower.join_strategy import JoinStrategy

    defaults = {path: {p.name: p.default for p in command.params} for path, command in all_commands().items()}
    assert (defaults["price",]["draws"], defaults["price",]["margin"]) == (Offer.draws, Offer.margin)
    assert defaults["price",]["unit_price"] == Offer.wei_per_work_unit
    assert (defaults["submit",]["draws"], defaults["up",]["port"]) == (Offer.draws, PORT)
    assert defaults["run",]["wrong_share"] == JoinStrategy.wrong
    assert list(Matter) == explain.MATTERS
    assert f"; {TOLERANT} is usual" in pol("price", "--help").out


def test_every_verb_that_prints_facts_prints_them_as_json_too() -> None:
    without = {
        path
        for path, command in all_commands().items()
        if not isinstance(command, click.Group) and "--json" not in {o for p in command.params for o in p.opts}
    }
    assert without == {("completion",)}, "its output is a script"


POL = Path(sys.executable).parent / "pol"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    assert pol("completion", shell) == Said(0, match="_POL_COMPLETE")


def test_another_shell() -> None:
    assert pol("completion", "cmd") == Said(2, match="bash")


@pytest.mark.parametrize(
    ("words", "expected"), [("pol expl", {"explain", "explore"}), ("pol run verifier --fee", {"--fee-cap"})]
)
def test_bash_completes(words: str, expected: set[str]) -> None:
    asked = {"_POL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    said = CliRunner().invoke(commands, env=asked, prog_name="pol")
    assert said.exit_code == 0
    assert {line.split(",")[1] for line in said.stdout.splitlines()} == expected


def test_bash_itself(tmp_path: Path) -> None:
    """The script is sourced, and the function that it defines fills in what bash then offers."""
    program = f"""
    eval "$({POL} completion bash)"
    COMP_WORDS=(pol mon); COMP_CWORD=1
    PATH={POL.parent}:$PATH
    _pol_completion pol
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["monitor"]


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
