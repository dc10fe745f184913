"""Proving gradient steps exactly: keys of a circuit, and proofs of many steps that follow each other."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pol.errors import ProtocolError
from pol.zk import native_process
from pol.zk.bn254 import R
from pol.zk.circuits import Circuit
from pol.zk.exact.circuit import public_inputs
from pol.zk.exact.groth16 import Proof, VerifyingKey
from pol.zk.fixed_point import Integers, integer_step
from pol.zk.network import StepNetwork


@dataclass(frozen=True)
class ExactKeys:
    """The folder of a circuit's keys. The operator of the setup may know a secret that forges proofs."""

    network: StepNetwork
    folder: Path

    @property
    def are_made(self) -> bool:
        """Whether a setup has written them: the verifying key comes last."""
        return (self.folder / "verifying.key").is_file()

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
    """The keys of a circuit, made once, of a secret that a process draws and forgets."""
    keys = _keys(circuit, root)
    keys.folder.mkdir(parents=True, exist_ok=True)
    if not keys.are_made:
        (keys.folder / "network.json").write_bytes(circuit.network.to_json())
        native_process.call("exact_setup", None, folder=str(keys.folder))
    return keys


def made_keys(circuit: Circuit, root: Path) -> ExactKeys | None:
    """The keys of a circuit that `setup` has made in a folder; None if there are none."""
    keys = _keys(circuit, root)
    return keys if keys.are_made else None


def _keys(circuit: Circuit, root: Path) -> ExactKeys:
    return ExactKeys(circuit.network, root / f"groth16-{circuit.network.digest.hex()}")


def prove(
    keys: ExactKeys,
    first: Integers,
    data: Sequence[Sequence[Integers]],
    contexts: Sequence[bytes],
    timeout: float | None = None,
) -> ExactRun:
    """Prove a sequence of steps: from the first vector, with the data of each step, each bound to its context.

    Raises ProtocolError if a step leaves the range of 24 bits, OperationalError if the process fails or takes longer
    than ``timeout`` (seconds; an hour if none is given).
    """
    if len(data) != len(contexts):
        raise ProtocolError(f"{len(data)} steps have {len(contexts)} contexts")
    jobs, hashes, last = [], list[list[bytes]](), first
    for given, context in zip(data, contexts, strict=True):
        inputs = [last, *given]
        # A number of more than 24 bits is found here, before the key is read.
        _, *public = public_inputs(keys.network, inputs, int.from_bytes(context) % R)
        hashes.append([number.to_bytes(32) for number in public])
        last = integer_step(keys.network, inputs)
        jobs.append({"context": context.hex(), "inputs": [[int(x) for x in array.ravel()] for array in inputs]})
    with tempfile.TemporaryDirectory(prefix="pol-zk-") as place:
        path = Path(place, "jobs.json")
        path.write_text(json.dumps(jobs))
        proved = native_process.call("exact_prove", timeout, folder=str(keys.folder), jobs=str(path))
    steps = tuple(
        ExactStep(before, tuple(given), after, Proof.decode(bytes.fromhex(proof)))
        for (before, *given, after), proof in zip(hashes, proved.result["proofs"], strict=True)
    )
    return ExactRun(steps, last, proved.seconds, proved.result["loading_seconds"], proved.peak_bytes)
