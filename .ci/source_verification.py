#!/usr/bin/env python3
"""Prepare what block explorers need to show the sources of a deployment.

    .ci/source_verification.py deployments/CHAIN.json

Writes a folder with the compiler's input for each contract, and verify.sh, which sends them to Sourcify, to a
Blockscout or to Etherscan.
`--check` compiles every input as they do, and compares with what `pol deploy` has sent.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import Path
from typing import Any

from artifacts import ARTIFACTS, ROOT, profile, restricted
from eth_abi.abi import encode

OUT = ROOT / "build" / "verification"
SOURCIFY = "https://sourcify.dev/server/v2/verify"
ETHERSCAN = "https://api.etherscan.io/v2/api"
IMPORT = re.compile(r'^import\s[^"]*"([^"]+)";', re.MULTILINE)


def sources(path: str, remappings: Mapping[str, str]) -> dict[str, str]:
    """A source file and all that it imports, by the names that the compiler gives them."""
    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = (ROOT / name).read_text()
        for target in IMPORT.findall(found[name]):
            if target.startswith("."):
                waiting.append(normpath(Path(name).parent / target))
            else:
                prefix = next(p for p in remappings if target.startswith(p))
                waiting.append(remappings[prefix] + target.removeprefix(prefix))
    return found


def compiler_input(artifact: str) -> tuple[str, dict[str, Any]]:
    """The identifier of an artefact's contract and the compiler's input that makes it, in the compiler's own words."""
    contract: str = json.loads((ARTIFACTS / f"{artifact}.json").read_text())["contract"]
    path = contract.partition(":")[0]
    build = profile()
    if restricted(build, path):
        extra = {key: value for key, value in build["additional_compiler_profiles"][0].items() if key != "name"}
        build = build | extra
    remappings = dict(entry.split("=") for entry in build["remappings"])
    settings = {
        "optimizer": {"enabled": build["optimizer"], "runs": build["optimizer_runs"]},
        "evmVersion": build["evm_version"],
        "remappings": build["remappings"],
        "metadata": {"bytecodeHash": build["bytecode_hash"], "appendCBOR": build["cbor_metadata"]},
        "outputSelection": {"*": {"*": ["abi", "metadata", "evm.bytecode.object", "evm.deployedBytecode.object"]}},
    } | ({"viaIR": True} if build["via_ir"] else {})
    files = {name: {"content": text} for name, text in sorted(sources(path, remappings).items())}
    return contract, {"language": "Solidity", "sources": files, "settings": settings}


def compiled(contract: str, standard: Mapping[str, Any]) -> str:
    """Creation code that the compiler makes of its input, as hexadecimal digits."""
    done = subprocess.run(
        [ROOT / ".ci" / "solc", "--standard-json"],
        input=json.dumps(standard),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    output = json.loads(done.stdout)
    errors = [e["formattedMessage"] for e in output.get("errors", []) if e["severity"] == "error"]
    if errors:
        raise SystemExit("\n".join(errors))
    path, _, name = contract.partition(":")
    return str(output["contracts"][path][name]["evm"]["bytecode"]["object"])


def arguments(artifact: str, values: list[Any]) -> str:
    """A constructor's arguments as hexadecimal digits."""
    abi = json.loads((ARTIFACTS / f"{artifact}.json").read_text())["abi"]
    inputs = next((entry["inputs"] for entry in abi if entry["type"] == "constructor"), [])
    types = [entry["type"] for entry in inputs]
    pairs = zip(types, values, strict=True)
    plain = [bytes.fromhex(v.removeprefix("0x")) if t.startswith("bytes") else v for t, v in pairs]
    return encode(types, plain).hex()


def commands(chain: int, address: str, contract: str, encoded: str, folder: str, version: str) -> Iterator[str]:
    """A shell function's call for each service: what is sent, and where."""
    form = {
        "compiler_version": version,
        "license_type": "apache_2_0",
        "contract_name": contract.partition(":")[2],
        "constructor_args": encoded,
        "autodetect_constructor_args": "false",
        "files[0]": f"@{folder}/input.json;type=application/json",
    }
    ether = {
        "module": "contract",
        "action": "verifysourcecode",
        "codeformat": "solidity-standard-json-input",
        "contractaddress": address,
        "contractname": contract,
        "compilerversion": version,
        "constructorArguements": encoded,  # the service spells it so
    }
    yield f"echo {shlex.quote(f'{contract} at {address}')}"
    yield "case $service in"
    yield (
        f"sourcify) send -H 'Content-Type: application/json' --data-binary @{folder}/sourcify.json "
        f'"${{url:-{SOURCIFY}}}/{chain}/{address}" ;;'
    )
    fields = " ".join(f"-F {shlex.quote(f'{key}={value}')}" for key, value in form.items())
    page = f"api/v2/smart-contracts/{address}/verification/via/standard-input"
    yield f'blockscout) send {fields} "${{url:?the explorer}}/{page}" ;;'
    data = " ".join(f"--data-urlencode {shlex.quote(f'{key}={value}')}" for key, value in ether.items())
    yield (
        f'etherscan) send {data} --data-urlencode "apikey=${{ETHERSCAN_KEY:?}}" '
        f'--data-urlencode sourceCode@{folder}/input.json "${{url:-{ETHERSCAN}}}?chainid={chain}" ;;'
    )
    yield "esac"


SCRIPT = """#!/bin/sh
# Shows the sources of a deployment: verify.sh sourcify | blockscout EXPLORER_URL | etherscan (with ETHERSCAN_KEY set)
set -eu
cd "$(dirname "$0")"
service=${1:-} url=${2:-}
case $service in sourcify|blockscout|etherscan) ;; *) sed -n 2p "$0" >&2; exit 2 ;; esac
send() { curl --fail-with-body --silent --show-error --retry 3 "$@"; echo; }
"""


def prepare(document: Mapping[str, Any], out: Path) -> list[str]:
    """Write what the services take for every contract of a deployment; the names of its artefacts."""
    asked = ["node", "-p", 'require("solc").version()']
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    version = "v" + re.findall(r"\d+\.\d+\.\d+\+commit\.[0-9a-f]+", done.stdout)[0]
    lines = [SCRIPT]
    for address, made in sorted(document["contracts"].items()):
        contract, standard = compiler_input(made["contract"])
        folder = out / address
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "input.json").write_text(json.dumps(standard))
        request = {"stdJsonInput": standard, "compilerVersion": version[1:], "contractIdentifier": contract}
        (folder / "sourcify.json").write_text(json.dumps(request))
        encoded = arguments(made["contract"], made["arguments"])
        lines += commands(document["chain_id"], address, contract, encoded, address, version)
    script = out / "verify.sh"
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    return sorted({made["contract"] for made in document["contracts"].values()})


def main() -> int:
    """Prepare, and with `--check` compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path, help="of pol deploy")
    parser.add_argument("--out", type=Path, help="build/verification/CHAIN if it isn't given")
    parser.add_argument("--check", nargs="*", metavar="ARTEFACT", help="these, or all; OneStep takes minutes")
    given = parser.parse_args()
    document = json.loads(given.document.read_text())
    out = given.out or OUT / str(document["chain_id"])
    names = prepare(document, out)
    wrong = []
    for name in [] if given.check is None else given.check or names:
        expected = json.loads((ARTIFACTS / f"{name}.json").read_text())["bytecode"].removeprefix("0x")
        if compiled(*compiler_input(name)) == expected:
            print(f"{name}: the compiler makes the same {len(expected) // 2} bytes")
        else:
            wrong.append(name)
            print(f"{name}: the compiler makes other bytes", file=sys.stderr)
    print(f"{out}/verify.sh sourcify | blockscout EXPLORER_URL | etherscan")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
