"""A solver's files vanish once a verdict is posted, and the process ends: the party sees its task through all the same.

What it has read lies on its own disk. A new process of the same key finds only that folder and the chain.
"""

import shutil
from pathlib import Path

import pytest
from all_parties import FalseClaim, Verifier, Whistleblower, next_of_verifier
from role_market import (
    OFTEN,
    WATCHED,
    SumSeer,
    Town,
    acts,
    conclude,
    disclosed,
    fill_disk,
    fought,
    gain,
    seated,
    seated_with_duty,
    settle,
    submitted,
    verified,
)

from pol.chain.account.wallet import Reverted
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.graph.step_program import Component
from pol.roles.party.kept_store import KeptStore
from pol.training.storage.party_database import PartyDatabase
from pol.verification.profile.profile_challenge import ProfileCharge, ProfileChargeKind

pytestmark = pytest.mark.long

MARKET_RULES, JOINED = OFTEN, WATCHED


def vanish(town: Town) -> None:
    """Nothing is left of the store."""
    for folder in town.folder.iterdir():
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


def test_a_verifier_discloses_a_planted_error(proven: bytes, town: Town, tmp_path: Path) -> None:
    verifier = town.join(Verifier, "v", evidence=tmp_path / "v")
    seated_with_duty(verifier, proven, forced=True)
    verifier.verify(proven)
    vanish(town)
    with pytest.raises(OperationalError):
        disclosed(town.join(Verifier, "v"), proven)  # without its folder
    again = town.join(Verifier, "v", evidence=tmp_path / "v")
    assert again.disclose(proven)
    settle(again, proven)
    assert again.market.registry.task(proven).outcome is TaskOutcome.ACCEPTED
    assert gain(again, tickets=1) > 0


@pytest.mark.parametrize("kind", [ClaimChargeKind.DISTANCE, ClaimChargeKind.REFERENCE])
def test_a_verifier_defends_an_honest_verdict(proven: bytes, town: Town, tmp_path: Path, kind: ClaimChargeKind) -> None:
    verifier, seer = town.join(Verifier, "v", evidence=tmp_path / "v"), town.join(SumSeer, "w", evidence=tmp_path / "w")
    verified(verifier, proven)
    assert seer.check(proven) == []
    (claim,) = verifier.market.verdicts.claims(proven, verifier.market.registry.task(proven).seating)
    finding = FalseClaim(ClaimCharge(0, kind, 1), claim)
    vanish(town)
    seer = town.join(SumSeer, "w", evidence=tmp_path / "w")
    dispute = seer.challenge(proven, finding)
    again = town.join(Verifier, "v", evidence=tmp_path / "v")
    sides = (again.sessions(proven)[0], seer.session(proven, dispute))
    assert fought(seer.market.game, dispute, *sides) is Side.ASSERTER
    settle(again, proven)
    assert again.market.registry.task(proven).outcome is TaskOutcome.ACCEPTED


def test_profiler_and_challenger_measure_again(town: Town, tmp_path: Path) -> None:
    """Both execute the segments of a profile from the task's files alone."""
    verifier, watcher = (
        town.join(Verifier, "v", evidence=tmp_path / "v"),
        town.join(Whistleblower, "w", evidence=tmp_path / "w"),
    )
    task_id, _ = submitted(town)
    seated(verifier, task_id)
    claim = verifier.profile(task_id).claim
    assert watcher.check_profile(task_id) == []
    vanish(town)
    watcher = town.join(Whistleblower, "w", evidence=tmp_path / "w")
    assert watcher.check_profile(task_id) == []
    again = town.join(Verifier, "v", evidence=tmp_path / "v")
    assert again.measure(task_id).claim == claim
    charge = ProfileCharge(ProfileChargeKind.REFERENCE, 0, Component.PARAMETER)
    assert again.profile_evidence(task_id).program(charge) == watcher.profile_evidence(task_id).program(charge)
    conclude(again, task_id)
    assert again.market.registry.task(task_id).status is Status.BIDDING


def test_a_full_disk_keeps_nobody_from_defending_and_stakes_nothing_new(
    proven: bytes, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Evidence that can't be kept: no seat, no challenge; what is at stake already goes on, a verdict too."""
    verifier, seer = town.join(Verifier, "v", evidence=tmp_path / "v"), town.join(SumSeer, "w", evidence=tmp_path / "w")
    verified(verifier, proven)
    (claim,) = verifier.market.verdicts.claims(proven, verifier.market.registry.task(proven).seating)
    dispute = seer.challenge(proven, FalseClaim(ClaimCharge(0, ClaimChargeKind.DISTANCE, 1), claim))
    shutil.rmtree(tmp_path / "v")
    full = town.join(Verifier, "v", evidence=tmp_path / "v")
    fill_disk(full.store, monkeypatch)
    sides = (full.sessions(proven)[0], seer.session(proven, dispute))
    assert fought(seer.market.game, dispute, *sides) is Side.ASSERTER
    with pytest.raises(OperationalError, match=r"nothing new is staked: make room there"):
        full.require_kept()
    # It is this verdict's time that is over, not its disk that keeps it from posting.
    with pytest.raises(Reverted, match="WrongStatus"):
        full.post(proven, full.replay(proven))
    assert "No space left on device" in caplog.text
    monkeypatch.undo()
    full.require_kept()
    assert any((tmp_path / "v" / "evidence").glob("??/*"))


def test_a_seat_is_claimed_without_the_states_once_one_is_demanded(proven: bytes, town: Town, tmp_path: Path) -> None:
    """Left to others it would be an accomplice's; a solver that is gone answers no demand."""
    verifier = town.join(Verifier, "v", evidence=tmp_path / "v")
    verifier.task(proven)
    checkpoints = verifier.proof(proven).checkpoints
    for entry in checkpoints[1:]:
        town.file(entry.object).unlink()
    verifier.beacon.bring(verifier.wallet, verifier.market.seats.seating(proven).round, None)
    verifier.market.seats.open_claims(verifier.wallet, proven)
    decision = acts(next_of_verifier(verifier, proven))
    assert decision.verb == "demand a state"
    assert "can't be read" in decision.why
    locked = verifier.market.vault.balances(verifier.wallet.address).locked
    decision.act()
    # One: a solver that answers leaf by leaf and keeps the states to itself empties nobody's vault.
    for party in (verifier, town.join(Verifier, "v", evidence=tmp_path / "v")):
        assert acts(next_of_verifier(party, proven)).verb == "claim the seat"
    (demand,) = verifier.market.demands.demands(proven)
    assert verifier.market.vault.balances(verifier.wallet.address).locked == locked + demand.bond
    town.connection.wait_until(demand.deadline)
    before = verifier.market.vault.free(verifier.wallet.address)
    decision = acts(next_of_verifier(verifier, proven))
    assert decision.verb == "remove the solver"
    decision.act()
    stake = verifier.market.registry.terms(proven).solver_stake
    assert verifier.market.vault.free(verifier.wallet.address) - before == demand.bond + stake // 16


def test_a_damaged_copy_is_fetched_again_and_old_ones_go(tmp_path: Path) -> None:
    source = tmp_path / "store"
    source.mkdir()
    store = KeptStore(f"file://{source}", PartyDatabase(tmp_path / "own"))
    digest = store.put(b"a state")
    assert store.get(digest) == b"a state"
    copy = tmp_path / "own" / "evidence" / digest[:2] / digest
    copy.write_bytes(b"half a st")
    assert store.get(digest) == b"a state"
    assert copy.read_bytes() == b"a state"
    shutil.rmtree(source)
    assert store.get(digest) == b"a state"
    assert store.exists(digest)
    assert store.forget(seconds=3600) == 0
    assert store.forget(seconds=-1) == 1
    with pytest.raises(OperationalError):
        store.get(digest)


def test_evidence_is_kept_until_its_task_is_closed(tmp_path: Path) -> None:
    """A party that runs for years holds the states of its open tasks, not of all that it has ever seen."""
    (tmp_path / "store").mkdir()
    store = KeptStore(f"file://{tmp_path / 'store'}", PartyDatabase(tmp_path / "own"))
    both, first, second, none = (store.put(data) for data in (b"data", b"one", b"two", b"of no task"))
    for task, digest in (("1", first), ("2", second)):
        with store.about(task):
            store.get(both)
            store.get(digest)
    store.get(none)
    again = KeptStore(f"file://{tmp_path / 'store'}", PartyDatabase(tmp_path / "own"))
    assert again.release("1") == 1
    shutil.rmtree(tmp_path / "store")
    for kept in (both, second, none):
        assert again.get(kept)
    with pytest.raises(OperationalError):
        again.get(first)
    assert again.release("2") == 2
    assert again.release("2") == 0
    assert again.get(none) == b"of no task"
