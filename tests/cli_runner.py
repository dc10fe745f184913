"""Commands of `pol` in this process, as its entry point runs them; pages that name them, and show what comes out."""

import contextlib
import io
import json
import re
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import click

from pol.cli.commands import commands
from pol.cli.main import main

DOCS = Path(__file__).parent.parent / "docs"


@dataclass(eq=False)
class Said:
    """Exit code and output. Equal to another if the codes are, and the other's words stand in the output."""

    code: int
    out: str = ""
    match: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and self.code == other.code and other.match in self.out

    __hash__ = None


def pol(*arguments: str | Path) -> Said:
    said = io.BytesIO()
    out = io.TextIOWrapper(said, encoding="utf-8", write_through=True)  # the shell's completion writes bytes
    argv = ["pol", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main()
        except SystemExit as ended:
            return Said(int(ended.code or 0), said.getvalue().decode())
    raise AssertionError("main() returned")


def answer(*arguments: str | Path) -> Any:
    """What a command says for programs."""
    said = pol(*arguments, "--json")
    assert said == Said(0), said.out
    return json.loads(said.out)


@cache
def all_commands() -> dict[tuple[str, ...], click.Command]:
    """By its words every verb, and the verbs of verbs; `pol` itself has none."""
    found: dict[tuple[str, ...], click.Command] = {(): commands}
    _add_below((), commands, found)
    return found


def _add_below(path: tuple[str, ...], command: click.Command, found: dict[tuple[str, ...], click.Command]) -> None:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found[*path, name] = below
            _add_below((*path, name), below, found)


def blocks(page: Path, kind: str) -> list[str]:
    """Contents of all blocks of a kind: python, sh or text."""
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text(), re.S)


def shell_lines(page: Path) -> list[str]:
    """All lines of all blocks for a shell."""
    return [line for block in blocks(page, "sh") for line in block.splitlines()]


def words_and_code(line: str) -> tuple[list[str], int]:
    """The words of a line, and the code it ends with: "# ends with 1" says another one than 0."""
    command, _, comment = line.partition("#")
    ending = re.fullmatch(r" ends with (\d+)", comment)
    return shlex.split(command), int(ending[1]) if ending else 0


def run_line(line: str) -> str:
    """What a command of ``pol`` prints. AssertionError: it ends with another code."""
    (name, *arguments), code = words_and_code(line)
    assert name == "pol", f"only pol commands are run here, not {name}"
    said = pol(*arguments)
    assert said == Said(code), (line, said.out)
    return said.out


def require_shown(block: str, said: str) -> None:
    """All lines of the block are in the output, in this order; "..." stands for anything on a line."""
    rest = _plain(said)
    for line in block.strip().splitlines():
        pattern = ".*?".join(re.escape(part) for part in re.split(r" ?\.\.\. ?", _plain(line)))
        found = re.search(pattern, rest)
        assert found, f"{line!r} doesn't come out, or not there:\n{said}"
        rest = rest[found.end() :]


def require_told(shown: str, said: str) -> None:
    """A page leaves out lines of an output, and invents none; numbers and digests differ from run to run."""
    told = _masked(said)
    assert [line for line in _masked(shown) if line not in told] == [], said


def _masked(text: str) -> list[str]:
    return [re.sub(r"0x[0-9a-fA-F]+|[0-9a-f]{8}|[0-9]+([-.:][0-9]+)*", "#", line) for line in text.splitlines()]


def _plain(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
