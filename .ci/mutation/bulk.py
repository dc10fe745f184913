"""Mutants in bulk: compiled unoptimized behind a batch contract, many at once, and called on a node with many cases.

Tests in Solidity take seconds for a mutant, and there are thousands of mutants. Here one is killed if it differs, on
one of the cases that the tests in Python send, from what `pol` says; no gas is compared.
"""

import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from mutants import ROOT, Mutant, own

sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "commitments"), str(ROOT)]

import cases_arithmetic
import court_cases

from anvil_node import anvil_node

COMMITMENTS = {
    "contracts/commitments/MerkleBranch.sol": court_cases.merkle_branch,
    "contracts/commitments/CheckpointLog.sol": court_cases.checkpoint_log,
}
FILES = (*cases_arithmetic.FILES, *COMMITMENTS)
TOGETHER = 25
GAS = 2_000_000_000
COURT = "0x00000000000000000000000000000000000c0de0"


def calls(path: str) -> list[cases_arithmetic.Case]:
    """What the mutants of a file are asked; None where the contract as it is has the answer."""
    if path in COMMITMENTS:
        cases = COMMITMENTS[path]()
        # Every call has something of everything: most mutants are killed by the first one.
        random.Random(0).shuffle(cases)
        return list(court_cases.together(cases))
    return cases_arithmetic.calls(path)


def compiled(path: str, texts: list[str]) -> list[str | None]:
    """Runtime code of the batch contract over each text of the file; None if there is none."""
    sources: dict[str, str] = {}
    batch = court_cases.HARNESS if path in COMMITMENTS else f".ci/mutation/batches/{Path(path).name}"
    for number, text in enumerate(texts):
        for name in own([path, batch]):
            sources[f"m{number}/{name}"] = (ROOT / name).read_text()
        sources[f"m{number}/{path}"] = text
    names = [f"m{number}/{batch}" for number in range(len(texts))]
    request = {
        "language": "Solidity",
        "sources": {name: {"content": text} for name, text in sources.items()},
        "settings": {
            "evmVersion": "prague",
            "outputSelection": {name: {"*": ["evm.deployedBytecode.object"]} for name in names},
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
    contracts = [answer["contracts"][name].values() for name in names]
    return [contract["evm"]["deployedBytecode"]["object"] for (contract,) in contracts]


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


def fates(path: str, todo: list[Mutant], end: float) -> Iterator[tuple[Mutant, str]]:
    """What becomes of each mutant; those for which there is no time are not run."""
    text = (ROOT / path).read_text()
    (original,) = compiled(path, [text])
    assert original
    with anvil_node("--gas-limit", str(10**12), "--no-request-size-limit") as url:
        expected = []
        for data, result in calls(path):
            answer = ask(url, original, data)
            if result is not None and answer != "0x" + result.hex():
                raise SystemExit(f"{path} is wrong before any mutation: {data.hex()[:200]}")
            expected.append((data, answer))
        for at in range(0, len(todo), TOGETHER):
            part = todo[at : at + TOGETHER]
            if time.monotonic() > end:
                yield from ((mutant, "not run") for mutant in part)
                continue
            for mutant, code in zip(part, compiled(path, [mutant.applied(text) for mutant in part]), strict=True):
                if code is None:
                    yield mutant, "stillborn"
                elif code == original:
                    yield mutant, "equal"
                else:
                    killed = any(ask(url, code, data) != answer for data, answer in expected)
                    yield mutant, "killed" if killed else "survives"


def attack(path: str, todo: list[Mutant], end: float) -> dict[str, list[Mutant]]:
    """The mutants by what becomes of them; shows on stderr how far it is."""
    found: dict[str, list[Mutant]] = {name: [] for name in ("killed", "stillborn", "equal", "survives", "not run")}
    for number, (mutant, fate) in enumerate(fates(path, todo, end), 1):
        found[fate].append(mutant)
        if number % TOGETHER == 0:
            print(f"{path}: {number} of {len(todo)}, {len(found['survives'])} survive", file=sys.stderr, flush=True)
    return found
