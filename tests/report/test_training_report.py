"""`pol report TRAINING`: a record, a proof in a store, a training in rounds; a clear error for anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import small_task
from cli_runner import Said, pol
from lab.rounds.tiny_training import TinyTraining
from pol import Recorder, Store
from pol.execution.cpu import CpuExecutor
from pol.training.task.learning_proof import decode
from pol.verification.examination.training_course import MOST_SEGMENTS, course_of, spread
from pol.verification.profile.profiling import measure_profile

SEED = "5e" * 32


def text(file: Path) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", file.read_text(), flags=re.S).split())


def test_a_proof_in_a_store(tmp_path: Path) -> None:
    store, task = small_task.published(tmp_path)
    proof = small_task.solve(store, task, frozenset({22}))
    profile = store.put(measure_profile(task, CpuExecutor, 3, 4).encode())
    out = tmp_path / "page.html"
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
    farthest = max(cells, key=lambda cell: float(cell[1]))
    assert farthest[0] == "0.weight, segment 7"
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
