"""Memory that a recorder takes beside the training: no copy of the state, one, or two, as its options say."""

from pathlib import Path

import pytest

from lab.benchmarks.checkpoint_memory import recording

pytestmark = pytest.mark.long

SLACK = 0.25
"""Of the state: pieces that are hashed, one tensor of it, and the modules that are imported."""


@pytest.mark.parametrize(
    ("way", "copies"),
    [
        ("waiting", 0),
        pytest.param("background", 1, marks=pytest.mark.slow),
        ("updates", 2),
        pytest.param("resume", 1, marks=pytest.mark.slow),
    ],
)
def test_copies_of_the_state(way: str, copies: int, tmp_path: Path) -> None:
    found = recording(way, tmp_path)
    assert copies - 0.1 < found["bytes"] / found["state"] < copies + SLACK
