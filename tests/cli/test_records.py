"""`pol commit`, `check`, `diff` and `inspect` on learning records."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from safetensors.torch import save_file
from torch import nn

from cli_runner import Said, pol
from digits_training import honest
from pol import Recorder
from pol.commitments import canonical_json
from pol.training.record.learning_record import HEAD

STEPS, EVERY = 10, 2


def record(folder: Path, change: Callable[[int, torch.optim.Optimizer], None] = lambda *_: None) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    batches = [torch.randn(5, 4) for _ in range(STEPS)]
    recorder = Recorder(f"file://{folder}", model, optimizer, every=EVERY)
    recorder.resume()
    for batch in recorder.batches(batches):
        change(recorder.steps, optimizer)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        recorder.step()
    recorder.close()
    return model


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs; in the second the rate doubles after step 5. And the first one's weights as a file."""
    folder = tmp_path_factory.mktemp("runs")

    def double(step: int, optimizer: torch.optim.Optimizer) -> None:
        if step == 5:
            optimizer.param_groups[0]["lr"] = 0.2

    model = record(folder / "a")
    record(folder / "b", double)
    save_file(model.state_dict(), folder / "a.safetensors")
    return folder


@pytest.fixture
def copy(runs: Path, tmp_path: Path) -> Path:
    shutil.copytree(runs / "a", tmp_path / "copy")
    return tmp_path / "copy"


def test_diff_finds_the_checkpoint_at_which_two_runs_part(runs: Path) -> None:
    found = pol("diff", runs / "a", runs / "b", "--json")
    assert found.code == 1
    document = json.loads(found.out)
    assert document["components"] == ["buffers", "optimizer", "parameters"]
    assert document["values"] == [
        {"path": "optimizer/state/param_groups/0/lr", "a": "0.1", "b": "0.2", "since_step": 6}
    ]
    rows = {row["name"]: row for row in document["tensors"]}
    # The rate acts on the parameters in the step in which it changes; the momentum and the statistics see it one later.
    assert rows["parameters/0.weight"]["since_step"] == 6
    assert rows["optimizer/state/state/0/momentum_buffer"]["since_step"] == 8
    assert rows["buffers/1.num_batches_tracked"]["since_step"] is None
    assert rows["parameters/0.weight"]["differing"] > 0
    assert pol("diff", runs / "a", runs / "b") == Said(1, match="they differ first at the checkpoint of step 6: ")
    assert pol("diff", f"{runs}/a@4", f"{runs}/b@4").code == 0
    assert pol("diff", f"{runs}/a@6", f"{runs}/b@6").code == 1
    assert pol("diff", runs / "a", runs / "a").code == 0
    assert pol("diff", f"{runs}/a@5", runs / "b") == Said(3, match="no checkpoint of step 5: it has 6 from 0 to 10")


def test_runs_that_are_equal_now_and_began_otherwise(tmp_path: Path) -> None:
    """Equal tensors: the command still says where the runs were apart, in what, and so does its code."""
    record(tmp_path / "a", lambda step, _: random.seed(step))
    record(tmp_path / "b", lambda step, _: random.seed(99 if step < 4 else step))
    said = pol("diff", tmp_path / "a", tmp_path / "b")
    assert said.code == 1
    assert "they differ first at the checkpoint of step 0: random" in said.out
    document = json.loads(pol("diff", tmp_path / "a", tmp_path / "b", "--json").out)
    assert not document["equal"]


def test_a_shorter_run_has_a_code_of_its_own(tmp_path: Path) -> None:
    def fall(step: int, _: object) -> None:
        if step == 6:
            raise KeyboardInterrupt

    record(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path / "cut", fall)
    said = pol("diff", tmp_path / "whole", tmp_path / "cut")
    assert said == Said(4, match=" is the end of the shorter run: the other one goes on to step 10")
    assert json.loads(pol("diff", tmp_path / "cut", tmp_path / "whole", "--json").out)["shorter"].startswith(
        f"{tmp_path}/cut"
    )
    assert pol("diff", f"{tmp_path}/whole@2", f"{tmp_path}/cut@2").code == 0


def test_generators_that_nobody_drew_from_are_listed_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.random.seed(len(name) + ord(name))
        record(tmp_path / name)
    said = pol("diff", tmp_path / "a", tmp_path / "b")
    assert said == Said(1, match="they are equal but for generators that nobody drew from: numpy")
    assert "they differ first" not in said.out
    assert json.loads(pol("diff", tmp_path / "a", tmp_path / "b", "--json").out)["equal_but_for"] == ["numpy"]
    record(tmp_path / "c", lambda step, _: np.random.rand())
    assert "nobody drew" not in pol("diff", tmp_path / "a", tmp_path / "c").out


def test_a_record_without_a_task_is_not_rejected_for_it(runs: Path) -> None:
    """Nobody has done anything wrong: it is wrong usage to ask for a replay of steps that nothing describes."""
    said = pol("verify", runs / "a", "--exact")
    assert said.code == 2
    assert "Recorder(..., task=)" in said.out
    assert "pol check" in said.out
    assert "don't pay" not in said.out


def test_the_picture_has_a_column_for_each_checkpoint(runs: Path, tmp_path: Path) -> None:
    assert pol("diff", runs / "a", runs / "b", "--picture", tmp_path / "map.svg").code == 1
    drawn = (tmp_path / "map.svg").read_text()
    cells = [f"parameters/0.weight, {step}: " for step in range(0, STEPS + 1, EVERY)]
    assert [f"{cell}equal" in drawn for cell in cells] == [True, True, True, False, False, False]
    assert all(cell in drawn for cell in cells)


def test_a_record_is_compared_with_a_file_of_its_weights(runs: Path) -> None:
    found = json.loads(pol("diff", runs / "a", runs / "a.safetensors", "--json").out)
    assert found["equal"]
    assert {row["name"] for row in found["tensors"]} >= {"0.weight", "1.running_mean"}
    assert found["not_compared"] > 0
    assert pol("diff", runs / "a.safetensors", runs / "b").code == 1


def test_commit_and_check_of_a_recorded_checkpoint(runs: Path, tmp_path: Path) -> None:
    published = json.loads((runs / "a" / HEAD).read_bytes())["checkpoints"]
    for step, place in ((10, f"{runs}/a"), (4, f"{runs}/a@4"), (4, f"file://{runs}/a@4"), (10, f"{runs}/a/{HEAD}")):
        document = json.loads(pol("commit", place, "--json", "--out", tmp_path / "c.json").out)
        assert document["root"] == published[step // EVERY]["root"]
        assert pol("check", place, tmp_path / "c.json").code == 0
    found = pol("check", f"{runs}/a@4", tmp_path / "c.json", "--json")
    assert found.code == 1
    assert "cursor" in {m["name"] for m in json.loads(found.out)["mismatches"]}


def test_check_says_what_it_checked_and_what_not(runs: Path) -> None:
    found = json.loads(pol("check", runs / "a", "--json").out)
    assert found["fine"]
    looked = [f["about"] for f in found["findings"] if f["check"] == "checkpoint" and f["outcome"] == "good"]
    assert looked == [f"step {step}" for step in range(0, STEPS + 1, EVERY)]
    assert {f["check"] for f in found["findings"] if f["outcome"] == "not checked"} >= {"training", "start"}
    samples = [json.loads(pol("check", runs / "a", "--sample", "2", "--seed", str(s), "--json").out) for s in (1, 1, 2)]
    drawn = [[f["about"] for f in s["findings"] if f["check"] == "checkpoint"] for s in samples]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0][-1] == "4 others"
    assert pol("check", runs / "a", "--seed", "1") == Said(2, match="--sample")
    assert pol("check", runs / "a") == Said(0, match="everything that was checked is good")


def test_check_finds_what_was_changed(copy: Path) -> None:
    tensors = sorted(copy.glob("*/*.safetensors"))[2]
    data = bytearray(tensors.read_bytes())
    data[-1] ^= 1
    tensors.write_bytes(data)
    found = pol("check", copy, "--json")
    assert found.code == 1
    bad = [f for f in json.loads(found.out)["findings"] if f["outcome"] == "bad"]
    assert len(bad) == 1
    assert tensors.name in bad[0]["detail"]
    tensors.unlink()
    found = pol("check", copy, "--json")
    assert found.code == 3
    assert [f["outcome"] for f in json.loads(found.out)["findings"]].count("could not look") == 1
    assert pol("check", copy) == Said(3, match="not everything could be checked")


def test_a_rate_that_changes_is_named_with_its_step(runs: Path) -> None:
    """By `check`, `log --verify` and `inspect`; nothing has changed in the other run."""
    change = "optimizer/state/param_groups/0/lr: 0.1 -> 0.2"
    findings = json.loads(pol("check", runs / "b", "--json").out)["findings"]
    assert [(f["about"], f["detail"]) for f in findings if f["check"] == "change"] == [("step 6", change)]
    assert json.loads(pol("log", runs / "b", "--verify", "--json").out)["changes"] == [{"step": 6, "change": change}]
    assert f"step 6: {change}" in pol("log", runs / "b", "--verify").out
    assert json.loads(pol("inspect", f"{runs}/b@6", "--json").out)["changed"] == [change]
    assert json.loads(pol("inspect", runs / "b", "--json").out)["newest"]["changed"] == []
    assert json.loads(pol("log", runs / "a", "--verify", "--json").out)["changes"] == []


def test_check_finds_another_document_and_another_log(copy: Path) -> None:
    head = copy / HEAD
    published = json.loads(head.read_bytes())
    first, second = published["checkpoints"][1:3]
    first["object"], second["object"] = second["object"], first["object"]
    head.write_text(json.dumps(published, separators=(",", ":"), sort_keys=True))
    found = json.loads(pol("check", copy, "--json").out)
    assert [f["about"] for f in found["findings"] if f["outcome"] == "bad"] == ["step 2", "step 4"]
    first["root"], second["root"] = second["root"], first["root"]
    head.write_text(json.dumps(published, separators=(",", ":"), sort_keys=True))
    assert pol("check", copy) == Said(1, match="states another log")


def test_check_verifies_signed_heads(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    recorder = Recorder(f"file://{tmp_path}/run", nn.Linear(2, 1), every=1, key=key)
    recorder.resume()
    recorder.step()
    recorder.close()
    found = json.loads(pol("check", tmp_path / "run", "--json").out)
    signatures = next(f for f in found["findings"] if f["check"] == "signatures")
    assert (signatures["outcome"], signatures["detail"]) == ("good", f"by {key.public_key().public_bytes_raw().hex()}")
    head = tmp_path / "run" / HEAD
    published = json.loads(head.read_bytes())
    published["heads"][-1]["signature"] = "00" * 64
    head.write_text(json.dumps(published, separators=(",", ":"), sort_keys=True))
    found = json.loads(pol("check", tmp_path / "run", "--json").out)
    assert not found["fine"]
    assert next(f for f in found["findings"] if f["check"] == "signatures")["outcome"] == "bad"


def test_inspect_tells_what_a_record_holds(runs: Path, tmp_path: Path) -> None:
    found = json.loads(pol("inspect", runs / "a", "--json").out)
    assert (found["kind"], found["interval"], len(found["checkpoints"])) == ("pol/learning-record", EVERY, 6)
    newest = found["newest"]
    assert newest["step"] == STEPS
    assert newest["components"]["parameters"]["tensors"] == 6
    assert newest["values"]["optimizer"]["state"]["param_groups"]["0"]["momentum"] == "0.5"
    place = newest["values"]["cursor"]["loaders"]["data"]
    assert (place["epoch"], place["batch"]) == ("1", "0"), "an epoch that is over is the begin of the next one"
    earlier = json.loads(pol("inspect", f"{runs}/a@4", "--json").out)
    assert earlier["values"]["cursor"]["loaders"]["data"]["batch"] == "4"
    digest = found["checkpoints"][1]["document"]
    assert json.loads(pol("inspect", runs / "a", digest, "--json").out)["step"] == EVERY
    assert "momentum: 0.5" in pol("inspect", runs / "a").out
    assert pol("inspect", runs / "a", "00" * 32) == Said(3, match="can't read object")
    assert pol("inspect", tmp_path) == Said(3, match="no learning record; if it is a store of tasks")


def test_control_characters_of_strangers_reach_no_terminal(copy: Path) -> None:
    head = copy / HEAD
    published = json.loads(head.read_bytes())
    published["start"] = {"kind": "given", "\x1b[2J": "\x9b1mloud"}
    head.write_bytes(canonical_json.encode(published))
    shown = pol("inspect", copy).out
    assert "\\x1b[2J: \\x9b1mloud" in shown
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_looking_needs_no_torch(runs: Path) -> None:
    program = """
import sys
from pol.cli.main import _run
for line in ("check a", "commit a@4", "diff a@4 b@4", "inspect a"):
    sys.argv[1:] = line.split()
    assert _run() == 0, line
    assert "torch" not in sys.modules, line
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=runs, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_inspect_knows_tasks_and_learning_proofs() -> None:
    training = honest()
    url = training.store.url
    task = json.loads(pol("inspect", url, training.task.digest, "--json").out)
    assert (task["kind"], task["model"]) == ("pol/task", "MLP 64-64-10")
    proof = json.loads(pol("inspect", url, training.digest, "--json").out)
    assert (proof["kind"], proof["task"]) == ("pol/learning-proof", training.task.digest)
    assert len(proof["checkpoints"]) == task["segments"] + 1
    assert f"{len(proof['checkpoints'])} checkpoints" in pol("inspect", url, training.digest).out


def test_a_checkpoint_is_checked_alone(runs: Path) -> None:
    found = pol("check", f"{runs}/a@{EVERY}", "--json")
    assert found == Said(0)
    findings = json.loads(found.out)["findings"]
    looked = [f["about"] for f in findings if (f["check"], f["outcome"]) == ("checkpoint", "good")]
    assert looked == [f"step {EVERY}"]
    assert pol("check", f"{runs}/a@5") == Said(3, match="has no checkpoint of step 5")
    assert pol("check", f"{runs}/a@{EVERY}", "--sample", "1") == Said(2, match="is one checkpoint")
    assert pol("check", f"{runs}/none@4") == Said(3, match="it does not exist")


def test_two_are_compared(runs: Path) -> None:
    assert pol("diff", runs / "a") == Said(2, match="two are compared")
