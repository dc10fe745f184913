"""``pol zk exact``: files of exact proofs, bound to a task, and what is no such file."""

import json
from pathlib import Path

import pytest

from cli_runner import Said, pol
from pol.chain.desks.proven_steps import context_of
from pol.zk.bn254 import R
from pol.zk.circuits import load_circuit
from pol.zk.exact.exact_proof_file import ExactProofs
from pol.zk.example import example_vectors
from pol.zk.fixed_point import integer_step
from pol.zk.poseidon import vector_hash

pytestmark = pytest.mark.long

NAME = "linear_regression"
TASK = "0x" + "ab" * 32


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


def inputs(seed: int, skip: int = 0) -> dict[str, list[int]]:
    network = load_circuit(NAME).network
    pairs = [*zip(network.inputs, example_vectors(load_circuit(NAME), seed), strict=True)]
    return {f"{name}.integers": [int(x) for x in vector.ravel()] for name, vector in pairs[skip:]}


def test_steps_of_a_task(keys: Path, tmp_path: Path) -> None:
    given, out, after = [tmp_path / f"{i}.json" for i in range(2)], tmp_path / "steps.json", tmp_path / "next.json"
    for seed, path in enumerate(given):
        path.write_text(json.dumps(inputs(seed, skip=seed)))
    files = [part for path in given for part in ("--inputs", path)]
    about = ("--task", TASK, "--first-step", "7", "--out", out, "--next", after, "--keys", keys)
    assert pol("zk", "exact", "prove", NAME, *files, *about) == Said(0, match="next: pol zk exact verify")
    proofs = ExactProofs.from_json(out.read_bytes())
    assert proofs.contexts == (context_of(b"\xab" * 32, 7), context_of(b"\xab" * 32, 8))
    network, first, second = (
        load_circuit(NAME).network,
        example_vectors(load_circuit(NAME), 0),
        example_vectors(load_circuit(NAME), 1),
    )
    last = integer_step(network, [integer_step(network, first), *second[1:]])
    assert json.loads(after.read_text()) == {"theta.integers": [int(x) for x in last.ravel()]}
    assert proofs.steps[-1].after == vector_hash([int(x) for x in last.ravel()]).to_bytes(32)
    key = proofs.key.digest.hex()
    asked = ("zk", "exact", "verify", out, "--first-step", "7", "--task")
    assert pol(*asked, TASK) == Said(0, match=f"2 step(s) of task {TASK}, from step 7 hold")
    said = json.loads(pol(*asked, TASK, "--key", key, "--json").out)
    assert (said["task"], said["first_step"], said["after"]) == (TASK, 7, proofs.steps[-1].after.hex())
    for about in (("zk", "exact", "verify", out), (*asked, "ff" * 32), (*asked[:4], "--task", TASK)):
        assert pol(*about) == Said(1, match="aren't about")
    assert pol(*asked, TASK, "--key", "00" * 32) == Said(1, match="for the key")

    good = json.loads(out.read_bytes())

    def refused(why: str, raw: object) -> None:
        bent = tmp_path / "bent.json"
        bent.write_text(raw if isinstance(raw, str) else json.dumps(raw, sort_keys=True, separators=(",", ":")))
        assert pol("zk", "exact", "verify", bent, "--first-step", "7", "--task", TASK) == Said(1, match=why)

    one, two = good["steps"]
    refused("aren't about steps 7 to 8", {**good, "steps": [{**one, "context": two["context"]}, two]})
    moved = (int(one["context"], 16) % R + R).to_bytes(32).hex()  # the same number in the field
    refused("aren't about steps 7 to 8", {**good, "steps": [{**one, "context": moved}, two]})
    refused("the proof of step 0 does not hold", {**good, "steps": [{**one, "data": two["data"]}, two]})
    refused("the proof of step 1 does not hold", {**good, "steps": [one, {**two, "after": one["after"]}]})
    refused("step 1 doesn't begin with the vector", {**good, "steps": [one, one]})
    refused("1 to 65536 steps", {**good, "steps": []})
    refused("public numbers below", {**good, "steps": [{**one, "before": "ff" * 32}]})
    refused("32 bytes", {**good, "steps": [{**one, "before": "00"}]})
    refused("no verifying key", {**good, "key": "00"})
    refused("canonical", json.dumps(good, indent=1))
    refused("not exact proofs", "[]")
    refused("not exact proofs", "x")


def test_what_is_asked_for_wrongly(keys: Path, tmp_path: Path) -> None:
    about = ("--out", tmp_path / "steps.json", "--keys", keys)
    assert pol("zk", "exact", "prove", NAME, "--task", "0x12", *about) == Said(1, match="64 hex digits")
    assert pol("zk", "exact", "prove", "adamw", *about) == Said(1, match="leaves the range of 24 bits")
    (tmp_path / "in.json").write_text("[]")
    bad = ("--inputs", tmp_path / "in.json")
    assert pol("zk", "exact", "prove", NAME, *bad, *about) == Said(1, match="an object with a list of numbers")
    assert pol("zk", "exact", "verify", tmp_path / "none.json") == Said(3, match="can't read")
