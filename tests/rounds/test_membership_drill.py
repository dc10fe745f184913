"""Joins, leaves, deaths and delays by a seeded schedule: nobody honest is ever accused."""

from pathlib import Path

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

from lab.rounds.membership_drill import SHARES, MembershipDrill
from pol.training.storage.store import Store


@pytest.mark.long
def test_fifty_rounds_accuse_nobody(tmp_path: Path) -> None:
    drill = MembershipDrill.of(Store(f"file://{tmp_path}"), HashStore(), 50, seed=1)
    drill.play()
    assert not drill.findings()
    assert set(drill.happened) == {*SHARES, "joins"}
    assert all(drill.happened.values())
