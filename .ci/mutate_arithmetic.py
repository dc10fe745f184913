#!/usr/bin/env python3
"""Mutants of the arithmetic in bulk: compiled unoptimized behind a batch contract, called with many cases.

    mutate_arithmetic.py [--lines A-B] [FILE ...]

The tests in Solidity take seconds for a mutant of `Float32`, and there are more than two thousand mutants. Here one
is killed if it differs from `pol.arithmetic` on one of the cases that the tests in Python send: TestFloat's level 1 (a
sample of it for FFMA), the adversarial vectors, and chains of `tests/arithmetic/test_fma_chain.py`; programs are
compared with the fixtures, refusals with those of the contract as it is. Reasons and counts are as in `mutate.py`.
"""

import argparse
import functools
import itertools
import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mutate
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "arithmetic"), str(ROOT)]

import test_fma_chain  # noqa: E402
import testfloat  # noqa: E402
from anvil_node import anvil_node  # noqa: E402
from eth_abi import encode  # type: ignore[attr-defined]  # noqa: E402
from eth_utils import keccak  # noqa: E402

from pol.arithmetic.fixtures import SEED  # noqa: E402
from pol.arithmetic.primitives import ARITY, Op, apply  # noqa: E402
from pol.arithmetic.vectors import cases as adversarial  # noqa: E402

FOLDER = "contracts/arithmetic/"
LEADING_ZEROS = mutate.REMAPPED
FILES = {
    FOLDER + "Float32.sol": tuple(op for op in Op if op < Op.F2U),
    FOLDER + "Conversion.sol": tuple(op for op in Op if Op.F2U <= op <= Op.RF16),
    FOLDER + "ScalarMachine.sol": tuple(Op),
    FOLDER + "FmaChain.sol": (),
    LEADING_ZEROS: (),
}
TOGETHER = 25
SAMPLE = 6_000
# All pairs of interesting numbers.
PLAIN = 9_216
FIRST = 150
GAS = 2_000_000_000
COURT = "0x00000000000000000000000000000000000c0de0"

Case = tuple[bytes, bytes | None]


def words(values: Any) -> bytes:
    """As results come: 32 bytes each."""
    return b"".join(int(value).to_bytes(32, "big") for value in values)


def primitive(op: Op, size: int) -> Iterator[Case]:
    """Cases of one primitive, the first few alone."""
    rng = np.random.default_rng(SEED)
    drawn = [adversarial(op, 2000, SEED)]
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


def chains() -> Iterator[Case]:
    """Chains of all kinds and some lengths."""
    for share, kind in itertools.product((20, 380), test_fma_chain.KINDS):
        rng = np.random.default_rng(SEED)
        for count in (8, 64, int(rng.integers(1, 64))):
            starts, a, b = (x[-share:] for x in test_fma_chain.blocks(kind, rng, count))
            data = np.concatenate((starts[:, None].astype(">u4").view("<u4"), a, b), axis=1).astype("<u4").tobytes()
            yield count.to_bytes(2, "big") + data, words(test_fma_chain.expected(starts, a, b))


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
    refused = mutate.re.findall(
        r'run\(|expectInvalid\(\s*((?:hex"[0-9a-f]*"\s*(?://[^\n]*)?\s*)+)',
        (ROOT / "tests/forge/arithmetic/ScalarMachine.t.sol").read_text(),
    )
    for text in filter(None, refused):
        program = bytes.fromhex("".join(mutate.re.findall(r'hex"([0-9a-f]*)"', text)))
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
    if path.endswith("FmaChain.sol"):
        return list(chains())
    if path.endswith("ScalarMachine.sol"):
        return [*machine(), *(case for op in Op for case in primitive(op, 1))]
    return [case for first in (1, 0) for op in FILES[path] for case in primitive(op, first)]


def compiled(path: str, texts: list[str]) -> list[str | None]:
    """Runtime code of the batch contract over each text of the file; None if there is none."""
    sources: dict[str, str] = {}
    batch = f".ci/batches/{Path(path).name}"
    for number, text in enumerate(texts):
        for name in mutate.closure([path, batch]):
            sources[f"m{number}/{name}"] = (ROOT / name).read_text()
        sources[f"m{number}/{LEADING_ZEROS}"] = (ROOT / LEADING_ZEROS).read_text()
        sources[f"m{number}/{path}"] = text
    names = [f"m{number}/{batch}" for number in range(len(texts))]
    request = {
        "language": "Solidity",
        "sources": {name: {"content": text} for name, text in sources.items()},
        "settings": {
            "evmVersion": "prague",
            "remappings": [f"m{n}/:leading-zeros/=m{n}/contracts/arithmetic/prague/" for n in range(len(texts))],
            "outputSelection": {name: {"Batch": ["evm.deployedBytecode.object"]} for name in names},
        },
    }
    done = subprocess.run(
        [ROOT / ".ci" / "solc", "--standard-json"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    errors = {e["sourceLocation"]["file"].split("/")[0] for e in answer.get("errors", []) if e["severity"] == "error"}
    if errors:
        good = [n for n in range(len(texts)) if f"m{n}" not in errors]
        codes = compiled(path, [texts[n] for n in good]) if good else []
        result: list[str | None] = [None] * len(texts)
        for n, code in zip(good, codes, strict=True):
            result[n] = code
        return result
    return [answer["contracts"][name]["Batch"]["evm"]["deployedBytecode"]["object"] for name in names]


def ask(url: str, code: str, data: bytes) -> str:
    """What a contract with this code answers, errors included."""
    override = {COURT: {"code": "0x" + code}}
    transaction = {"to": COURT, "data": "0x" + data.hex(), "gas": hex(GAS)}
    request = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [transaction, "latest", override]}
    body = json.dumps(request).encode()
    answer = urllib.request.urlopen(
        urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=120
    )
    content = json.loads(answer.read())
    return str(content.get("result") or content["error"].get("data") or content["error"]["message"])


def attack(url: str, path: str, todo: list[mutate.Mutant]) -> dict[str, list[mutate.Mutant]]:
    """What becomes of the mutants."""
    fates: dict[str, list[mutate.Mutant]] = {name: [] for name in ("killed", "stillborn", "equal", "survives")}
    text = (ROOT / path).read_text()
    (original,) = compiled(path, [text])
    assert original
    expected = []
    for data, result in calls(path):
        answer = ask(url, original, data)
        if result is not None and answer != "0x" + result.hex():
            raise SystemExit(f"{path} is wrong before any mutation: {data.hex()[:200]}")
        expected.append((data, answer))
    for at in range(0, len(todo), TOGETHER):
        part = todo[at : at + TOGETHER]
        texts = []
        for mutant in part:
            lines = text.splitlines()
            lines[mutant.number - 1] = mutant.after
            texts.append("\n".join(lines) + "\n")
        for mutant, code in zip(part, compiled(path, texts), strict=True):
            if code is None:
                fate = "stillborn"
            elif code == original:
                fate = "equal"
            else:
                fate = "killed" if any(ask(url, code, data) != answer for data, answer in expected) else "survives"
            fates[fate].append(mutant)
            if fate == "survives":
                print(f"{mutant.path}:{mutant.number}\n- {mutant.before.strip()}\n+ {mutant.after.strip()}", flush=True)
    return fates


def main() -> int:
    """Mutate every file named; 1 if a mutant survives without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", default=list(FILES))
    parser.add_argument("--lines", default="1-100000", help="only mutants of these lines, as 10-25")
    options = parser.parse_args()
    first, last = (int(number) for number in options.lines.split("-"))
    reasons = mutate.justified()
    bad = 0
    for path in options.files:
        todo = [mutant for mutant in mutate.mutants(path) if first <= mutant.number <= last]
        random.Random(0).shuffle(todo)
        start = time.monotonic()
        with anvil_node("--gas-limit", str(10**12), "--no-request-size-limit") as url:
            fates = attack(url, path, todo)
        excused = [m for m in fates["survives"] if (path, m.before.strip(), m.after.strip()) in reasons]
        bad += len(fates["survives"]) - len(excused)
        numbers = ", ".join(f"{len(found)} {fate}" for fate, found in fates.items())
        print(
            f"{path}: {numbers} ({len(excused)} of the survivors with a reason); {time.monotonic() - start:.0f} s",
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
