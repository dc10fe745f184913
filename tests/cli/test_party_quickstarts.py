"""Quickstarts of solver, verifier and whistleblower beside a market: their commands, and what they show.

One market serves all three. Its solver lies in the first task, about which the reader's whistleblower and verifier
work; the reader's solver trains the second one.
"""

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from market_runner import RunningMarket

from cli_runner import Said, pol

QUICKSTARTS = Path(__file__).parents[2] / "docs" / "quickstarts"
LINES, SECONDS = 80, 60


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


def masked(text: str) -> list[str]:
    """The lines of an output without what differs from run to run."""
    return [re.sub(r"0x[0-9a-fA-F]+|[0-9]+([-.:][0-9]+)*", "#", line) for line in text.splitlines()]


class Page:
    """A quickstart: the commands that prepare a party and run it, that submit, and that look at what happened."""

    def __init__(self, name: str) -> None:
        text = (QUICKSTARTS / f"{name}.md").read_text()
        assert len(text.splitlines()) <= LINES
        prepared, (self.submitted,), self.looked = (block.splitlines() for block in blocks(text, "sh"))
        *self.prepared, self.run = prepared
        self.shown, self.explained = blocks(text, "text")[-3:-1]

    @contextmanager
    def party(self, market: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """The reader's own party, from its first command to ^C. Each page has its own folder for it."""
        self.market, self.folder = market, f"{self.run.split()[2]}-of-the-reader"
        with monkeypatch.context() as inside:
            inside.chdir(market.parent)
            _run(self.prepared, inside, self.folder)
        log = market.parent / f"{self.folder}.log"
        words = shlex.split(self.run.replace("--data me", f"--data {self.folder}"))
        assert words[:2] == ["pol", "run"]
        with log.open("w") as output:
            command = [sys.executable, "-m", "pol.cli.main", *words[1:]]
            process = subprocess.Popen(command, cwd=market, stdout=output, stderr=output)
            try:
                deadline = time.monotonic() + SECONDS
                while "free in the vault" not in log.read_text():
                    assert process.poll() is None, log.read_text()
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
                yield
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(SECONDS)
                finally:
                    process.kill()

    def compare(self, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The quickstart leaves out lines, and invents none."""
        with monkeypatch.context() as inside:
            inside.chdir(self.market.parent)
            looked = _run(self.looked, inside, self.folder)
        for shown, told in ((self.shown, said), (self.explained, looked)):
            assert [line for line in masked(shown) if line not in masked(told)] == [], told


def _run(lines: list[str], monkeypatch: pytest.MonkeyPatch, folder: str) -> str:
    out = ""
    for line in lines:
        name, *arguments = shlex.split(line.replace("--data me", f"--data {folder}"))
        if name == "cd":
            monkeypatch.chdir(arguments[0])
            continue
        assert name == "pol"
        said = pol(*arguments)
        assert said == Said(0), (line, said.out)
        out += said.out
    return out


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_quickstarts_of_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solver, verifier, whistleblower = (Page(name) for name in ("solver", "verifier", "whistleblower"))
    (train,) = (block for block in blocks((QUICKSTARTS / "submit.md").read_text(), "python") if "make_task" in block)
    (tmp_path / "train.py").write_text(train)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pol-market"
    with RunningMarket(folder, "--cheat", "solver") as market:
        market.ready()
        with ExitStack() as parties:
            for page in (verifier, whistleblower):
                parties.enter_context(page.party(folder, monkeypatch))
            caught = pol(*shlex.split(whistleblower.submitted)[1:])
            assert caught == Said(1), caught.out  # rejected
            for page in (verifier, whistleblower):
                page.compare(caught.out, monkeypatch)
        monkeypatch.chdir(folder)
        # The market's verifiers work again: the reader's runs no more, and would be a party of its own task.
        for name in ("verifier-1", "verifier-2"):
            assert pol("stake", "deposit", "100", "--key", f"keys/{name}.key") == Said(0)
        assert pol("stake", "resign", "--tickets", "8", "--key", "keys/deployer.key") == Said(0)
        monkeypatch.chdir(tmp_path)
        with solver.party(folder, monkeypatch):
            trained = pol(*shlex.split(solver.submitted)[1:])
            assert trained == Said(0), trained.out
            solver.compare(trained.out, monkeypatch)
    assert market.process.returncode == 0, market.log.read_text()
