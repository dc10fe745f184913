"""Write circuits/NAME/manifest.json, the keys of the test string.

``PYTHONPATH=tests python -m lab.zk_manifest DIR [NAME...]``
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lab.json_rows import json_rows
from pol.commitments import canonical_json
from pol.zk.circuits import MANIFEST, Circuit, example_vectors, folder, load_circuit, names
from pol.zk.ezkl import ezkl_prover
from pol.zk.ezkl.keys import KeySummary, setup


def recorded(circuit: Circuit) -> KeySummary:
    """What the manifest of one of pol's circuits says of its keys."""
    raw = canonical_json.parse((folder() / circuit.name / MANIFEST).read_bytes(), MANIFEST)
    del raw["costs"]
    return KeySummary(**raw)


def main(root: Path, chosen: Sequence[str]) -> None:
    """Set up, prove once and write the manifest of each circuit."""
    for name in chosen or names():
        circuit = load_circuit(name)
        keys = setup(circuit, root)
        proven = ezkl_prover.prove(keys, example_vectors(circuit, 1))
        costs = {
            "prove_seconds": round(proven.seconds, 1),
            "prove_processor_seconds": round(proven.processor_seconds, 1),
            "prove_gib": round(proven.peak_bytes / 2**30, 2),
            "proof_bytes": len(proven.proof.proof),
        }
        (folder() / name / MANIFEST).write_text(json_rows({**asdict(keys.summary), "costs": costs}))
        print(f"{name}: {costs}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
