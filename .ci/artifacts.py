#!/usr/bin/env python3
"""Compile contracts/ and write what the package deploys to pol/chain/artifacts/; `--check` fails if that is stale.

Settings come from foundry.toml, so these are the bytes that the forge tests run.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ARTIFACTS = ROOT / "pol" / "chain" / "artifacts"

# EIP-170, less a tenth: a contract that is nearly too large can not be mended.
LARGEST = 24_576 * 9 // 10


def settings() -> dict[str, Any]:
    """The compiler settings of foundry.toml in the compiler's own words."""
    profile = tomllib.loads((ROOT / "foundry.toml").read_text())["profile"]["default"]
    return {
        "optimizer": {"enabled": profile["optimizer"], "runs": profile["optimizer_runs"]},
        "evmVersion": profile["evm_version"],
        "viaIR": profile["via_ir"],
        "metadata": {"bytecodeHash": profile["bytecode_hash"], "appendCBOR": profile["cbor_metadata"]},
        "outputSelection": {"*": {"": ["ast"], "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]}},
    }


def compile_sources(paths: Iterable[str]) -> dict[str, Any]:
    """The compiler's output for source files, named relative to the root; exits with its messages if it fails."""
    sources = {path: {"content": (ROOT / path).read_text()} for path in sorted(paths)}
    request = {"language": "Solidity", "sources": sources, "settings": settings()}
    done = subprocess.run(
        [ROOT / ".ci" / "solc", "--standard-json"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    output: dict[str, Any] = json.loads(done.stdout)
    errors = [entry["formattedMessage"] for entry in output.get("errors", ()) if entry["severity"] == "error"]
    if errors:
        raise SystemExit("\n".join(errors))
    return output


def deployable(output: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and name of every contract under contracts/ that is neither abstract nor a library nor an interface."""
    for path, source in sorted(output["sources"].items()):
        for node in source["ast"]["nodes"]:
            is_contract = node["nodeType"] == "ContractDefinition" and node["contractKind"] == "contract"
            if path.startswith("contracts/") and is_contract and not node["abstract"]:
                yield path, node["name"]


def artifacts() -> dict[str, str]:
    """File name and text of every artifact."""
    output = compile_sources(str(path.relative_to(ROOT)) for path in (ROOT / "contracts").rglob("*.sol"))
    files = {}
    for path, name in deployable(output):
        compiled = output["contracts"][path][name]
        bytecode = compiled["evm"]["bytecode"]["object"]
        size = len(compiled["evm"]["deployedBytecode"]["object"]) // 2
        if size > LARGEST:
            raise SystemExit(f"{name} has {size} bytes; with a tenth of headroom there may be {LARGEST}")
        artifact = {"contract": f"{path}:{name}", "abi": compiled["abi"], "bytecode": "0x" + bytecode}
        file = f"{name}.json"
        if file in files:
            raise SystemExit(f"two contracts are called {name}; artifacts are named by the contract alone")
        files[file] = json.dumps(artifact, indent=1, sort_keys=True) + "\n"
    return files


def main(arguments: list[str]) -> int:
    """Write the artifacts, or with `--check` compare them with what is there."""
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: artifacts.py [--check]")
    expected = artifacts()
    present = {path.name: path.read_text() for path in ARTIFACTS.glob("*.json")}
    stale = sorted(name for name in expected.keys() | present.keys() if expected.get(name) != present.get(name))
    if arguments:
        for name in stale:
            print(f"pol/chain/artifacts/{name} is stale: run python .ci/artifacts.py", file=sys.stderr)
        return 1 if stale else 0
    ARTIFACTS.mkdir(exist_ok=True)
    for name in stale:
        if name in expected:
            (ARTIFACTS / name).write_text(expected[name])
        else:
            (ARTIFACTS / name).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
