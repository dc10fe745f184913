"""Proving and verifying gradient steps with EZKL."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.errors import OperationalError, ProtocolError
from pol.zk import native_process
from pol.zk.bn254 import from_field, to_field
from pol.zk.circuits import Visibility
from pol.zk.ezkl.gradient_proof import GradientProof
from pol.zk.ezkl.keys import Keys
from pol.zk.fixed_point import Integers, integer_step, integers

MAX_MAGNITUDE = 1 << 126
"""Integers of a witness are below this: EZKL reads no larger ones."""


@dataclass(frozen=True)
class ProvenStep:
    """A proof, the vector after the step (the prover's secret unless it is public), and what the proof cost."""

    proof: GradientProof
    after: Integers
    seconds: float
    processor_seconds: float
    peak_bytes: int


def prove(keys: Keys, inputs: Sequence[Integers]) -> ProvenStep:
    """Prove the step on the given vectors: integers at the network's scale, in the network's order.

    Raises ProtocolError if the step has no result by the integer rule, OperationalError if EZKL can't prove it, as when
    a number is too large for the circuit's digits, or computes something else.
    """
    network = keys.circuit.network
    expected = integer_step(network, inputs)
    if any(abs(int(value)) >= MAX_MAGNITUDE for array in [*inputs, expected] for value in array.ravel()):
        raise ProtocolError("a number is too large to be proved")
    with tempfile.TemporaryDirectory(prefix="pol-zk-") as place:
        folder = Path(place)
        data = [[to_field(int(value)).to_bytes(32, "little").hex() for value in array.ravel()] for array in inputs]
        (folder / "inputs.json").write_text(json.dumps({"input_data": data}))
        commits = keys.visibility is Visibility.COMMITTED
        computed = native_process.call(
            "witness",
            inputs=str(folder / "inputs.json"),
            circuit=keys.file("circuit.ezkl"),
            out=str(folder / "witness.json"),
            verification_key=keys.file("verification.key") if commits else None,
            reference_string=str(keys.reference_string) if commits else None,
        )
        witness = json.loads((folder / "witness.json").read_bytes())
        after = integers([_integer(element) for element in witness["outputs"][0]], expected.shape)
        if (after != expected).any():
            raise OperationalError("EZKL computed another step than the integer rule: report this with the inputs")
        proved = native_process.call(
            "prove",
            witness=str(folder / "witness.json"),
            circuit=keys.file("circuit.ezkl"),
            proving_key=keys.file("proving.key"),
            out=str(folder / "proof.json"),
            reference_string=str(keys.reference_string),
        )
        raw = json.loads((folder / "proof.json").read_bytes())
    proof = GradientProof(
        keys.circuit.name,
        keys.name,
        keys.visibility,
        len(network.inputs) + 1,
        tuple(int.from_bytes(bytes.fromhex(element), "little") for element in raw["instances"][0] or ()),
        bytes(raw["proof"]),
    )
    return ProvenStep(
        proof,
        after,
        computed.seconds + proved.seconds,
        computed.processor_seconds + proved.processor_seconds,
        max(computed.peak_bytes, proved.peak_bytes),
    )


def verify(keys: Keys, proof: GradientProof) -> None:
    """Raises ProtocolError unless the proof holds for these keys, OperationalError if it could not be checked."""
    if proof.keys != keys.name or proof.visibility is not keys.visibility:
        raise ProtocolError(f"the proof is for the keys {proof.keys[:16]}, not for {keys.name[:16]}")
    if proof.vectors != len(keys.circuit.network.inputs) + 1:
        raise ProtocolError(f"a proof of {keys.circuit.name} is over {len(keys.circuit.network.inputs) + 1} vectors")
    with tempfile.TemporaryDirectory(prefix="pol-zk-") as place:
        path = Path(place, "proof.json")
        path.write_text(json.dumps(_ezkl_form(proof)))
        proved = native_process.call(
            "verify",
            proof=str(path),
            settings=keys.file("settings.json"),
            verification_key=keys.file("verification.key"),
            reference_string=str(keys.reference_string),
        )
    if proved.result is not None:
        raise ProtocolError(f"the proof does not hold: {proved.result}")


def _ezkl_form(proof: GradientProof) -> dict[str, Any]:
    """The file that EZKL reads. Its second copy of the proof is left out, as it is never verified."""
    return {
        "protocol": None,
        "instances": [[instance.to_bytes(32, "little").hex() for instance in proof.instances]],
        "proof": list(proof.proof),
        "hex_proof": None,
        "split": None,
        "pretty_public_inputs": None,
        "timestamp": None,
        "version": None,
    }


def _integer(element: str) -> int:
    return from_field(int.from_bytes(bytes.fromhex(element), "little"))
