"""Calls of CommitmentHarness.sol and what `pol.commitments` answers; `.ci/mutation/bulk.py` sends them to mutants."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from eth_abi.abi import encode
from eth_utils import keccak

from pol.commitments import merkle
from pol.commitments.checkpoint_log import CheckpointLog, verify_consistency, verify_inclusion
from pol.errors import ProtocolError

HARNESS = "tests/forge/commitments/CommitmentHarness.sol"
TOGETHER = 100
"""Calls in one call of `each`."""

VECTORS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "vectors"
MAX_SIZE = 8

Case = tuple[bytes, tuple[bool, bytes]]
"""A call, and whether it succeeds with which output or error."""


def call(signature: str, *arguments: Any) -> bytes:
    """Calldata of a function."""
    types = signature[signature.index("(") + 1 : -1]
    return keccak(text=signature)[:4] + encode(types.split(",") if types else [], arguments)


def word(value: int) -> bytes:
    return value.to_bytes(32, "big")


def together(cases: Sequence[Case]) -> Iterator[tuple[bytes, bytes]]:
    """Calls of `each`, and their whole outputs."""
    for at in range(0, len(cases), TOGETHER):
        part = cases[at : at + TOGETHER]
        successes, outputs = zip(*(answer for _, answer in part), strict=True)
        yield call("each(bytes[])", [data for data, _ in part]), encode(["bool[]", "bytes[]"], [successes, outputs])


def vectors(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return content


def from_hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def fold(row: Sequence[bytes]) -> bytes:
    """The root over a power of two of hashes."""
    while len(row) > 1:
        row = [merkle.parent(left, right) for left, right in zip(row[::2], row[1::2], strict=True)]
    return row[0]


def in_memory(cases: Iterator[tuple[str, list[Any], bytes]]) -> Iterator[Case]:
    """Each case with one and with two words allocated, so that free memory begins at both halves of 64 bytes."""
    for signature, arguments, answer in cases:
        name, types = signature.split("(")
        full = f"{name}(uint256,{types}"
        for words in (1, 2):
            yield call(full, words, *arguments), (True, answer)


def refused(signature: str, arguments: list[Any], error: str, values: list[int]) -> Case:
    return call(signature, *arguments), (False, call(error, *values))


def hashing() -> Iterator[tuple[str, list[Any], bytes]]:
    """Nodes, padding, and whatever has a domain."""
    rng = random.Random(1)
    known = vectors("commitments")
    for node in known["inner"]:
        yield "inner(bytes32,bytes32)", [from_hex(node["left"]), from_hex(node["right"])], from_hex(node["hash"])
    for height, root in enumerate(known["padding"]):
        yield "padding(uint256)", [height], from_hex(root)
    for size in (0, 1, 10, 31, 32, 33, 64, 100, 256, 300):
        for tag in (0, 4, 5, 255):
            content = rng.randbytes(size)
            yield "tagged(uint8,bytes)", [tag, content], keccak(bytes([tag]) + content)
        tree = rng.randbytes(32)
        yield "tensorRoot(bytes,bytes32)", [content, tree], keccak(b"\x02" + content + tree)
    for tensor in known["tensors"]:
        arguments = [from_hex(tensor["descriptor"]), from_hex(tensor["tree"])]
        yield "tensorRoot(bytes,bytes32)", arguments, from_hex(tensor["root"])
    for tag in (3, 7, 8, 255):
        for count in (0, 1, 255, 256, 0x01020304, 0x80000000, 0xFFFFFFFF):
            tree = rng.randbytes(32)
            answer = keccak(bytes([tag]) + count.to_bytes(4, "big") + tree)
            for above in (0, 1, rng.getrandbits(224)):
                yield "listRoot(uint8,uint256,bytes32)", [tag, above << 32 | count, tree], answer


def trees() -> Iterator[tuple[str, list[Any], bytes]]:
    """Depths, rows and branches."""
    rng = random.Random(2)
    ends = {2**d + e for d in range(65) for e in (-1, 0, 1)} | {rng.randrange(2**d, 2 ** (d + 1)) for d in range(64)}
    for count in sorted(ends | set(range(1, 300))):
        if 1 <= count <= 2**64:
            yield "depth(uint256)", [count], word(merkle.depth(count))
    yield "depth(uint256)", [0], word(0)
    leaves = [rng.randbytes(32) for _ in range(66)]
    for count in (*range(1, 35), 63, 64, 65, 66):
        yield "treeOf(bytes)", [b"".join(leaves[:count])], merkle.tree(leaves[:count])
        levels = merkle.levels(leaves[:count])
        for index in {0, 1, count // 2, count - 1} & set(range(count)):
            arguments = [leaves[index], index, merkle.branch_from_levels(levels, index), count]
            yield "climbIn(bytes32,uint256,bytes32[],uint256)", arguments, merkle.tree(leaves[:count])
    for depth in range(6):
        for count in {1, 2, 3, 2**depth // 2, 2**depth - 1, 2**depth} & set(range(1, 2**depth + 1)):
            for height in (0, 1, 3):
                row = leaves[:count]
                whole = [*row, *[merkle.pad_root(height)] * (2**depth - count)]
                yield "root(bytes,uint256,uint256)", [b"".join(row), depth, height], fold(whole)
    for depth in range(21):
        for _ in range(3):
            index, branch = rng.randrange(2**depth), [rng.randbytes(32) for _ in range(depth)]
            answer = merkle.climb(leaves[0], index, branch)
            yield "climb(bytes32,uint256,bytes32[])", [leaves[0], index, branch], answer


def places() -> Iterator[Case]:
    """Branches of another length and places that do not exist."""
    climb_in = "climbIn(uint256,bytes32,uint256,bytes32[],uint256)"
    for count in (0, 1, 2, 5, 8, 9):
        depth = merkle.depth(count) if count else 0
        for index in (count, count + 1, 2**depth, 2**256 - 1):
            if index >= count:
                arguments = [1, bytes(32), index, [bytes(32)] * depth, count]
                yield refused(climb_in, arguments, "IndexOutOfRange(uint256,uint256)", [index, count])
        for length in {0, depth - 1, depth + 1, depth + 4} - {depth, -1}:
            if count:
                arguments = [1, bytes(32), 0, [bytes(32)] * length, count]
                yield refused(climb_in, arguments, "WrongBranchLength(uint256,uint256)", [length, depth])


def merkle_branch() -> list[Case]:
    """Of `MerkleBranch`."""
    constants = [int(vectors("commitments")["pad"], 16), *range(9), 256, 64]
    return [
        (call("constants()"), (True, b"".join(map(word, constants)))),
        *in_memory(hashing()),
        *in_memory(trees()),
        *places(),
    ]


def holds(verify: Callable[..., None], *arguments: Any) -> tuple[bool, bytes]:
    """The answer true if the verifier is content, false otherwise."""
    try:
        verify(*arguments)
    except ProtocolError:
        return True, word(0)
    return True, word(1)


def included(entry: bytes, index: int, size: int, root: bytes, path: list[bytes]) -> Case:
    arguments = [entry, index, size, root, path]
    data = call("isIncluded(bytes32,uint256,uint256,bytes32,bytes32[])", *arguments)
    return data, holds(verify_inclusion, root, size, index, entry, path)


def consistent(old_size: int, old_root: bytes, size: int, root: bytes, path: list[bytes]) -> Case:
    data = call("isConsistent(uint256,bytes32,uint256,bytes32,bytes32[])", old_size, old_root, size, root, path)
    if old_size == 0:  # Every log extends the empty one; `pol` has no root of that.
        return data, (True, word(not path))
    return data, holds(verify_consistency, old_root, old_size, root, size, path)


def above(left: bytes, right: bytes) -> bytes:
    """A node of the log."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def damaged(path: list[bytes], noise: bytes) -> Iterator[list[bytes]]:
    """The path, and others with a hash more, one less, or another one."""
    yield from (path, [*path, noise], [noise, *path], [*path, *path[-1:]], path[:-1], path[1:], [])
    for k in range(len(path)):
        yield [*path[:k], noise, *path[k + 1 :]]


def checkpoint_log() -> list[Case]:
    """Of `CheckpointLog`."""
    rng = random.Random(3)
    entries = [rng.randbytes(32) for _ in range(66)]
    noise = rng.randbytes(32)
    log = CheckpointLog(entries)
    cases: list[Case] = [
        (call("leafHash(bytes32)", entries[0]), (True, CheckpointLog(entries[:1]).root())),
        included(noise, 0, 0, noise, []),
        # A log is not the beginning of a shorter one, whatever its root is.
        consistent(1, noise, 0, noise, [noise]),
        consistent(6, above(noise, entries[0]), 5, above(noise, entries[0]), [entries[0], noise]),
    ]
    for size in (*range(1, 19), 33):
        root = log.root(size)
        everywhere = range(size) if size <= MAX_SIZE else sorted({size - 2, size - 1, *rng.sample(range(size), 1)})
        for index in everywhere:
            path = log.inclusion(index, size)
            cases += [included(entries[index], index, size, root, other) for other in damaged(path, noise)]
            for other in (0, index - 1, index + 1, size - 1, size, 2 * size):
                cases.append(included(entries[index], max(other, 0), size, root, path))
            cases += [included(entries[index], index, size + change, root, path) for change in (-1, 1, size)]
            # A tree that is deeper than its size allows: all hashes fit.
            cases += [included(entries[index], index, size, above(noise, root), [*path, noise])]
            cases += [included(noise, index, size, root, path), included(entries[index], index, size, noise, path)]
        for old_size in (0, *(k + 1 for k in everywhere)):
            old_root = log.root(old_size) if old_size else noise
            path = log.consistency(old_size, size) if old_size else []
            cases += [consistent(old_size, old_root, size, root, other) for other in damaged(path, noise)]
            over = above(noise, old_root), size, above(noise, root)
            cases += [consistent(old_size, *over, [*path, noise])]
            cases += [consistent(old_size, noise, size, root, path), consistent(old_size, old_root, size, noise, path)]
            cases += [consistent(size, root, old_size, old_root, path), consistent(size, root, size, root, path)]
            cases += [consistent(old_size + 1, old_root, size, root, path)]
            cases += [consistent(old_size, old_root, size + change, root, path) for change in (1, size)]
    return cases
