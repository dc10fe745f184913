"""Quickstarts of roles without a market: their blocks run in order, and what they show is what comes out."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from anvil_node import anvil_node
from cli_runner import Said, pol
from forked_programs import run_program

ROOT = Path(__file__).parent.parent
# The demo plays for the developer.
NAMES = ("auditor", "deployer", "economist", pytest.param("protocol_developer", marks=pytest.mark.long))
BLOCK = re.compile(r"```(python|sh|text)\n(.*?)```", re.S)


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the page says that a node listens: a fresh one, if the page speaks to any."""
    text = (ROOT / "docs" / "quickstarts" / f"{request.getfixturevalue('name')}.md").read_text()
    if "http://127.0.0.1:8545" in text:
        with anvil_node() as url:
            yield url
    else:
        yield ""


@pytest.mark.parametrize("name", [*NAMES, "reproducible_training"])
def test_quickstarts_show_what_comes_out(name: str, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "quickstarts" / f"{name}.md").read_text()
    monkeypatch.chdir(tmp_path)
    said, shown = "", 0
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            run_program(block, tmp_path)
            said = tmp_path.with_name(f"{tmp_path.name}-said").read_text()
        elif kind == "sh":
            said = "".join(_run(line, node, monkeypatch) for line in block.splitlines())
        else:
            _compare(block, said)
            shown += 1
    assert shown, "a quickstart shows real output"


def _run(line: str, node: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a line prints; "# ends with 1" says which exit code is right."""
    command, _, comment = line.replace("http://127.0.0.1:8545", node).partition("#")
    name, *arguments = shlex.split(command)
    if name == "export":
        variable, _, value = arguments[0].partition("=")
        monkeypatch.setenv(variable, value)
        return ""
    assert name == "pol", f"only pol commands are run here, not {name}"
    ending = re.fullmatch(r" ends with (\d+)", comment)
    said = pol(*arguments)
    assert said == Said(int(ending[1]) if ending else 0), (line, said.out)
    return said.out


def _compare(block: str, said: str) -> None:
    """All lines of the block are in the output, in this order; "..." stands for anything on a line."""
    rest = _plain(said)
    for line in block.strip().splitlines():
        pattern = ".*?".join(re.escape(part) for part in re.split(r" ?\.\.\. ?", _plain(line)))
        found = re.search(pattern, rest)
        assert found, f"{line!r} doesn't come out, or not there:\n{said}"
        rest = rest[found.end() :]


def _plain(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
