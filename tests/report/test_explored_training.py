"""`pol explore --training`: rounds and workers while they run, with no chain."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_runner import Said, pol
from lab.rounds.tiny_training import TinyTraining
from pol import Store
from pol.chain.desks.market import Matter
from pol.cli.market.explore import Explorer


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> TinyTraining:
    found = TinyTraining.of(Store(f"file://{tmp_path_factory.mktemp('run')}/store"))
    found.play(0, (0, 1))
    found.publish(0)
    return found


@pytest.fixture(scope="module")
def site(training: TinyTraining) -> Iterator[str]:
    url = training.store.url
    command = [sys.executable, "-m", "pol.cli.main", "explore", "--training", url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait() == 130


def get(url: str) -> str:
    with urllib.request.urlopen(url) as response:
        return str(response.read().decode())


def test_rounds_and_workers_as_they_come(training: TinyTraining, site: str) -> None:
    page = get(site)
    assert 'href="/training/0"' in page
    assert "no execution was repeated yet" in page
    assert "1 of " in get(site + "training/0")
    training.play(1, (0, 1, 2))
    training.publish(1)
    page = get(site + "training/0")
    assert "2 of " in page
    assert "worker 2, round 1: 2 claims, 0 replayed" in page
    assert "worker 2 isn&#x27;t in round 0" in page
    for path in ("training/1", "nothing"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(site + path)


def test_disputes_of_every_matter_have_an_address() -> None:
    """Each game numbers its disputes from 1, so the address has the matter."""
    resources = Explorer(None, 1.0, frozenset()).application().router.resources()
    (pattern,) = (found.get_info()["pattern"] for found in resources if found.canonical == "/dispute/{key}")
    for matter in Matter:
        assert pattern.fullmatch(f"/dispute/{matter}-12"), matter
    assert pattern.fullmatch("/dispute/12")
    assert not pattern.fullmatch("/dispute/other-12")


def test_something_has_to_be_shown(tmp_path: Path) -> None:
    assert pol("explore") == Said(2, match="name what to show")
    assert pol("explore", "--training", tmp_path) == Said(3, match="there is no training in rounds")
