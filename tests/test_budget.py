"""The budget of the house: it fails above a row, and wherever a row was raised and no ADR says so."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ended_process import ran

ROOT = Path(__file__).parent.parent
Budget = Callable[..., subprocess.CompletedProcess[str]]


def test_every_room_keeps_to_its_budget() -> None:
    ran([sys.executable, ROOT / ".ci" / "budget.py"])


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    """The command in a small checkout: one file of two lines in pol/graph, and a row that allows just that."""
    for folder in (".ci", "docs/adr", "pol/graph"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".ci" / "budget.py").write_text((ROOT / ".ci" / "budget.py").read_text())
    (tmp_path / "pol" / "graph" / "a.py").write_text("a\nb\n")
    rooms = '".ci" = { lines = 1000, files = 1 }\n"pol/graph" = { lines = 2, files = 1 }\n'
    (tmp_path / ".ci" / "budget.toml").write_text(f'[aims]\n"pol" = {{ lines = 1 }}\n\n[rooms]\n{rooms}')

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, ".ci/budget.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for step in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *step], cwd=tmp_path, check=True)
    return run


def test_a_room_above_its_row_is_refused(budget: Budget, tmp_path: Path) -> None:
    assert budget().returncode == 0
    (tmp_path / "pol" / "graph" / "new.py").write_text("")
    done = budget()
    assert done.returncode == 1
    assert done.stderr.startswith("pol/graph has 2 files, 1 too many")


def test_a_raise_needs_a_decision_and_a_fall_none(budget: Budget, tmp_path: Path) -> None:
    (tmp_path / "pol" / "graph" / "a.py").write_text("a\n")
    assert budget("--lower").returncode == 0
    table = tmp_path / ".ci" / "budget.toml"
    assert '"pol/graph" = { lines = 1, files = 1 }' in table.read_text()
    table.write_text(table.read_text().replace('"pol/graph" = { lines = 1,', '"pol/graph" = { lines = 9,'))
    done = budget()
    assert done.returncode == 1
    step = "Budget: pol/graph lines 2 -> 9"
    assert step in done.stderr
    (tmp_path / "docs" / "adr" / "0001-more.md").write_text(f"Why.\n\n{step}\n")
    assert budget().returncode == 0
