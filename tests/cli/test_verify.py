"""`pol verify`: outcomes as exit codes, draws that can be repeated, and what strangers may put into its way."""

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

import small_task
from cli_runner import Said, pol
from pol import ProtocolError, Recorder, Sampling, sample, verify
from pol.training.record.learning_record import HEAD
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import compute_log_root
from pol.training.task.task_document import LoadedTask
from pol.verification.verdict.verdict import Outcome
from stored_state import load_state

SEED = "5e" * 32


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> small_task.Examined:
    return small_task.examined(tmp_path_factory.mktemp("verify"))


def run(case: small_task.Examined, proof: str | Path, *arguments: object) -> Said:
    return pol("verify", case.folder, proof, "--profile", case.profile, *map(str, arguments))


def read(said: Said) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(said.out)
    return document


def test_a_device_has_the_same_report(case: small_task.Examined) -> None:
    cpu, host = (
        read(run(case, case.skipping, "--draws", 3, "--seed", SEED, "--json", "--device", device))
        for device in ("cpu", "host")
    )
    assert [{**document, "seconds": 0} for document in (cpu, host)] == [{**cpu, "seconds": 0}] * 2
    assert run(case, case.honest, "--device", "host", "--engine", "cores") == Said(2, match="processor's cores")
    assert run(case, case.honest, "--device", "tpu") == Said(2, match="there is no device 'tpu'")


def test_an_honest_training_is_accepted_and_one_with_a_missing_step_is_not(case: small_task.Examined) -> None:
    assert run(case, case.honest, "--all") == Said(0, match="ACCEPTED: 20 of 20 replayed segments accepted")
    said = run(case, case.skipping, "--all", "--json")
    document = read(said)
    assert (said.code, document["outcome"], document["reasons"]) == (1, "rejected", ["distance-above-threshold"])
    assert [s["segment"] for s in document["segments"] if s["outcome"] == "rejected"] == [7]
    assert document["draw"]["probability"] == 1.0
    assert all(len(s["observed"]["loss"]) == small_task.INTERVAL for s in document["segments"])


def test_the_sample_follows_from_confidence_and_cheat_fraction(case: small_task.Examined) -> None:
    document = read(run(case, case.honest, "--cheat-fraction", "0.25", "--confidence", "0.9", "--json"))
    assert (document["draw"]["cheated"], len(document["draw"]["drawn"])) == (5, 7)
    assert 0.9 <= document["draw"]["probability"] < 1.0
    again = read(run(case, case.honest, "--draws", 7, "--seed", document["draw"]["seed"], "--json"))
    assert again["draw"]["drawn"] == document["draw"]["drawn"]
    assert (document["draw"]["seed_from"], again["draw"]["seed_from"]) == ("this verifier", "outside")
    other = read(run(case, case.honest, "--draws", 7, "--json"))
    assert other["draw"]["seed"] != document["draw"]["seed"]


def test_a_screen_adds_what_doesn_t_look_like_its_neighbours(case: small_task.Examined) -> None:
    worse = small_task.solve(case.store, case.task, frozenset(range(8 * small_task.INTERVAL, 9 * small_task.INTERVAL)))
    document = read(run(case, worse, "--seed", SEED, "--draws", 1, "--suspicious", 1, "--json"))
    assert document["draw"]["drawn"] != [8]
    assert document["draw"]["suspected"] == [8]
    assert (document["outcome"], document["suspicious"][0]["segment"]) == ("rejected", 8)
    assert document["draw"]["probability"] == 0.05


def test_exact_mode(case: small_task.Examined) -> None:
    canonical = small_task.solve_with(case.store, case.task, small_task.Canonical(case.task))
    assert pol("verify", case.folder, canonical, "--exact", "--all") == Said(0, match="equal-roots")
    assert pol("verify", case.folder, case.skipping, "--exact", "--all") == Said(1, match="roots-differ")


def test_the_proof_has_to_be_over_the_log_that_was_committed_to(case: small_task.Examined) -> None:
    root = learning_proof.decode(case.store, case.honest).log_root.hex()
    assert run(case, case.honest, "--draws", 1, "--log-root", f"0x{root}").code == 0
    said = run(case, case.honest, "--draws", 1, "--log-root", "00" * 32, "--json")
    assert (said.code, read(said)["reasons"], read(said)["segments"]) == (1, ["broken-log"], [])


def test_bad_proofs_are_rejected_and_what_is_missing_is_inconclusive(case: small_task.Examined, tmp_path: Path) -> None:
    proof = learning_proof.decode(case.store, case.honest)
    short = replace(proof, checkpoints=proof.checkpoints[:-1])
    short = replace(short, log_root=compute_log_root(short.checkpoints))
    for bad, reason in (
        (case.store.put(short.encode()), "missing-entry"),
        (case.task.digest, "malformed"),
        (case.store.put(replace(proof, order_root=bytes(32)).encode()), "wrong-order"),
    ):
        said = run(case, bad, "--json")
        assert (said.code, read(said)["outcome"], read(said)["reasons"]) == (1, "rejected", [reason])
    gone = run(case, "ab" * 32, "--json")
    assert (gone.code, read(gone)["outcome"], read(gone)["reasons"]) == (3, "inconclusive", ["not-available"])
    shutil.copytree(case.folder, tmp_path / "copy")
    lost = proof.checkpoints[5].object
    (tmp_path / "copy" / lost[:2] / lost).write_bytes(b"other bytes")
    said = pol("verify", tmp_path / "copy", case.honest, "--exact", "--all", "--json")
    document = read(said)
    assert {s["segment"] for s in document["segments"] if s["outcome"] == "inconclusive"} == {4, 5}
    said = pol("verify", tmp_path / "copy", case.honest, "--profile", case.profile, "--all")
    assert said == Said(3, match="corrupt-object")


def test_usage(case: small_task.Examined, tmp_path: Path) -> None:
    assert pol("verify", case.folder, case.honest) == Said(2, match="pol profile makes one), or compare bits (--exact")
    assert run(case, case.honest, "--exact") == Said(2, match="exclude each other: compare by thresholds")
    assert run(case, "zz") == Said(2, match="neither 32 bytes in hexadecimal nor a file")
    (tmp_path / "digest.txt").write_text(case.honest + "\n")
    assert run(case, tmp_path / "digest.txt", "--draws", 1).code == 0
    (tmp_path / "digest.txt").write_text("something else")
    assert run(case, tmp_path / "digest.txt", "--draws", 1) == Said(2, match="doesn't hold 32 bytes")
    assert run(case, case.honest, "--seed", "12") == Said(2, match="isn't 32 bytes")
    assert run(case, case.honest, "--draws", 21) == Said(2, match="the task has 20")
    assert run(case, case.honest, "--draws", 2, "--all") == Said(2, match="exclude each other")
    assert run(case, case.honest, "--confidence", "1.1") == Said(2, match="up to 1")
    assert run(case, case.honest, "--cheat-fraction", "0") == Said(2, match="above 0")
    assert run(case, case.honest, "--confidence", "much") == Said(2, match="isn't a number")
    assert pol("verify", case.folder, "--exact") == Said(2, match="is no learning record")
    for proof in ((), (case.honest,)):
        assert pol("verify", tmp_path / "nowhere", *proof, "--exact") == Said(3, match="no store")
    # A bad profile is nothing that the solver has done.
    assert pol("verify", case.folder, case.honest, "--profile", case.honest) == Said(3, match="profile can't be used")
    unknown = pol("verify", case.folder, case.honest, "--profile", "00" * 32)
    assert unknown == Said(3, match=f"the store has no profile {'00' * 32}: give the digest that `pol profile` printed")


def record(store: Store, task: LoadedTask) -> Recorder:
    """A loop of one's own that trains the task."""
    x, y, order = small_task.data()
    model = small_task.build_model()
    optimizer = small_task.build_optimizer(model)
    recorder = Recorder(store, model, optimizer, task=task)
    recorder.resume()
    for step in range(recorder.steps, small_task.STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[order[step]]), y[order[step]]).backward()
        optimizer.step()
        recorder.step()
    recorder.close()
    return recorder


def test_a_learning_record_with_a_task_is_verified_as_it_stands(case: small_task.Examined, tmp_path: Path) -> None:
    shutil.copytree(case.folder, tmp_path / "own")
    store = Store(f"file://{tmp_path / 'own'}")
    recorder = record(store, case.task)
    arguments = ("verify", tmp_path / "own", "--profile", case.profile, "--draws", "6", "--seed", SEED)
    said = pol(*arguments, "--json")
    document = read(said)
    assert (said.code, document["task"]) == (0, case.task.digest)
    assert document["log_root"] == recorder.learning_proof()[1].log_root.hex()
    assert document["solver_environment"]["versions/torch"]

    # The same trail under weights that weren't trained: the record's own checkpoints are other ones.
    first, last = recorder.record.checkpoints[0], recorder.record.checkpoints[-1]
    forged = replace(
        recorder.record, checkpoints=(*recorder.record.checkpoints[:-1], replace(last, **_forged(store, last)))
    )
    (tmp_path / "own" / HEAD).write_bytes(forged.encode())
    assert pol(*arguments) == Said(1, match="wrong-root")
    (tmp_path / "own" / HEAD).write_bytes(replace(recorder.record, checkpoints=(first,)).encode())
    assert pol(*arguments) == Said(1, match="missing-entry")


def _forged(store: Store, last: Any) -> dict[str, Any]:
    """The last checkpoint with one weight changed and everything consistent in itself."""
    from pol.commitments.complete_state import CompleteState
    from pol.training.storage import stored_checkpoint

    state = load_state(store, stored_checkpoint.load_document(store, last.object))
    arrays = dict(state.arrays)
    name = next(name for name in arrays if name.startswith("parameters/"))
    data = arrays[name].data.copy()
    data[0] ^= 1
    arrays[name] = replace(arrays[name], data=data)
    digest, saved = stored_checkpoint.save(store, last.step, CompleteState(arrays, state.documents))
    return {"root": saved.root, "object": digest}


def test_a_record_without_a_task_can_t_be_replayed(tmp_path: Path) -> None:
    recorder = Recorder(f"file://{tmp_path}", torch.nn.Linear(2, 1), every=1)
    recorder.resume()
    recorder.close()
    assert pol("verify", tmp_path, "--exact") == Said(2, match="names no task")


@pytest.mark.parametrize("document", ["", "{}", "[]", '{"x":1}'])
def test_a_malformed_record_is_bad_evidence(tmp_path: Path, document: str) -> None:
    (tmp_path / HEAD).write_text(document)
    assert verify(str(tmp_path), exact=True).verdict.outcome is Outcome.REJECTED
    assert pol("verify", tmp_path, "--exact").code == 1


def test_floats_are_taken_as_they_are_printed() -> None:
    assert sample(1000, 0.05, 0.99) == sample(1000, Fraction(1, 20), Fraction(99, 100))
    assert Sampling(cheat_fraction=0.05) == Sampling()  # type: ignore[arg-type]  # floats are taken, too


def test_a_store_with_options_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ProtocolError, match="options"):
        verify(Store("memory://options", {"skip_instance_cache": True}), "00" * 32, exact=True)
