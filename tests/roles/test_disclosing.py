"""Disclosing an error on purpose takes no replay: its window may be shorter than one."""

from pathlib import Path

import pytest
from all_parties import Verifier, next_of_verifier
from role_market import OFTEN, Town, done, seated_with_duty

from pol.chain.desks.task_registry import Status
from pol.errors import OperationalError
from pol.roles.party.decisions import Mode
from pol.roles.process.party_process import Process
from pol.training.storage.party_database import PartyDatabase

MARKET_RULES, JOINED = OFTEN, ((Verifier, "v"),)


class Idle(Verifier):
    """Replays nothing any more."""

    def trace(self, *_: object) -> None:  # type: ignore[override]
        raise OperationalError("a replay would be too late")


@pytest.fixture
def erred(exact: bytes, town: Town, tmp_path: Path) -> Verifier:
    """Its verdict is wrong on purpose, and the watch is open."""
    verifier = town.join(Verifier, "v", evidence=tmp_path / "v")
    seated_with_duty(verifier, exact, forced=True)
    verifier.verify(exact)
    verifier.open_watch(exact)
    return verifier


def watch_until(verifier: Verifier, task_id: bytes) -> int:
    return verifier.market.verdicts.verdict(task_id).watch_until


def test_a_process_that_starts_anew_discloses_without_a_replay(
    exact: bytes, town: Town, erred: Verifier, tmp_path: Path
) -> None:
    again = town.join(Idle, "v", evidence=tmp_path / "v")
    process = Process(again, next_of_verifier, Mode.DEFEND)
    assert done(process.turn()) == []
    town.connection.wait_until(watch_until(erred, exact))
    assert done(process.turn()) == ["disclose"]
    assert again.market.registry.task(exact).status is Status.CONTESTED


@pytest.mark.parametrize("lost", ["gone", "damaged", "short"])
def test_what_was_lost_is_replayed_while_the_watch_lasts(
    exact: bytes, town: Town, erred: Verifier, tmp_path: Path, lost: str
) -> None:
    database = PartyDatabase(tmp_path / "v")
    ((kept,),) = database.rows("SELECT root FROM sealed_roots")
    assert len(kept) == 32
    if lost == "gone":
        database.write(("DELETE FROM sealed_roots", ()))
    else:
        database.write(("UPDATE sealed_roots SET root = ?", (b"\7" * (32 if lost == "damaged" else 5),)))
    town.connection.wait_until(watch_until(erred, exact) - 60)
    assert done(Process(town.join(Verifier, "v", evidence=tmp_path / "v"), next_of_verifier).turn()) == ["replay again"]
    again = Process(town.join(Idle, "v", evidence=tmp_path / "v"), next_of_verifier, Mode.DEFEND)
    assert done(again.turn()) == []
    town.connection.wait_until(watch_until(erred, exact))
    assert done(again.turn()) == ["disclose"]


def test_a_party_without_a_folder_remembers_while_it_runs(exact: bytes, town: Town) -> None:
    verifier = town.join(Idle, "v")
    seated_with_duty(verifier, exact, forced=True)
    verifier.verify(exact)
    verifier.open_watch(exact)
    town.connection.wait_until(watch_until(verifier, exact))
    assert verifier.disclose(exact)


def test_what_was_hidden_is_let_go_with_its_task(exact: bytes, town: Town, erred: Verifier, tmp_path: Path) -> None:
    erred.release(exact)
    assert PartyDatabase(tmp_path / "v").rows("SELECT * FROM sealed_roots") == []
