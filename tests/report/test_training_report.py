"""`pol report TRAINING`: a record, a proof in a store, a training in rounds; `pol audit --report`; clear errors.

`pol explore --training`: rounds and workers while they run, with no chain.
"""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from parsed_page import ParsedPage, require_alone

import small_task
from cli_runner import Said, pol
from lab.rounds.claim_dispute import walked
from lab.rounds.tiny_training import LIAR, TinyTraining, key, lying_run
from pol import Recorder, Store
from pol.chain.desks.market import Matter
from pol.cli.market.explore import Explorer
from pol.execution.cpu import CpuExecutor
from pol.rounds import audit
from pol.training.task.learning_proof import decode
from pol.verification.examination.training_course import MOST_SEGMENTS, course_of, spread

SEED = "5e" * 32


def text(file: Path) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", file.read_text(), flags=re.S).split())


def test_a_proof_in_a_store(tmp_path: Path) -> None:
    case = small_task.examined(tmp_path)
    proof, profile, out = case.skipping, case.profile, tmp_path / "page.html"
    said = pol("report", tmp_path, proof, "--profile", profile, "--draws", "20", "--seed", SEED, "--out", out)
    assert said == Said(1, match="rejected: 1 of 20 replayed segments rejected")
    told = text(out)
    for words in (
        "MLP 6-8-2",
        "Loss over the whole training",
        "How far each tensor moves",
        "Distance of each tensor",
        "Where the screen looks",
        "Segment 7:",
        f"--profile {profile} --draws 20 --seed {SEED}",
    ):
        assert words in told, words
    cells = re.findall(r'title="(0.weight, segment \d+): ([^"]+)"', out.read_text())
    assert max(cells, key=lambda cell: float(cell[1]))[0] == "0.weight, segment 7"
    assert pol("report", tmp_path, "--out", out) == Said(
        3, match="of another store name the digest of a learning proof"
    )


def test_the_course_is_that_of_the_training(tmp_path: Path) -> None:
    """The loss at a checkpoint is the one that the step from it has; a tensor's way is its change over its length."""
    store, task = small_task.published(tmp_path)
    proof = decode(store, small_task.solve_with(store, task, small_task.Canonical(task)))
    course = course_of(store, task, proof.checkpoints, CpuExecutor)
    assert [step for step, _ in course.observed["loss"]] == [*range(0, 60, 3)]
    x, y, order = small_task.data()
    model = small_task.build_model()
    first = float(torch.nn.functional.cross_entropy(model(x[order[0]]), y[order[0]]).detach())
    assert course.observed["loss"][0][1] == pytest.approx(first, rel=1e-6)
    assert len(course.ways) == len(course.segments) == 20
    assert all(0 < way < 1 for way in course.ways[5][:4])


def test_many_segments_are_thinned() -> None:
    assert spread(3) == [0, 1, 2]
    assert spread(0) == spread(-1) == []
    thin = spread(100_000)
    assert (len(thin), thin[0], thin[-1]) == (MOST_SEGMENTS, 0, 99_999)


def test_a_record_without_a_task(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = Recorder(str(tmp_path / "run"), model, optimizer, every=2)
    recorder.resume()
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
        recorder.step()
    recorder.close()
    out = tmp_path / "page.html"
    assert pol("report", tmp_path / "run", "--out", out, "--by", "Ada") == Said(0, match="nothing could be replayed")
    told = text(out)
    for words in ("RECORDED", "Ada", "How far each tensor moves", "parameters/weight", "nobody can replay them"):
        assert words in told, words


def test_a_training_in_rounds(tmp_path: Path) -> None:
    training = TinyTraining.of(Store(f"file://{tmp_path}/store"))
    for round_ in range(2):
        training.play(round_, (0, 1))
        training.publish(round_)
    out = tmp_path / "page.html"
    said = pol("report", tmp_path, "--draws", "3", "--seed", SEED, "--out", out)
    assert said == Said(0, match="accepted: 3 of 8 claims replayed, all roots checked")
    told = text(out)
    for words in ("2 of 4", "What was drawn", SEED, "signed receipts", f"pol audit {tmp_path} --draw 3 --seed {SEED}"):
        assert words in told, words
    assert pol("report", tmp_path, "--profile", "00" * 32) == Said(2, match="claims of rounds are exact")


def test_what_is_no_training(tmp_path: Path) -> None:
    assert pol("report") == Said(2, match="name what the page is about")
    assert pol("report", tmp_path) == Said(3, match="holds neither a learning record nor a training in rounds")
    assert pol("report", tmp_path / "none") == Said(3, match="there is no store")
    assert pol("report", "--deployment", "x.json") == Said(2, match="a market needs both")
    assert pol("report", tmp_path, "--seed", "12") == Said(2, match="isn't 32 bytes in hexadecimal")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Worker 2 joins in round 1."""
    return lying_run(tmp_path_factory.mktemp("run"), first=(0, LIAR))


def test_the_page_of_an_audit_names_the_liar_its_round_and_its_lie(run: Path, tmp_path: Path) -> None:
    found = audit(Store(f"file://{run}/store"))
    (lie,) = found.lies
    match = walked(found.rounds, found.rounds.claims[lie.claim])
    (run / "dispute.json").write_text(json.dumps(match.record.to_dict() | {"ended_by": "resignation"}))
    file = tmp_path / "page.html"
    assert pol("audit", run, "--report", file) == Said(1)
    page = ParsedPage(file.read_text())
    require_alone(page)
    assert [a for _, a in page.elements if a.get("name") == "viewport"]
    assert "Worker 1 was caught" in page.words["h2"]
    assert key(LIAR).name in page.words["code"]
    assert any("Round 1, work: an end that its program doesn't give" in words for words in page.words["b"])
    assert page.words["span"].count("lie") == 1
    assert any("challenger has won" in words for words in page.words["p"])
    assert "svg" in {name for name, _ in page.elements}
    assert "Down to" in page.words["b"]
    assert any("1 lie was found, of worker 1; nobody else is to blame." in words for words in page.words["p"])
    assert any(f"pol audit {run}" in words for words in page.words["pre"])
    assert any("8 messages with " in words for words in page.words["summary"])  # 2 in round 0, 3 in each other one


def test_a_dispute_of_other_rounds_is_refused(run: Path, tmp_path: Path) -> None:
    other = TinyTraining.of(Store(f"file://{tmp_path}/store"))
    other.play(0, (0, 2))
    other.publish()
    found = audit(Store(f"file://{run}/store"), str(LIAR), 1)
    record = walked(found.rounds, found.rounds.claims[found.lies[0].claim]).record
    (tmp_path / "dispute.json").write_text(json.dumps(record.to_dict() | {"ended_by": "proof"}))
    said = pol("audit", tmp_path, "--report", tmp_path / "page.html")
    assert said == Said(1, match="the dispute beside these rounds is about no claim of them")


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
