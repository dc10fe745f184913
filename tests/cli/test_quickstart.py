"""docs/quickstarts: their commands are run in order, their Python as one program, and the output is what they show."""

import re
from pathlib import Path

import pytest
from market_runner import RunningMarket

from cli_runner import Said, pol

QUICKSTARTS = Path(__file__).parents[2] / "docs" / "quickstarts"
LINES = 80


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


def masked(text: str) -> list[str]:
    """The lines of an output without what differs from run to run."""
    return [re.sub(r"[0-9a-f]{8}|[0-9]+([.:][0-9]+)*", "#", line) for line in text.splitlines()]


def test_quickstarts_are_quick() -> None:
    for file in QUICKSTARTS.glob("*.md"):
        assert len(file.read_text().splitlines()) <= LINES, file


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_quickstart_of_submitters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (QUICKSTARTS / "submit.md").read_text()
    train, load = blocks(text, "python")
    (submit,), (fetch,) = (block.splitlines() for block in blocks(text, "sh"))
    _, shown_up, shown = blocks(text, "text")
    (tmp_path / "train.py").write_text(train)
    monkeypatch.chdir(tmp_path)
    with RunningMarket(tmp_path / "pol-market") as market:
        market.ready()
        said = pol(*submit.split()[1:])
        assert said == Said(0), said.out
        assert submit.startswith("pol submit")
        # The quickstart leaves out lines, and invents none.
        told = masked(said.out)
        assert [line for line in masked(shown) if line not in told] == []
        assert pol(*fetch.split()[1:]) == Said(0)
    promised = [line for line in masked(shown_up) if "accounts" in line or "contracts are deployed" in line]
    printed = masked("\n".join(line.get("message", "") for line in market.told()))
    short = [line.replace(str(tmp_path) + "/", "") for line in printed]
    assert len(promised) == 2
    assert [line for line in promised if line not in short] == []
    exec(train + load, {})
