"""`pol audit` on a training of three workers, one of which lies about its work in round 1."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from cli_runner import Said, pol
from lab.rounds.tiny_training import COORDINATOR, LIAR, TinyTraining, key, lying_run
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.rounds.auditing.drawn_audit import claims_in, open_rounds
from pol.training.storage.store import Store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lying_run(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("worker", [str(LIAR), key(LIAR).name])
def test_a_lie_is_named_with_its_key_and_place(run: Path, worker: str) -> None:
    said = pol("audit", run, "--worker", worker, "--round", "1", "--json")
    document = json.loads(said.out)
    (found,) = document["findings"]
    assert said.code == 1
    assert (document["outcome"], len(document["replayed"])) == ("rejected", 2)
    assert [found[name] for name in ("lie", "worker", "round", "phase")] == ["execution", key(LIAR).name, 1, "work"]
    assert document["seconds"] > 0


@pytest.mark.parametrize(("worker", "round_"), [(0, 1), (2, 1), (LIAR, 0), (LIAR, 2)])
def test_honest_claims_are_accepted(run: Path, worker: int, round_: int) -> None:
    assert pol("audit", run, "--worker", str(worker), "--round", str(round_)) == Said(
        0, match="accepted: tiny, 2 claims"
    )


def test_draws(run: Path) -> None:
    everything = json.loads(pol("audit", run / "store", "--json").out)
    assert len(everything["replayed"]) == 3 * 3 * 2
    (lie,) = everything["findings"]
    caught = 0
    for number in range(8):
        seed = keccak256(bytes([number])).hex()
        drawn = json.loads(pol("audit", run, "--draw", "5", "--seed", seed, "--json").out)
        is_drawn = lie["claim"] in [entry["claim"] for entry in drawn["replayed"]]
        assert drawn["findings"] == ([lie] if is_drawn else [])
        assert (drawn["seed"], len(drawn["replayed"])) == (seed, 5)
        caught += is_drawn
    assert 0 < caught < 8


def test_all_roots(run: Path) -> None:
    """A lie about an execution isn't seen in roots; a replay of it is."""
    assert pol("audit", run, "--all-roots") == Said(0, match="roots of all claims checked")
    assert pol("audit", run, "--all-roots", "--worker", str(LIAR), "--round", "1") == Said(
        1, match="execution: round 1"
    )


def test_a_withheld_end_is_replayed_and_withheld_sources_are_inconclusive(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    store = Store(f"file://{tmp_path}/run/store")
    training = TinyTraining(store, TinyTraining.of(store).plan)
    entry = next(e for e in training.read().claims.values() if e.worker == key(0).name and e.claim.place == (0, 3, 0))
    audit = ("audit", tmp_path / "run", "--worker", "0", "--round", "1")
    for name, said in ((entry.tensors, Said(0, match="accepted")), (entry.sources, Said(3, match="withheld"))):
        (withheld,) = (tmp_path / "run" / "store").rglob(f"{name}*")
        withheld.unlink()
        assert pol(*audit) == said


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--worker", "7", "--round", "1"), 3, "round 1 has no worker 7: name a seat or a key of 0 ("),
        (("--worker", COORDINATOR.name), 3, "no claim of worker"),
        (("--worker", "1", "--round", "3"), 3, "the log has no round 3"),
        (("--round", "9"), 3, "no claims of round 9"),
        (("--draw", "100"), 3, "can't draw 100 of 18"),
        (("--seed", "00" * 32), 2, "--seed is for a draw"),
        (("--draw", "1", "--seed", "xy"), 2, "isn't 32 bytes"),
    ],
)
def test_what_cannot_be_looked_at(run: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    assert pol("audit", run, *arguments) == Said(code, match=message)


def test_a_worker_of_two_rosters_is_named_once(run: Path) -> None:
    rounds = open_rounds(Store(f"file://{run}"))
    twice = {round_: [*rosters, *rosters] for round_, rosters in rounds.rosters.items()}
    with pytest.raises(OperationalError) as raised:
        claims_in(dataclasses.replace(rounds, rosters=twice), 1, "7")
    assert str(raised.value).count(key(0).name) == 1


def test_no_log(tmp_path: Path) -> None:
    said = pol("audit", tmp_path)
    assert said == Said(3, match="there is no training in rounds at")
    assert len(said.out.splitlines()) == 1


def test_a_log_without_claims(tmp_path: Path) -> None:
    training = TinyTraining.of(Store(f"file://{tmp_path}/store"))
    training.roster(0, (0, 1))
    training.publish()
    for options in ((), ("--all-roots",)):
        assert pol("audit", tmp_path, *options) == Said(3, match="no claims yet")
    assert pol("audit", tmp_path, "--round", "0") == Said(3, match="no claims of round 0")
