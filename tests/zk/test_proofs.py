"""Proofs by EZKL and by Groth16, their files, keys and pins; what is bent is refused and nothing dies."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from proven_market import STEPS, Training, training
from py_ecc import optimized_bn128 as curve

from lab.zk_manifest import recorded
from pol.arithmetic.primitives import Words
from pol.chain.desks.proven_steps import PinnedProofs
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.proof_pins import batches, require_pin
from pol.zk import native_process
from pol.zk.bn254 import G1, G2, Q, R, montgomery, scalars
from pol.zk.circuits import Visibility, example_vectors, load_circuit, read_inputs
from pol.zk.exact import _bn254, exact_prover, groth16
from pol.zk.exact.circuit import public_inputs
from pol.zk.ezkl import ezkl_prover, reference_string
from pol.zk.ezkl.gradient_proof import GradientProof
from pol.zk.ezkl.keys import Keys, setup
from pol.zk.fixed_point import integer_step
from pol.zk.network_program import step_program, tensor_types
from pol.zk.poseidon import poseidon, vector_hash

CIRCUIT = "linear_regression"


def ezkl_hash(elements: Sequence[int]) -> int:
    """EZKL's hash of a vector of field elements: a sponge of width 2 that absorbs one at a time."""
    permutation = poseidon(2, 56)
    state = [0, 1 << 64]
    for element in elements:
        state[0] = (state[0] + element) % R
        state = permutation.permute(state)
    return state[0]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    pytest.importorskip("ezkl")
    return setup(load_circuit(CIRCUIT), tmp_path_factory.mktemp("keys"))


@pytest.mark.long
def test_a_chain_of_proofs(keys: Keys) -> None:
    """Hash by hash; each hash is that of the integers, by our own Poseidon."""
    theta, before = example_vectors(keys.circuit, 0)[0], None
    for seed in range(3):
        data = example_vectors(keys.circuit, seed)[1:]
        proven = ezkl_prover.prove(keys, [theta, *data])
        ezkl_prover.verify(keys, proven.proof)
        vectors = [theta, *data, proven.after]
        hashes = [ezkl_hash([int(x) % R for x in vector.ravel()]) for vector in vectors]
        assert list(proven.proof.instances) == hashes
        assert before in {None, proven.proof.before}
        theta, before = proven.after, proven.proof.after


@pytest.mark.long
def test_bent_proofs_are_refused(keys: Keys) -> None:
    proof = ezkl_prover.prove(keys, example_vectors(keys.circuit, 1)).proof
    other = ezkl_prover.prove(keys, example_vectors(keys.circuit, 2)).proof
    swapped = (*proof.instances[:-1], other.instances[-1])
    for bad in (
        replace(proof, instances=swapped),
        replace(proof, instances=proof.instances[::-1]),
        replace(proof, proof=other.proof),
        replace(proof, proof=proof.proof[:-1]),
        replace(proof, proof=bytes(len(proof.proof))),
        replace(proof, proof=b"\xff" * len(proof.proof)),
        replace(proof, proof=proof.proof[:-1] + bytes([proof.proof[-1] ^ 1])),
    ):
        with pytest.raises(ProtocolError, match="does not hold"):
            ezkl_prover.verify(keys, bad)
    with pytest.raises(ProtocolError, match="is for the keys"):
        ezkl_prover.verify(keys, replace(proof, keys="00"))
    with pytest.raises(ProtocolError, match="as many hashes"):
        replace(proof, instances=proof.instances[:-1])
    data = proof.to_json()
    assert GradientProof.from_json(data) == proof
    for file in (
        b"{}",
        b"[1]",
        data[:-1],
        data.replace(b"hashed", b"hidden"),
        data.replace(b'"version":1', b'"version":2'),
    ):
        with pytest.raises(ProtocolError):
            GradientProof.from_json(file)


@pytest.mark.long
def test_setting_up_goes_on_where_it_stopped_and_repeats_itself(keys: Keys, tmp_path: Path) -> None:
    """The verification key depends on the circuit and the reference string alone."""
    again = setup(load_circuit(CIRCUIT), tmp_path)
    assert (again.name, again.summary) == (keys.name, keys.summary)
    assert again.is_test_only
    for name in ("summary.json", "verification.key", "verifier.sol"):
        (again.folder / name).unlink()
    stages: list[str] = []
    assert (
        setup(load_circuit(CIRCUIT), tmp_path, progress=lambda stage, done, of: stages.append(stage)).summary
        == keys.summary
    )
    assert "reference string" not in stages


def test_a_ceremony_is_taken(keys: Keys, tmp_path: Path) -> None:
    """A powers-of-tau file in the ceremonies' order gives halo2's order: here of the test string's secret."""
    logrows = keys.circuit.logrows_of(keys.visibility)
    ptau = tmp_path / "test.ptau"
    ptau.write_bytes(powers_of_tau(reference_string.TEST_ONLY_SECRET, logrows))
    made = tmp_path / "made.srs"
    reference_string.write_from_ceremony(made, ptau, logrows)
    assert made.read_bytes() == keys.reference_string.read_bytes()
    with pytest.raises(ProtocolError, match="fewer than"):
        reference_string.write_from_ceremony(made, ptau, logrows + 1)
    ptau.write_bytes(b"something else")
    with pytest.raises(ProtocolError, match="no powers-of-tau file"):
        reference_string.write_from_ceremony(made, ptau, logrows)
    assert not list(tmp_path.glob("*.part"))


def powers_of_tau(secret: int, logrows: int) -> bytes:
    """A ceremony's file, with every section that is read."""

    def points(multiples: list[int]) -> bytes:
        return _bn254.multiples(1, montgomery(G1), scalars(multiples))

    def lagrange(power: int) -> list[int]:
        rows, root = 1 << power, pow(5, (R - 1) >> power, R)
        vanishing = (pow(secret, rows, R) - 1) * pow(rows, -1, R) % R
        return [vanishing * pow(root, i, R) * pow(secret - pow(root, i, R), -1, R) % R for i in range(rows)]

    sections = {
        2: points([pow(secret, i, R) for i in range(1 << logrows)]),
        3: _bn254.multiples(2, montgomery(G2), scalars([1, secret])),
        12: b"".join(points(lagrange(power)) for power in range(logrows + 1)),
    }
    body = b"".join(struct.pack("<IQ", kind, len(data)) + data for kind, data in sections.items())
    return b"ptau" + struct.pack("<II", 1, len(sections)) + body


def test_no_native_failure_ends_this_process(keys: Keys, tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="witness failed"):
        native_process.call(
            "witness", None, inputs="nowhere", circuit=keys.file("circuit.ezkl"), out="w",
            verification_key=None, reference_string=None,
        )  # fmt: skip
    with pytest.raises(OperationalError, match="longer than 0 s"):
        native_process.call("exact_setup", 1e-6, folder="nowhere")
    theta, *rest = example_vectors(keys.circuit, 1)
    # Larger than the circuit's digits: EZKL has no witness.
    with pytest.raises(OperationalError, match=r"failed.*scale the data down"):
        ezkl_prover.prove(keys, [theta << 60, *rest])
    with pytest.raises(ProtocolError, match="too large"):
        ezkl_prover.prove(keys, [theta << 200, *rest])
    (tmp_path / "in.json").write_text('{"theta": [1, 2]}')
    with pytest.raises(ProtocolError, match="theta is a list of 5 numbers"):
        read_inputs(keys.circuit, tmp_path / "in.json")


def test_hashes_are_the_published_ones() -> None:
    """Of circomlib, for width 3; EZKL's is compared in the chain of proofs."""
    expected = 0x115CC0F5E7D690413DF64C6B9662E9CF2A3617F2743245519E19607A4417189A
    assert poseidon(3, 57).permute([0, 1, 2])[0] == expected
    assert vector_hash([0]) != vector_hash([0, 0])
    with pytest.raises(ValueError, match="24 bits"):
        vector_hash([1 << 23])


@pytest.mark.long
def test_an_exact_proof_by_the_reference_pairing(tmp_path: Path) -> None:
    circuit = load_circuit(CIRCUIT)
    made = exact_prover.setup(circuit, tmp_path)
    inputs = example_vectors(circuit, 1)
    run = exact_prover.prove(made, inputs[0], [inputs[1:]], [b"\1" * 32])
    assert (run.last == integer_step(circuit.network, inputs)).all()
    assert exact_prover.made_keys(circuit, tmp_path) == made
    assert exact_prover.made_keys(circuit, tmp_path / "elsewhere") is None
    with pytest.raises(ProtocolError, match=r"leaves the range of 24 bits.*scale the data down"):
        exact_prover.prove(made, inputs[0] << 24, [inputs[1:]], [b"\1" * 32])
    with pytest.raises(OperationalError, match="took longer than 0 s and was stopped"):
        exact_prover.prove(made, inputs[0], [inputs[1:]], [b"\1" * 32], timeout=0.01)
    key, proof = made.verifying_key, run.steps[0].proof
    public = public_inputs(circuit.network, inputs, int.from_bytes(b"\1" * 32) % R)
    assert groth16.verify(key, proof, public)
    for place in range(len(public)):
        bent = [*public]
        bent[place] = (bent[place] + 1) % R
        assert not groth16.verify(key, proof, bent)
    assert groth16.Proof.decode(proof.encode()) == proof
    assert groth16.VerifyingKey.decode(key.encode()) == key
    x, y = curve.normalize(curve.multiply(curve.G1, 5))
    assert not groth16.verify(key, replace(proof, a=(int(x), int(y))), public)
    with pytest.raises(ProtocolError, match="not on the curve"):
        groth16.verify(key, replace(proof, a=(1, 1)), public)
    with pytest.raises(ProtocolError, match="second group"):
        groth16.verify(key, replace(proof, b=(1, 2, 3, 4)), public)
    with pytest.raises(ProtocolError, match="public numbers"):
        groth16.verify(key, proof, public[:-1])
    with pytest.raises(ProtocolError, match="below"):
        replace(proof, a=(Q, 1))


@pytest.mark.long
def test_visibilities_that_show_or_commit(keys: Keys) -> None:
    public = setup(keys.circuit, keys.folder.parent, Visibility.PUBLIC)
    inputs = example_vectors(keys.circuit, 1)
    proven = ezkl_prover.prove(public, inputs)
    ezkl_prover.verify(public, proven.proof)
    shown = [int(x) % R for vector in [*inputs, proven.after] for x in vector.ravel()]
    assert list(proven.proof.instances) == shown
    with pytest.raises(ProtocolError, match="no commitments"):
        proven.proof.before  # noqa: B018  # it is the property that is asked


def test_keys_are_those_of_the_manifest(keys: Keys) -> None:
    assert keys.summary == recorded(keys.circuit)


@pytest.fixture(scope="module")
def given() -> Training:
    return training()


def constants(given: Training) -> list[Words]:
    return list(given.traces[0].constants)


def honest(given: Training) -> PinnedProofs:
    layout = keccak256(tensor_types(given.network))
    return PinnedProofs("0x" + "11" * 20, given.batches.root(), layout, given.network.scale)


def test_an_honest_pin_is_taken(given: Training) -> None:
    require_pin(honest(given), given.traces[0].program, constants(given), STEPS, given.network)
    assert batches(constants(given), STEPS, given.network).root() == given.batches.root()


def test_whatever_else_is_pinned_is_refused(given: Training) -> None:
    """A trusted verifier alone says nothing: true proofs of another training would end the disputes of this one."""
    pin, program, data = honest(given), given.traces[0].program, constants(given)
    for changed, told in (
        (replace(pin, batches=training(seed=2).batches.root()), "other data"),
        (replace(pin, layout=keccak256(b"other")), "other types"),
        (replace(pin, scale=pin.scale - 1), "a scale of"),
    ):
        with pytest.raises(ProtocolError, match=told):
            require_pin(changed, program, data, STEPS, given.network)
    with pytest.raises(ProtocolError, match="another step than the task's program"):
        require_pin(pin, step_program(given.network, STEPS + 1), data, STEPS, given.network)
    with pytest.raises(ProtocolError, match="another step than the task's program"):
        require_pin(pin, program, data, STEPS, load_circuit("momentum").network)
    with pytest.raises(ProtocolError, match="has no program"):
        require_pin(pin, program, data, STEPS, load_circuit("adamw").network)


def test_data_that_are_no_numbers_of_fixed_point(given: Training) -> None:
    data = constants(given)
    data[0] = data[0].copy()
    data[0].flat[0] = np.float32(2.0**-40).view(np.uint32)
    with pytest.raises(ProtocolError, match="step 0 hold"):
        batches(data, STEPS, given.network)
