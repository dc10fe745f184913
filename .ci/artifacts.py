#!/usr/bin/env python3
"""Build contracts/ with forge and write what is deployed to pol/chain/artifacts/; `--check` fails if that is stale.

These are the bytes that the forge tests run: what they have compiled is not compiled again.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ARTIFACTS = ROOT / "pol" / "chain" / "artifacts"
FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"

# EIP-170, less a tenth: a contract that is nearly too large can not be mended.
LARGEST = 24_576 * 9 // 10


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


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds a folder of builds for one process: two forges would overwrite each other's cache."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(paths: Sequence[str], name: str = "default", out: str | None = None) -> Path:
    """The folder with forge's output for source files, named relative to the root, under a profile of foundry.toml.

    ``out``: another folder than the profile's. Exits with the compiler's messages if it fails.
    """
    folder = ROOT / (out or profile(name)["out"])
    elsewhere = {"FOUNDRY_OUT": str(folder), "FOUNDRY_CACHE_PATH": f"{folder}-cache"} if out else {}
    environment: Mapping[str, str] = os.environ | {"FOUNDRY_PROFILE": name} | elsewhere
    with alone(folder):
        done = subprocess.run(
            [FORGE, "build", *paths], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return folder


def compiled(folder: Path, path: str, contract: str) -> dict[str, Any]:
    """What forge made of one contract; declarations are in the order of the compiler."""
    made: dict[str, Any] = json.loads((folder / Path(path).name / f"{contract}.json").read_text())
    made["abi"].sort(key=lambda entry: (entry["type"], entry.get("name", "")))
    return made


def deployable(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Path and name of every contract in source files that is neither abstract nor a library nor an interface."""
    for path in paths:
        for contract in re.findall(r"^contract (\w+)", (ROOT / path).read_text(), re.MULTILINE):
            yield path, contract


def artifacts() -> dict[str, str]:
    """File name and text of every artefact."""
    files: dict[str, str] = {}
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "contracts").rglob("*.sol"))
    folder = build(paths)
    for path, contract in deployable(paths):
        made = compiled(folder, path, contract)
        size = len(made["deployedBytecode"]["object"].removeprefix("0x")) // 2
        if size > LARGEST:
            raise SystemExit(f"{contract} has {size} bytes; with a tenth of headroom there may be {LARGEST}")
        artifact = {"contract": f"{path}:{contract}", "abi": made["abi"], "bytecode": made["bytecode"]["object"]}
        file = f"{contract}.json"
        if file in files:
            raise SystemExit(f"two artefacts are called {file}; they are named by the contract alone")
        files[file] = json.dumps(artifact, separators=(",", ":"), sort_keys=True) + "\n"
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
