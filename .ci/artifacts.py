#!/usr/bin/env python3
"""Compile contracts/ and write what the package deploys to pol/chain/artifacts/; `--check` fails if that is stale.

Settings come from foundry.toml, so these are the bytes that the forge tests run.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ARTIFACTS = ROOT / "pol" / "chain" / "artifacts"

# EIP-170, less a tenth: a contract that is nearly too large can not be mended.
LARGEST = 24_576 * 9 // 10

PROFILES = {"default": "", "osaka": "Osaka"}
"""Profiles of foundry.toml, and what the names of their artefacts end in."""


def profile(name: str = "default") -> dict[str, Any]:
    """A profile of foundry.toml on top of the default one, as forge reads it."""
    profiles: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "foundry.toml").read_text())["profile"]
    return profiles["default"] | profiles[name]


def restricted(build: dict[str, Any], path: str) -> bool:
    """Whether foundry.toml has a source file compiled with its additional profile."""
    return any(fnmatch(path, rule["paths"]) for rule in build["compilation_restrictions"])


def settings(build: dict[str, Any], selected: Iterable[str]) -> dict[str, Any]:
    """The compiler settings of a profile in the compiler's own words; files that are not selected are parsed only."""
    return {
        "optimizer": {"enabled": build["optimizer"], "runs": build["optimizer_runs"]},
        "evmVersion": build["evm_version"],
        "viaIR": build["via_ir"],
        "remappings": build["remappings"],
        "metadata": {"bytecodeHash": build["bytecode_hash"], "appendCBOR": build["cbor_metadata"]},
        "outputSelection": {
            "*": {"": ["ast"]},
            **{
                path: {"": ["ast"], "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]}
                for path in selected
            },
        },
    }


def compile_sources(paths: Iterable[str], name: str = "default") -> dict[str, Any]:
    """The compiler's output for source files, named relative to the root, under a profile of foundry.toml.

    Exits with the compiler's messages if it fails.
    """
    build = profile(name)
    (additional,) = build["additional_compiler_profiles"]
    plain: list[str] = []
    special: list[str] = []
    for path in sorted(paths):
        (special if restricted(build, path) else plain).append(path)
    output: dict[str, Any] = {"sources": {}, "contracts": {}}
    for selected, chosen in ((plain, build), (special, build | additional)):
        if selected:
            part = _compiled(selected, settings(chosen, selected))
            for path in selected:
                output["sources"][path] = part["sources"][path]
                output["contracts"][path] = part.get("contracts", {}).get(path, {})
    return output


def _compiled(paths: Iterable[str], chosen: dict[str, Any]) -> dict[str, Any]:
    sources = {path: {"content": (ROOT / path).read_text()} for path in paths}
    request = {"language": "Solidity", "sources": sources, "settings": chosen}
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
    """File name and text of every artefact: of the other profiles what has additional settings and other bytes."""
    files: dict[str, str] = {}
    for name, suffix in PROFILES.items():
        build = profile(name)
        paths = {str(path.relative_to(ROOT)) for path in (ROOT / "contracts").rglob("*.sol")}
        paths = {path for path in paths if not any(fnmatch(path, pattern) for pattern in build["skip"])}
        if suffix:
            paths = {path for path in paths if restricted(build, path)}
        output = compile_sources(paths, name)
        for path, contract in deployable(output):
            compiled = output["contracts"][path][contract]
            bytecode = compiled["evm"]["bytecode"]["object"]
            size = len(compiled["evm"]["deployedBytecode"]["object"]) // 2
            if size > LARGEST:
                raise SystemExit(f"{contract} has {size} bytes; with a tenth of headroom there may be {LARGEST}")
            artifact = {"contract": f"{path}:{contract}", "abi": compiled["abi"], "bytecode": "0x" + bytecode}
            file = f"{contract}{suffix}.json"
            text = json.dumps(artifact, indent=1, sort_keys=True) + "\n"
            if suffix and text == files.get(f"{contract}.json"):
                continue
            if file in files:
                raise SystemExit(
                    f"two artefacts are called {file}; they are named by the contract and the profile alone"
                )
            files[file] = text
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
