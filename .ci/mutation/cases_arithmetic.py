"""Cases for `bulk.py` that the batch contracts of arithmetic take, in `batches`.

They are those of the tests in Python: TestFloat's level 1 (a sample of it for FFMA), the adversarial vectors, and
programs of the fixtures. Refusals are compared with those of the contract as it is.
"""

import functools
import itertools
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from mutants import ROOT

sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "arithmetic"), str(ROOT)]

import testfloat
from eth_abi.abi import encode
from eth_utils import keccak

from lab.arithmetic.adversarial_words import by_hand
from lab.arithmetic.adversarial_words import cases as adversarial
from lab.arithmetic.vector_files import SEED
from pol.arithmetic.primitives import ARITY, Op, apply

FOLDER = "contracts/arithmetic/"
PRIMITIVES = {
    FOLDER + "Float32.sol": tuple(op for op in Op if op < Op.F2U),
    FOLDER + "Conversion.sol": tuple(op for op in Op if Op.F2U <= op <= Op.RF16),
}
LEADING_ZEROS = FOLDER + "LeadingZeros.sol"
FILES = (*PRIMITIVES, FOLDER + "ScalarMachine.sol", LEADING_ZEROS)
SAMPLE = 6_000
# All pairs of interesting numbers.
PLAIN = 9_216
FIRST = 150

Case = tuple[bytes, bytes | None]


def words(values: Any) -> bytes:
    """As results come: 32 bytes each."""
    return b"".join(int(value).to_bytes(32, "big") for value in values)


def primitive(op: Op, size: int) -> Iterator[Case]:
    """Cases of one primitive, the first few alone."""
    rng = np.random.default_rng(SEED)
    drawn = [adversarial(op, 2000, SEED), by_hand(op)]
    if op in testfloat.PRIMITIVES:
        total = testfloat.count(op, 1)
        numbers = np.arange(total)
        if total > SAMPLE:
            numbers = np.concatenate((testfloat.plain(op, 1)[:PLAIN], rng.integers(0, total, SAMPLE)))
        drawn.append(testfloat.cases(op, 1, numbers))
    # Whatever is not an operand is zero.
    operands = [
        np.concatenate([x for part in drawn for x in [part[k] if k < len(part) else 0 * part[0]]]) for k in range(3)
    ]
    order = rng.permutation(len(operands[0]))
    order = order[:FIRST] if size else order[FIRST:]
    a, b, c = (x[order].astype(np.uint32) for x in operands)
    packed = np.stack((a, b, c), axis=1).astype(">u4").tobytes()
    yield bytes([op]) + packed, words(apply(op, *(a, b, c)[: ARITY[op]]))


def zeros() -> Iterator[Case]:
    """Every first bit, alone and with all bits behind it, from every place; places that miss the bit."""
    pairs = [(value, near) for bit in range(257) for value in ((1 << bit) >> 1, (1 << bit) - 1) for near in range(256)]
    for at in range(0, len(pairs), 4096):
        part = pairs[at : at + 4096]
        yield words(itertools.chain(*part)), words(256 - value.bit_length() for value, _ in part for _ in range(2))


def selector(signature: str) -> bytes:
    """The first four bytes of a call."""
    return keccak(text=signature)[:4]


def machine() -> Iterator[Case]:
    """Codes, programs of the fixtures, and programs that `ScalarMachine.t.sol` shows refused."""
    for code in range(256):
        for name in ("arity", "one"):
            yield selector(f"{name}(uint8)") + encode(["uint8"], [code]), None
    run, values = selector("run(bytes,uint32[])"), selector("values(bytes,uint32[])")
    programs = json.loads((ROOT / "fixtures" / "vectors" / "programs.json").read_text())["programs"]
    for entry in programs.values():
        program = bytes.fromhex(entry["program"])
        for case in entry["cases"][:3]:
            *inputs, result = (int(word, 16) for word in case.split())
            yield run + encode(["bytes", "uint32[]"], [program, inputs]), words([result])
            yield values + encode(["bytes", "uint32[]"], [program, inputs]), None
    refused = re.findall(
        r'run\(|expectInvalid\(\s*((?:hex"[0-9a-f]*"\s*(?://[^\n]*)?\s*)+)',
        (ROOT / "tests/forge/arithmetic/ScalarMachine.t.sol").read_text(),
    )
    for text in filter(None, refused):
        program = bytes.fromhex("".join(re.findall(r'hex"([0-9a-f]*)"', text)))
        yield run + encode(["bytes", "uint32[]"], [program, [0]]), None
    twice_plus_one = bytes.fromhex("010102000000012000000020020100")
    yield run + encode(["bytes", "uint32[]"], [twice_plus_one, [0, 0]]), None
    yield run + encode(["bytes", "uint32[]"], [bytes.fromhex("ff000131fe0000"), [*range(255)]]), words([254])
    for index in range(3):
        yield selector("instruction(bytes,uint256)") + encode(["bytes", "uint256"], [twice_plus_one, index]), None
    yield selector("codes()"), None


@functools.cache
def calls(path: str) -> list[Case]:
    """What the mutants of a file are asked; None where the contract as it is has the answer."""
    if path == LEADING_ZEROS:
        return list(zeros())
    if path.endswith("ScalarMachine.sol"):
        return [*machine(), *(case for op in Op for case in primitive(op, 1))]
    return [case for first in (1, 0) for op in PRIMITIVES[path] for case in primitive(op, first)]
