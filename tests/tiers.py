"""The tiers of the tests: which files a tier reads, and what a test of rules may not do (docs/CONTRIBUTING.md)."""

import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MARKED = re.compile(r"(?:rules|long|slow|gpu)\b")
"""Tiers whose tests bear a mark; the default tier is all the others."""

OUTSIDE = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"}
"""What Python reports to its auditors of a process that is started, or of a node that is asked."""

_rule: str | None = None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A marked tier reads the files that have its mark: to import all of them takes half a minute."""
    tier = MARKED.match((config.option.markexpr or "").lstrip("("))
    if tier is None or tier[0] == "gpu" or not collection_path.match("test_*.py"):
        return None  # a device's mark comes from its fixture
    return True if f"mark.{tier[0]}" not in collection_path.read_text() else None


def pytest_configure(config: pytest.Config) -> None:
    """A tier leaves out what needs a GPU, and rules what a later tier has."""
    expression = config.option.markexpr
    if MARKED.match(expression) and "gpu" not in expression:
        later = " and not long and not slow" if expression == "rules" else ""
        config.option.markexpr = f"({expression}) and not gpu{later}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """While a test of rules runs, `_keep_inside` knows its name."""
    global _rule  # noqa: PLW0603 - an audit hook can't be given anything, nor be taken away
    _rule = item.nodeid if item.get_closest_marker("rules") else None
    try:
        return (yield)
    finally:
        _rule = None


def _keep_inside(event: str, _arguments: tuple[Any, ...]) -> None:
    if _rule is not None and event in OUTSIDE:
        raise AssertionError(f"{_rule} is marked `rules`, but does {event}: a rule needs no process and no node")


sys.addaudithook(_keep_inside)
