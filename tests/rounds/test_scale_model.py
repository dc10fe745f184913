"""The model of great trainings, beside real ones of 2 to 16 workers; the guide's tables are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.rounds import scale_model
from lab.rounds.tiny_training import TinyTraining, tiny_plan
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.decentralised.diloco import DiLoCo, diloco_plan
from pol.decentralised.processes.local_processes import local_key
from pol.rounds.log.log_entries import encode_entry
from pol.rounds.log.rounds_log import load_head
from pol.rounds.roster import ROSTER_LIMIT
from pol.training.storage.store import Store

ROUNDS = 2
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "rounds.md"


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_real_trainings_weigh_what_the_model_says(workers: int, tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    training = TinyTraining(store, tiny_plan(store, sizes=(workers,), seats=workers))
    for round_ in range(ROUNDS):
        training.play(round_, range(workers))
        training.publish(round_)
    rounds = training.read()
    expected = scale_model.weight(scale_model.tiny(), workers, ROUNDS)
    data = [encode_entry(entry) for entry in rounds.entries]
    assert len(data) == expected.entries
    assert sum(len(entry) + scale_model.LENGTH for entry in data) == pytest.approx(expected.log, rel=0.002)
    last = [entry for entry in rounds.claims.values() if entry.claim.round == ROUNDS - 1]
    objects = sum(len(store.get(name)) for entry in last for name in (entry.sources, entry.roots))
    objects += len(store.get(rounds.rosters[ROUNDS - 1][0].document.hex(), limit=ROSTER_LIMIT))
    assert objects == pytest.approx(expected.objects, rel=0.002)
    log = CheckpointLog([keccak256(entry) for entry in data])
    path = max((log.inclusion(number) for number in range(len(data))), key=len)
    assert scale_model.WORD * len(path) == expected.inclusion
    _, head = load_head(store)
    pieces = len(head.chapters) + len(head.pages)
    assert expected.head == pieces * scale_model.PIECE


def test_the_shapes_are_those_of_the_trainer(tmp_path: Path) -> None:
    options = DiLoCo(rounds=1, steps=1, seats=3, sizes=(3,))
    plan = diloco_plan(Store(f"file://{tmp_path}"), options, local_key(-1).name, bytes(32))
    assert [len(phase.sources) for phase in plan.phases] == list(scale_model.diloco().slots(3))


@pytest.mark.parametrize("share", scale_model.SHARES)
def test_lying_pays_below_the_least_stake_and_not_above(share: float) -> None:
    stake = scale_model.least_stake(share)
    assert scale_model.gains(share, 0.8 * stake, liars=20_000) > 0
    assert scale_model.gains(share, 1.2 * stake, liars=20_000) < 0


def test_the_guide_has_the_tables() -> None:
    """To renew them: PYTHONPATH=tests python -m lab.rounds.scale_model, into docs/guides/rounds.md."""
    assert scale_model.table() in GUIDE.read_text()
