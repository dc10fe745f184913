"""Vectors of what Python and Solidity share about proofs; forge reads the same files.

Run this module to write them anew. A proof is another one every time: its file stays, and is verified.
"""

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from lab.json_rows import json_rows
from pol.arithmetic.primitives import Words
from pol.commitments.tensor import state_root
from pol.graph.tensor_type import DType, TensorType
from pol.zk.bn254 import R
from pol.zk.circuits import example_vectors, load_circuit
from pol.zk.exact import exact_prover, groth16
from pol.zk.fixed_point import dequantize, integers
from pol.zk.poseidon import permutation_table, vector_hash

VECTORS = Path(__file__).resolve().parents[2] / "fixtures" / "vectors"
CONTEXT = bytes(range(32))
EDGES = (0, 1, -1, (1 << 23) - 1, -(1 << 23))


def _drawn(random: Random, size: int) -> list[int]:
    return [
        random.choice(EDGES) if random.randrange(4) == 0 else random.randrange(-1 << 23, 1 << 23) for _ in range(size)
    ]


def hash_vectors() -> dict[str, Any]:
    """Sizes about the ends of elements and of what one permutation takes."""
    random = Random(9)
    vectors = [[], *([edge] for edge in EDGES), *(_drawn(random, size) for size in (2, 9, 10, 11, 19, 20, 21, 40, 178))]
    rows = [{"vector": [str(x) for x in vector], "hash": _hex(vector_hash(vector).to_bytes(32))} for vector in vectors]
    return {"constants": _hex(permutation_table()), "rows": rows}


def state_vectors() -> dict[str, Any]:
    """Vectors in tensors of several shapes: one word, whole leaves and parts of one."""
    random = Random(10)
    shapes: list[list[tuple[int, ...]]] = [[()], [(5,)], [(64,)], [(65,), (2, 3)], [(1, 1, 1)], [(8, 16), (), (2, 16)]]
    rows = []
    for scale, layout in zip((20, 12, 23, 0, 22, 20), shapes, strict=True):
        types = [TensorType(DType.F32, shape) for shape in layout]
        vectors = [integers(_drawn(random, type_.numel), type_.shape) for type_ in types]
        tensors: list[Words] = [dequantize(v, scale).astype(np.float32).view(np.uint32) for v in vectors]
        rows.append(
            {
                "types": _hex(b"".join(type_.encode() for type_ in types)),
                "words": _hex(b"".join(tensor.astype("<u4").tobytes() for tensor in tensors)),
                "scale": scale,
                "root": _hex(state_root(types, tensors)),
                "integers": [str(x) for vector in vectors for x in vector.ravel()],
            }
        )
    return {"rows": rows}


def proof_vectors() -> dict[str, Any]:
    """An exact proof of one step of the linear regression, by keys that were made for it."""
    circuit = load_circuit("linear_regression")
    inputs = example_vectors(circuit, 1)
    with tempfile.TemporaryDirectory() as folder:
        keys = exact_prover.setup(circuit, Path(folder))
        step = exact_prover.prove(keys, inputs[0], [inputs[1:]], [CONTEXT]).steps[0]
        return {
            "key": _hex(keys.verifying_key.encode()),
            "context": _hex(CONTEXT),
            "hashes": [_hex(x) for x in (step.before, *step.data, step.after)],
            "proof": _hex(step.proof.encode()),
        }


def _hex(data: bytes) -> str:
    return "0x" + data.hex()


@pytest.mark.parametrize(("name", "compute"), [("vector_hash", hash_vectors), ("vector_state", state_vectors)])
def test_the_file_is_what_python_computes(name: str, compute: Any) -> None:
    assert json.loads((VECTORS / f"{name}.json").read_text()) == compute()


def test_the_proof_of_the_file_holds() -> None:
    given = json.loads((VECTORS / "step_proof.json").read_text())
    raw = {name: bytes.fromhex(given[name][2:]) for name in ("key", "context", "proof")}
    hashes = [int(text, 16) for text in given["hashes"]]
    inputs = example_vectors(load_circuit("linear_regression"), 1)
    assert hashes[0] == vector_hash([int(x) for x in inputs[0].ravel()])
    key, proof = groth16.VerifyingKey.decode(raw["key"]), groth16.Proof.decode(raw["proof"])
    public = [int.from_bytes(raw["context"]) % R, *hashes]
    assert groth16.verify(key, proof, public)
    assert not groth16.verify(key, proof, [*public[:-1], public[-1] + 1])


if __name__ == "__main__":
    for name, compute in {
        "vector_hash": hash_vectors,
        "vector_state": state_vectors,
        "step_proof": proof_vectors,
    }.items():
        (VECTORS / f"{name}.json").write_text(json_rows(compute()))
