"""``pol zk``: from keys to proofs that follow each other, and to verifiers on a node.

``pol zk exact``: files of exact proofs, bound to a task, and what is no such file.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from py_ecc import optimized_bn128 as curve
from test_deploy import KEY

from anvil_node import anvil_node
from cli_runner import Said, pol
from pol.chain.account.signers import LocalSigner
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.court.step_verifiers import StepVerifier, deploy_generated
from pol.chain.desks.proven_steps import context_of
from pol.chain.node.connection import Connection
from pol.zk.bn254 import R
from pol.zk.circuits import example_vectors, load_circuit
from pol.zk.exact.exact_proof_file import ExactProofs
from pol.zk.ezkl.gradient_proof import GradientProof, Visibility
from pol.zk.ezkl.keys import bytecode, compiler, setup
from pol.zk.ezkl.reference_string import TEST_CHAINS, TEST_ONLY_SECRET
from pol.zk.fixed_point import integer_step
from pol.zk.poseidon import vector_hash

ROOT = Path(__file__).parents[2]
NAME = "linear_regression"
pytest.importorskip("ezkl")
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("keys")
    said = pol("zk", "setup", NAME, "--keys", root)
    assert said == Said(0, match="TEST ONLY")
    assert said == Said(0, match="next: pol zk prove")
    return root


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with anvil_node() as url:
        yield url


def test_two_proofs_follow_each_other(keys: Path, tmp_path: Path) -> None:
    first, second, after = tmp_path / "1.json", tmp_path / "2.json", tmp_path / "next.json"
    about = ("--keys", keys, "--json")
    pol("zk", "prove", NAME, "--seed", "1", "--out", first, "--next", after, *about)
    assert after.stat().st_mode & 0o777 == 0o600
    circuit = load_circuit(NAME)
    batch = {
        f"{name}.integers": [int(x) for x in vector.ravel()]
        for name, vector in zip(circuit.network.inputs, example_vectors(circuit, 2), strict=True)
    }
    (tmp_path / "in.json").write_text(json.dumps(batch | json.loads(after.read_text())))
    report = json.loads(
        pol("zk", "prove", NAME, "--inputs", tmp_path / "in.json", "--out", second, *about).out[:-1].split("\n", 1)[1]
    )
    assert report["commitments"][0] == GradientProof.from_json(first.read_bytes()).after.hex()
    assert pol("zk", "verify", first, second, "--keys", keys) == Said(0, match="2 proof(s) hold")
    assert pol("zk", "verify", second, first, "--keys", keys) == Said(1, match="doesn't begin with the vector")
    first.write_text(first.read_text().replace('"proof":"', '"proof":"00'))
    assert pol("zk", "verify", first, "--keys", keys) == Said(1, match="does not hold")
    first.write_text("{")
    assert pol("zk", "verify", first, "--keys", keys) == Said(1, match="not a proof of a gradient step")


def test_what_is_not_there_is_said(keys: Path, tmp_path: Path) -> None:
    assert pol("zk", "setup", "nothing", "--keys", keys) == Said(3, match="pol has adamw")
    assert pol("zk", "verify", tmp_path / "none", "--keys", keys) == Said(3, match="can't read")
    assert pol("zk", "circuits") == Said(0, match="transformer")
    wrong = pol("zk", "setup", NAME, "--keys", keys, "--visibility", "polycommit")
    assert wrong == Said(1, match="is made for hashed, public")


def test_a_generated_verifier_on_a_node(keys: Path, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what EZKL says off the chain; its runtime code fits a chain with room to spare."""
    monkeypatch.setenv("DEPLOYER_KEY", KEY)
    made = pol("zk", "deploy", NAME, "--rpc", node, "--keys", keys, "--key-env", "DEPLOYER_KEY", "--json")
    report = json.loads(made.out[made.out.index("{") :])
    assert report["bytes"] < 20_000
    proofs = []
    for seed in ("1", "2"):
        pol("zk", "prove", NAME, "--seed", seed, "--out", tmp_path / "proof.json", "--keys", keys, "--json")
        proofs.append(GradientProof.from_json((tmp_path / "proof.json").read_bytes()))
    proof, other = proofs
    verifier = StepVerifier(Connection.to(node), report["verifier"])
    assert verifier.holds(bytes(32), proof.commitments, proof.proof)
    assert verifier.read("exact") is False
    for hashes, points in (
        (other.commitments, proof.proof),
        (proof.commitments, other.proof),
        (proof.commitments[::-1], proof.proof),
        (proof.commitments[:-1], proof.proof),
        (proof.commitments, proof.proof[:-32]),
        (proof.commitments, bytes(len(proof.proof))),
        (proof.commitments, b""),
    ):
        with pytest.raises(Reverted):
            verifier.holds(bytes(32), hashes, points)


def test_keys_for_tests_stay_on_test_chains(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody forges proofs for them: the command refuses before it sends anything, and the contract whoever sends."""
    monkeypatch.setenv("DEPLOYER_KEY", KEY)
    with anvil_node("--chain-id", "11155111") as url:
        said = pol("zk", "deploy", NAME, "--rpc", url, "--keys", keys, "--key-env", "DEPLOYER_KEY")
        assert said == Said(1, match="chain 11155111 is no test chain: name a ceremony's file with --ceremony")
        connection = Connection.to(url)
        code, _ = bytecode(setup(load_circuit(NAME), keys, Visibility.HASHED), compiler())
        with pytest.raises(Reverted, match="TestOnly"):
            deploy_generated(Wallet(connection, LocalSigner(bytes.fromhex(KEY.removeprefix("0x")))), code)


def test_the_contract_knows_the_string_for_tests() -> None:
    guard = (ROOT / "contracts" / "zk" / "EzklStepVerifier.sol").read_text()
    point, _ = curve.normalize(curve.multiply(curve.G2, TEST_ONLY_SECRET))
    assert f"TEST_ONLY = 0x{int(point.coeffs[1]):064x};" in guard
    assert all(str(chain) in guard for chain in TEST_CHAINS)


def test_an_exact_verifier_on_a_node(keys: Path, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYER_KEY", KEY)
    said = pol("zk", "deploy", NAME, "--exact", "--rpc", node, "--keys", keys, "--key-env", "DEPLOYER_KEY")
    assert said == Said(0, match="verifier of linear_regression: 0x")


TASK = "0x" + "ab" * 32


@pytest.fixture(scope="module")
def exact_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


def inputs(seed: int, skip: int = 0) -> dict[str, list[int]]:
    network = load_circuit(NAME).network
    pairs = [*zip(network.inputs, example_vectors(load_circuit(NAME), seed), strict=True)]
    return {f"{name}.integers": [int(x) for x in vector.ravel()] for name, vector in pairs[skip:]}


def test_steps_of_a_task(exact_keys: Path, tmp_path: Path) -> None:
    given, out, after = [tmp_path / f"{i}.json" for i in range(2)], tmp_path / "steps.json", tmp_path / "next.json"
    for seed, path in enumerate(given):
        path.write_text(json.dumps(inputs(seed, skip=seed)))
    files = [part for path in given for part in ("--inputs", path)]
    about = ("--task", TASK, "--first-step", "7", "--out", out, "--next", after, "--keys", exact_keys)
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


def test_what_is_asked_for_wrongly(exact_keys: Path, tmp_path: Path) -> None:
    about = ("--out", tmp_path / "steps.json", "--keys", exact_keys)
    assert pol("zk", "exact", "prove", NAME, "--task", "0x12", *about) == Said(1, match="64 hex digits")
    assert pol("zk", "exact", "prove", "adamw", *about) == Said(1, match="leaves the range of 24 bits")
    (tmp_path / "in.json").write_text("[]")
    bad = ("--inputs", tmp_path / "in.json")
    assert pol("zk", "exact", "prove", NAME, *bad, *about) == Said(1, match="an object with a list of numbers")
    assert pol("zk", "exact", "verify", tmp_path / "none.json") == Said(3, match="can't read")
