"""The process in which native provers work: ``python -m pol.zk.ezkl.worker``, one request of JSON on its input.

A process of its own, because panics of Rust are no exceptions, because EZKL holds the interpreter's lock for minutes,
and because it may crash when the interpreter ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from pol.zk.bn254 import R
from pol.zk.exact import groth16_prover
from pol.zk.exact.circuit import constraints
from pol.zk.exact.groth16_prover import ProvingKey
from pol.zk.fixed_point import integers
from pol.zk.network import StepNetwork


def main() -> None:
    """Serve one request; the answer is the last line of the output."""
    request = json.loads(sys.stdin.read())
    began = time.monotonic()
    answer: dict[str, Any]
    try:
        answer = {"result": CALLS[request["call"]](**request["arguments"])}
    except BaseException as error:  # noqa: BLE001  # a panic of Rust is no Exception
        answer = {"error": f"{type(error).__name__}: {error}"}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    answer["seconds"] = time.monotonic() - began
    answer["processor_seconds"] = usage.ru_utime + usage.ru_stime
    answer["peak_bytes"] = usage.ru_maxrss * 1024
    print("\n" + json.dumps(answer), flush=True)
    # Threads of EZKL's own runtime may crash the interpreter while it shuts down.
    os._exit(0)


def settings(model: str, out: str, visibility: str, scale: int, base: int, legs: int, logrows: int) -> dict[str, Any]:
    """Write the settings of a network's circuit; in their file the order of range checks doesn't depend on chance."""
    import ezkl

    # The type stubs of the package are wrong.
    arguments: Any = ezkl.PyRunArgs()
    arguments.input_visibility = arguments.output_visibility = visibility
    arguments.param_visibility = "fixed"
    arguments.input_scale = arguments.param_scale = scale
    arguments.scale_rebase_multiplier = 1
    arguments.decomp_base, arguments.decomp_legs = base, legs
    arguments.disable_freivalds = True
    arguments.ignore_range_check_inputs_outputs = True
    arguments.lookup_range = (0, 0)
    arguments.logrows = logrows
    ezkl.gen_settings(model, out, py_run_args=arguments)
    written: dict[str, Any] = json.loads(Path(out).read_text())
    written["required_range_checks"].sort()
    written["required_lookups"].sort(key=str)
    # The only other field that isn't a function of the network.
    written["timestamp"] = 0
    Path(out).write_text(json.dumps(written))
    return written


def compile_circuit(model: str, settings: str, out: str) -> None:
    """Write the circuit."""
    import ezkl

    ezkl.compile_circuit(model, out, settings)


def setup(circuit: str, verification_key: str, proving_key: str, reference_string: str) -> None:
    """Write both keys."""
    import ezkl

    setup: Any = ezkl.setup
    setup(circuit, verification_key, proving_key, reference_string)


def witness(inputs: str, circuit: str, out: str, verification_key: str | None, reference_string: str | None) -> None:
    """Write what the circuit computes; with a key, its commitments too."""
    import ezkl

    ezkl.gen_witness(inputs, circuit, out, verification_key, reference_string)


def prove(witness: str, circuit: str, proving_key: str, out: str, reference_string: str) -> None:
    """Write a proof."""
    import ezkl

    ezkl.prove(witness, circuit, proving_key, out, reference_string)


def verify(proof: str, settings: str, verification_key: str, reference_string: str) -> str | None:
    """None if a proof holds, else the reason."""
    import ezkl

    try:
        return None if ezkl.verify(proof, settings, verification_key, reference_string, reduced_srs=True) else "false"
    except RuntimeError as error:
        return str(error)


def verifier(verification_key: str, settings: str, reference_string: str, out: str, abi: str) -> None:
    """Write the Solidity source of the verifier. EZKL then looks for a compiler, which is not needed."""
    import ezkl

    async def write() -> None:
        await ezkl.create_evm_verifier(verification_key, settings, out, abi, reference_string, reusable=False)

    try:
        asyncio.run(write())
    except RuntimeError as error:
        if not Path(out).is_file() or not any(word in str(error) for word in ("svm", "solc")):
            raise


def exact_setup(folder: str) -> None:
    """Write proving and verifying key of the network in a folder."""
    place = Path(folder)
    network = StepNetwork.from_json((place / "network.json").read_bytes())
    proving, verifying = groth16_prover.setup(constraints(network))
    (place / "proving.key").write_bytes(proving.encode())
    (place / "verifying.key.part").write_bytes(verifying.encode())
    (place / "verifying.key.part").replace(place / "verifying.key")


def exact_prove(folder: str, jobs: str) -> dict[str, Any]:
    """Proofs of all jobs in a file, in hex."""
    place = Path(folder)
    network = StepNetwork.from_json((place / "network.json").read_bytes())
    began = time.monotonic()
    key = ProvingKey.read(place / "proving.key")
    loading = time.monotonic() - began
    proofs = []
    for job in json.loads(Path(jobs).read_text()):
        given = zip(job["inputs"], network.nodes, strict=False)
        inputs = [integers(values, node.shape) for values, node in given]
        system = constraints(network, inputs, int(job["context"], 16) % R)
        proofs.append(groth16_prover.prove(system, key).encode().hex())
    return {"proofs": proofs, "loading_seconds": loading}


CALLS = {
    call.__name__: call
    for call in (settings, compile_circuit, setup, witness, prove, verify, verifier, exact_setup, exact_prove)
}

if __name__ == "__main__":
    main()
