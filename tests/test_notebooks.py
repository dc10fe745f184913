"""The notebooks of docs/notebooks run from an empty folder, and say what they show."""

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def said(notebook: nbformat.NotebookNode) -> list[str]:
    """What its cells print; numbers that differ from run to run are masked."""
    printed = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())]
    return re.sub(r"0x[0-9a-f]+|[0-9,]+", "#", " ".join(printed)).split()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # of Jupyter's own packages, which aren't the matter
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build").mkdir()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    shown = said(notebook)
    assert shown
    NotebookClient(
        notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert said(notebook) == shown


def test_four_stories() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "a_decentralised_run",
        "capture_and_replay",
        "catch_a_cheat",
        "walk_a_dispute",
    ]
