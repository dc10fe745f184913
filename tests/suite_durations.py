"""How long the tests of each directory take: kept in durations.json, and what has grown since is printed.

`POL_WRITE_DURATIONS=1 pytest -n 3`, with `-m` for another tier than the default one, writes what it measures: on an
idle machine, please. Seconds are sums over test processes.
"""

import json
import os
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

FILE = Path(__file__).with_name("durations.json")
GROWN = 1.1
LEAST = 5.0
"""Seconds below which a directory's growth says nothing."""

_sums: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds set-up, call and tear-down of a test to its directory."""
    parts = Path(report.nodeid.partition("::")[0]).parts
    _sums["/".join(parts[:2])] += report.duration


def grown(before: dict[str, float], now: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Seconds before and now of directories that grew by more than a tenth.

    Machines differ: the times of before are scaled by the median ratio of all directories.
    """
    pairs = {name: (seconds, now[name]) for name, seconds in before.items() if now.get(name, 0) > LEAST < seconds}
    speed = median(new / old for old, new in pairs.values()) if pairs else 1.0
    return {
        name: (old * speed, new)
        for name, (old, new) in sorted(pairs.items(), key=lambda row: row[1][0] / row[1][1])
        if new > old * speed * GROWN
    }


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes or compares, after a run of a whole tier."""
    whole = config.args in ([], ["tests"]) and not config.option.keyword and not config.option.collectonly
    if "PYTEST_XDIST_WORKER" in os.environ or not whole:
        return
    marks = config.option.markexpr
    tier = "default" if "not long" in marks else "ci" if marks.startswith("not") else marks.strip("()").split()[0]
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    now = {name: round(seconds, 1) for name, seconds in sorted(_sums.items())}
    if "POL_WRITE_DURATIONS" in os.environ:
        rows = (f'"{name}": {json.dumps(sums)}' for name, sums in sorted({**kept, tier: now}.items()))
        FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    for name, (before, seconds) in grown(kept.get(tier, {}), now).items():
        terminalreporter.write_line(f"{name}: {seconds:.0f} s, {before:.0f} s when durations.json was written")
