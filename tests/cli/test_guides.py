"""What the documentation says runs, as it stands there: guides, and quickstarts of roles that need no market."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anvil_node import anvil_node
from cli_runner import DOCS, blocks, require_shown, run_line, shell_lines, words_and_code
from ended_process import ran
from forked_programs import run_program

pytestmark = pytest.mark.long

POL = Path(sys.executable).parent / "pol"
# replay.md begins with the demo: demo/test_demo.py.
GUIDES = [path for path in sorted((DOCS / "guides").glob("*.md")) if path.stem != "replay"]
SCRIPTS = {words_and_code(line)[0][1]: (guide, line) for guide in GUIDES[::-1] for line in shell_lines(guide)[::-1]}
"""The first line of each verb."""
# The demo plays for the developer: demo/test_demo.py. Parties need a market: test_market_quickstarts.py.
QUICKSTARTS = ("auditor", "deployer", "reproducible_training")
NODE = "http://127.0.0.1:8545"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guides_run(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python of a guide as one program, then all shell lines; one of each verb by the script that is installed."""
    program = "\n".join(blocks(guide, "python"))
    if program:
        run_program(program, tmp_path)
    monkeypatch.chdir(tmp_path)
    for line in shell_lines(guide):
        words, code = words_and_code(line)
        if SCRIPTS[words[1]] == (guide, line):
            ran([POL, *words[1:]], code=code)
        else:
            run_line(line)
    shutil.rmtree(tmp_path / "build", ignore_errors=True)


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the page says that a node listens: a fresh one, if the page speaks to any."""
    if NODE in (DOCS / "quickstarts" / f"{request.getfixturevalue('name')}.md").read_text():
        with anvil_node() as url:
            yield url
    else:
        yield ""


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_quickstarts_show_what_comes_out(name: str, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks in order; each one of text is what the block before it says."""
    text = (DOCS / "quickstarts" / f"{name}.md").read_text()
    monkeypatch.chdir(tmp_path)
    said, shown = "", 0
    for kind, block in re.findall(r"```(python|sh|text)\n(.*?)```", text, re.S):
        if kind == "python":
            run_program(block, tmp_path)
            said = tmp_path.with_name(f"{tmp_path.name}-said").read_text()
        elif kind == "sh":
            said = "".join(_run(line.replace(NODE, node), monkeypatch) for line in block.splitlines())
        else:
            require_shown(block, said)
            shown += 1
    assert shown, "a quickstart shows real output"


def _run(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    if not line.startswith("export "):
        return run_line(line)
    variable, _, value = words_and_code(line)[0][1].partition("=")
    monkeypatch.setenv(variable, value)
    return ""
