"""Quickstarts beside a market: their commands, their Python, and what they show."""

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

from cli_runner import DOCS, Said, blocks, pol, require_told, run_line, shell_lines

QUICKSTARTS = DOCS / "quickstarts"
LINES = 80


class Page:
    """A quickstart: the commands that prepare a party and run it, that submit, and that look at what happened."""

    def __init__(self, name: str) -> None:
        page = QUICKSTARTS / f"{name}.md"
        assert len(page.read_text().splitlines()) <= LINES
        prepared, (self.submitted,), self.looked = (block.splitlines() for block in blocks(page, "sh"))
        *self.prepared, self.run = prepared
        self.shown, self.explained = blocks(page, "text")[-3:-1]

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
                while "free in the vault" not in log.read_text():
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.1)
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.wait()

    def compare(self, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as inside:
            inside.chdir(self.market.parent)
            looked = _run(self.looked, inside, self.folder)
        require_told(self.shown, said)
        require_told(self.explained, looked)


def _run(lines: list[str], monkeypatch: pytest.MonkeyPatch, folder: str) -> str:
    said = ""
    for line in lines:
        if line.startswith("cd "):
            monkeypatch.chdir(line.removeprefix("cd "))
        else:
            said += run_line(line.replace("--data me", f"--data {folder}"))
    return said


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_quickstarts_of_all_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One market serves solver, verifier, whistleblower and submitter.

    Its solver lies in the first task, about which the reader's whistleblower and verifier work; the reader's solver
    trains the second one, whose weights the reader fetches as a submitter.
    """
    solver, verifier, whistleblower = (Page(name) for name in ("solver", "verifier", "whistleblower"))
    submitter = QUICKSTARTS / "submit.md"
    assert len(submitter.read_text().splitlines()) <= LINES
    train, load = blocks(submitter, "python")
    submit, fetch = shell_lines(submitter)
    _, shown_up, shown = blocks(submitter, "text")
    assert submit == solver.submitted
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
        require_told(shown, trained.out)
        run_line(fetch)
    assert market.process.returncode == 0, market.log.read_text()
    promised = [line for line in shown_up.splitlines() if "accounts" in line or "contracts are deployed" in line]
    printed = "\n".join(line.get("message", "") for line in market.told())
    assert len(promised) == 2
    require_told("\n".join(promised), printed.replace(f"{tmp_path}/", ""))
    exec(train + load, {})
