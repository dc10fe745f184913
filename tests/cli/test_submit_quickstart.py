"""docs/quickstarts/submit.md beside a market: its commands in order, its Python as a program, its output."""

import re
from pathlib import Path

import pytest
from market_runner import RunningMarket

from cli_runner import Said, pol

QUICKSTART = Path(__file__).parents[2] / "docs" / "quickstarts" / "submit.md"
LINES = 80


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


def masked(text: str) -> list[str]:
    """The lines of an output without what differs from run to run."""
    return [re.sub(r"[0-9a-f]{8}|[0-9]+([.:][0-9]+)*", "#", line) for line in text.splitlines()]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_quickstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = QUICKSTART.read_text()
    assert len(text.splitlines()) <= LINES
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
    printed = "\n".join(line.get("message", "") for line in market.told())
    assert len(promised) == 2
    assert [line for line in promised if line not in masked(printed.replace(f"{tmp_path}/", ""))] == []
    exec(train + load, {})
