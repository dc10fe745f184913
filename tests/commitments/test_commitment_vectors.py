"""Hashes, trees, tensors, lists and a program, as docs/spec/commitments.md says; forge reads the same file.

The file is computed by the plain implementation here and in `test_merkle`, which shares no code with the package; that
of receipts of execution beside it by the package. Run this module to write both anew.
"""

import json
import random
import struct
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_merkle import PAD, H, plain_levels, plain_tensor_leaves

import instruction_sets
from lab.json_rows import json_rows
from pol.commitments import _hashing, merkle
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import ProgramCommitment, header_hash
from pol.commitments.receipt import RECEIPT_NODES, receipt_nodes, receipt_of, receipt_seed
from pol.commitments.tensor import (
    ListTag,
    constants_root,
    list_root,
    state_root,
    tensor_leaves,
    tensor_root,
    tensor_tree,
)
from pol.graph.node import Node
from pol.graph.step_program import Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.rules

TESTS = Path(__file__).resolve().parents[1]
FILE = TESTS.parent / "fixtures" / "vectors" / "commitments.json"
SIZES = (*range(1, 21), 33)
SHAPES = [
    (), (1,), (63,), (64,), (65,), (128,), (129,), (1, 1), (7, 9), (8, 8), (5, 13), (17, 41), (1, 1, 1),
    (2, 3, 4), (4, 4, 4), (3, 7, 11),
]  # fmt: skip
LISTS = [[0], [3, 4], [1, 5, 9], [8, 7, 6, 5, 4], list(range(17)), list(range(32))]

# --- the specification once more --------------------------------------------------------------------------------------


def tree(leaves: list[bytes]) -> bytes:
    return plain_levels(leaves)[-1][0]


def branch(leaves: list[bytes], index: int) -> list[bytes]:
    return [level[index >> height ^ 1] for height, level in enumerate(plain_levels(leaves)[:-1])]


def descriptor(dtype: int, shape: tuple[int, ...]) -> bytes:
    return struct.pack(f">BB{len(shape)}I", dtype, len(shape), *shape)


def list_hash(tag: int, roots: list[bytes]) -> bytes:
    return H(struct.pack(">BI", tag, len(roots)) + tree(roots))


# --- the file ---------------------------------------------------------------------------------------------------------


def text(data: bytes) -> str:
    return "0x" + data.hex()


def texts(items: list[bytes]) -> list[str]:
    return [text(item) for item in items]


def tensors() -> list[dict[str, Any]]:
    """Each shape in both types."""
    source = random.Random("tensors")
    result = []
    for shape in SHAPES:
        for dtype in (1, 2):
            words = [source.getrandbits(32) for _ in range(prod(shape))]
            leaves = plain_tensor_leaves(struct.pack(f"<{len(words)}I", *words))
            type_ = descriptor(dtype, shape)
            result.append(
                {
                    "dtype": dtype,
                    "shape": list(shape),
                    "descriptor": text(type_),
                    "words": words,
                    "leaves": texts(leaves),
                    "tree": text(tree(leaves)),
                    "root": text(H(b"\x02" + type_ + tree(leaves))),
                }
            )
    return result


def program_vectors(program: StepProgram) -> dict[str, Any]:
    """The descriptors as they are encoded, and all that is hashed over them."""
    parts = [[item.encode() for item in items] for items in (program.nodes, program.slots, program.constants)]
    hashed = [[H(tag + item) for item in part] for tag, part in zip((b"\x04", b"\x05", b"\x09"), parts, strict=True)]
    header = struct.pack(">4I", 1, *map(len, parts)) + b"".join(tree(part) for part in hashed)
    return {
        **{name: texts(part) for name, part in zip(("nodes", "slots", "constants"), parts, strict=True)},
        "node_branches": [texts(branch(hashed[0], i)) for i in range(len(hashed[0]))],
        "slot_branches": [texts(branch(hashed[1], i)) for i in range(len(hashed[1]))],
        "header": text(header),
        "hash": text(H(b"\x06" + header)),
    }


def vectors() -> dict[str, Any]:
    # Not at the top: a module that runs as a script finds it only after `tests` has been put on the path.
    import toy_program

    source = random.Random("commitments")
    pad = [PAD]
    while len(pad) < 9:
        pad.append(H(b"\x01" + pad[-1] + pad[-1]))
    pairs = [(bytes(32), bytes(32)), (bytes(32), pad[0]), (pad[0], bytes(32))]
    pairs += [(source.randbytes(32), source.randbytes(32)) for _ in range(5)]
    data = [bytes(256), bytes(255) + b"\x01", b"\xff" * 256, bytes(range(256)), source.randbytes(256)]
    hashes = [source.randbytes(32) for _ in range(max(SIZES))]
    places = [(size, i) for size in SIZES for i in (range(size) if size <= 20 else (0, 15, 16, 31, 32))]
    all_tensors = tensors()
    return {
        "pad": text(pad[0]),
        "padding": texts(pad),
        "inner": [{"left": text(a), "right": text(b), "hash": text(H(b"\x01" + a + b))} for a, b in pairs],
        "data": [{"leaf": text(leaf), "hash": text(H(b"\x00" + leaf))} for leaf in data],
        "hashes": texts(hashes),
        "trees": [{"size": size, "root": text(tree(hashes[:size]))} for size in SIZES],
        "branches": [{"size": n, "index": i, "siblings": texts(branch(hashes[:n], i))} for n, i in places],
        "tensors": all_tensors,
        "lists": [
            {
                "tag": tag,
                "tensors": members,
                "root": text(list_hash(tag, [bytes.fromhex(all_tensors[i]["root"][2:]) for i in members])),
            }
            for members in LISTS
            for tag in (3, 7, 8)
        ],
        "program": program_vectors(toy_program.build()),
    }


# --- the package against the file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(FILE.read_text())


@pytest.fixture(params=_hashing.isas(), autouse=True)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test below holds on every instruction set of the C++ kernels that this machine has."""
    with instruction_sets.held(request.param, _hashing):
        yield request.param


def raw(value: str) -> bytes:
    return bytes.fromhex(value[2:])


def array(tensor: dict[str, Any]) -> tuple[TensorType, Any]:
    type_ = TensorType(DType(tensor["dtype"]), tuple(tensor["shape"]))
    return type_, np.array(tensor["words"], np.uint32).reshape(type_.shape)


def test_file_is_what_the_specification_says(recorded: Any) -> None:
    assert recorded == vectors()


def test_hashes(recorded: Any) -> None:
    assert text(merkle.PAD) == recorded["pad"]
    assert texts([merkle.pad_root(height) for height in range(len(recorded["padding"]))]) == recorded["padding"]
    for inner in recorded["inner"]:
        assert text(merkle.parent(raw(inner["left"]), raw(inner["right"]))) == inner["hash"]
    for data in recorded["data"]:
        assert text(tensor_leaves(np.frombuffer(raw(data["leaf"]), "<u4"))) == data["hash"]
        assert text(keccak256(b"\x00" + raw(data["leaf"]))) == data["hash"]


def test_trees_and_branches(recorded: Any) -> None:
    hashes = [raw(item) for item in recorded["hashes"]]
    roots = {item["size"]: raw(item["root"]) for item in recorded["trees"]}
    assert set(SIZES) == set(roots)
    for size, root in roots.items():
        assert merkle.tree(hashes[:size]) == root
        assert merkle.levels(hashes[:size])[-1] == root
    for item in recorded["branches"]:
        size, index, siblings = item["size"], item["index"], [raw(sibling) for sibling in item["siblings"]]
        assert merkle.branch(hashes[:size], index) == siblings
        assert merkle.climb(hashes[index], index, siblings) == roots[size]


def test_tensors(recorded: Any) -> None:
    for item in recorded["tensors"]:
        type_, words = array(item)
        assert text(type_.encode()) == item["descriptor"]
        assert type_.leaves == len(item["leaves"])
        assert tensor_leaves(words) == b"".join(raw(leaf) for leaf in item["leaves"])
        assert text(tensor_tree(words)) == item["tree"]
        assert text(tensor_root(type_, words)) == item["root"]


def test_lists(recorded: Any) -> None:
    roots_of = {ListTag.STATE: state_root, ListTag.CONSTANTS: constants_root}
    for item in recorded["lists"]:
        tag, members = ListTag(item["tag"]), [recorded["tensors"][i] for i in item["tensors"]]
        assert text(list_root(tag, [raw(member["root"]) for member in members])) == item["root"]
        types, words = zip(*map(array, members), strict=True)
        if tag in roots_of:
            assert text(roots_of[tag](types, words)) == item["root"]


def test_program(recorded: Any) -> None:
    """From the descriptors in the file alone."""
    file = recorded["program"]
    program = StepProgram(
        tuple(Slot.decode(raw(item)) for item in file["slots"]),
        tuple(TensorType.decode(raw(item)) for item in file["constants"]),
        tuple(Node.decode(raw(item)) for item in file["nodes"]),
    )
    program.validate()
    commitment = ProgramCommitment.of(program)
    assert text(commitment.header) == file["header"]
    assert text(commitment.hash) == text(header_hash(raw(file["header"]))) == file["hash"]
    assert [texts(commitment.node_branch(i)) for i in range(len(program.nodes))] == file["node_branches"]
    assert [texts(commitment.slot_branch(i)) for i in range(len(program.slots))] == file["slot_branches"]


RECEIPTS = FILE.with_name("receipts.json")
NODES = (1, 2, 3, 4, 7, 64, 1000, 2**31)


def receipts() -> dict[str, list[Any]]:
    """One column for each value; `drawn` and `roots` have four entries a row."""
    found: dict[str, list[Any]] = {
        name: [] for name in ("draw", "segment", "nodes", "seed", "drawn", "roots", "receipt")
    }
    for number, nodes in enumerate(NODES):
        draw, segment = keccak256(b"draw %d" % number), number * number * 1_000_003 % 2**32
        seed = receipt_seed(draw, segment)
        roots = [keccak256(b"root %d %d" % (number, place)) for place in range(RECEIPT_NODES)]
        row = ("0x" + draw.hex(), segment, nodes, "0x" + seed.hex(), receipt_nodes(seed, nodes))
        shown = (["0x" + root.hex() for root in roots], "0x" + receipt_of(roots).hex())
        for column, value in zip(found.values(), (*row, *shown), strict=True):
            column.extend(value) if isinstance(value, list) else column.append(value)
    return found


def test_the_vectors_hold() -> None:
    assert json.loads(RECEIPTS.read_text()) == receipts()


if __name__ == "__main__":
    sys.path.append(str(TESTS))
    FILE.write_text(json_rows(vectors()))
    RECEIPTS.write_text(json_rows(receipts()))
