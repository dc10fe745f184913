"""Proving gradient steps exactly: keys of a circuit, and proofs of many steps that follow each other."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pol.errors import ProtocolError
from pol.zk import native_process
from pol.zk.circuits import Circuit
from pol.zk.exact.circuit import require_exact
from pol.zk.exact.groth16 import Proof, VerifyingKey
from pol.zk.fixed_point import Integers, step
from pol.zk.network import StepNetwork
from pol.zk.poseidon import vector_hash


@dataclass(frozen=True)
class ExactKeys:
    """The folder of a circuit's keys. The operator of the setup may know a secret that forges proofs."""

    network: StepNetwork
    folder: Path

    @property
    def verifying_key(self) -> VerifyingKey:
        """The key of verifiers."""
        return VerifyingKey.decode((self.folder / "verifying.key").read_bytes())


@dataclass(frozen=True)
class ExactStep:
    """A proven step: hashes of the vector before, of the data, and of the vector after, and the proof."""

    before: bytes
    data: tuple[bytes, ...]
    after: bytes
    proof: Proof


@dataclass(frozen=True)
class ExactRun:
    """Proofs of steps that follow each other, the last vector, and what the proofs cost.

    ``loading_seconds``: of that, to read the proving key, once.
    """

    steps: tuple[ExactStep, ...]
    last: Integers
    seconds: float
    loading_seconds: float
    peak_bytes: int


def setup(circuit: Circuit, root: Path) -> ExactKeys:
    """The keys of a circuit, made once, of a secret that a process draws and forgets.

    Raises UnsupportedError if the exact circuit lacks an operation of the network, OperationalError without zksnake.
    """
    require_exact(circuit.network)
    folder = root / f"groth16-{circuit.network.digest.hex()}"
    folder.mkdir(parents=True, exist_ok=True)
    keys = ExactKeys(circuit.network, folder)
    if not (folder / "verifying.key").is_file():
        (folder / "network.json").write_bytes(circuit.network.to_json())
        native_process.call("exact_setup", None, folder=str(folder))
    return keys


def prove(keys: ExactKeys, first: Integers, data: Sequence[Sequence[Integers]], contexts: Sequence[bytes]) -> ExactRun:
    """Prove a sequence of steps: from the first vector, with the data of each step, each bound to its context.

    Raises ProtocolError if a step leaves the range of 24 bits, OperationalError if the process fails.
    """
    if len(data) != len(contexts):
        raise ProtocolError(f"{len(data)} steps have {len(contexts)} contexts")
    jobs, vectors = [], [first]
    for given, context in zip(data, contexts, strict=True):
        inputs = [vectors[-1], *given]
        vectors.append(step(keys.network, inputs))
        jobs.append({"context": context.hex(), "inputs": [[int(x) for x in array.ravel()] for array in inputs]})
    with tempfile.TemporaryDirectory(prefix="pol-zk-") as place:
        path = Path(place, "jobs.json")
        path.write_text(json.dumps(jobs))
        proved = native_process.call("exact_prove", None, folder=str(keys.folder), jobs=str(path))
    hashes = [_hash(vector) for vector in vectors]
    steps = tuple(
        ExactStep(hashes[i], tuple(map(_hash, data[i])), hashes[i + 1], Proof.decode(bytes.fromhex(proof)))
        for i, proof in enumerate(proved.result["proofs"])
    )
    return ExactRun(steps, vectors[-1], proved.seconds, proved.result["loading_seconds"], proved.peak_bytes)


def _hash(vector: Integers) -> bytes:
    return vector_hash([int(x) for x in vector.ravel()]).to_bytes(32)
