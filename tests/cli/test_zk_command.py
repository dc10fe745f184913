"""``pol zk``: from keys to proofs that follow each other, and to verifiers on a node."""

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
from pol.chain.node.connection import Connection
from pol.zk.circuits import load_circuit
from pol.zk.example import example_vectors
from pol.zk.ezkl.gradient_proof import GradientProof, Visibility
from pol.zk.ezkl.keys import setup
from pol.zk.ezkl.reference_string import TEST_CHAINS, TEST_ONLY_SECRET
from pol.zk.ezkl.verifier_contract import bytecode, compiler

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
