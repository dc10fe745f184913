"""Mutants of the court: compiled unoptimized, in the place of the artefacts that its tests deploy by name.

Only the contracts that contain the changed file are compiled, by a compiler that stays loaded, and no test is: what a
test calls directly, as harnesses do, is as it was. Ceilings of gas do not hold without the optimizer and are left out,
but for `Descent`: what is wrong there often leaves a move to the general rules, which are right but dearer.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import artifacts
from mutants import REMAPPED, ROOT, Mutant, closure

FOLDER = "contracts/dispute/"
FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"
# Compiled anew for a mutant if they contain it; of the others the committed artefact is deployed.
CONTRACTS = (FOLDER + "DisputeGame.sol", FOLDER + "Starts.sol")
# The tests that answer for a file; forge runs them in the order of their names.
GAME = ("Attacks", "Clock", "Descent", "DisputeGame", "Relay", "Turns")
ALL = (*GAME, "Published")
FILES = {
    FOLDER + "Descent.sol": ("Descent",),
    FOLDER + "Disputes.sol": ("Attacks", "Clock", "Descent", "Turns"),
    FOLDER + "DisputeGame.sol": GAME,
    FOLDER + "Payloads.sol": ALL,
    FOLDER + "Picks.sol": GAME,
    FOLDER + "Position.sol": GAME,
    FOLDER + "Published.sol": ("Published",),
    FOLDER + "Starts.sol": ALL,
    FOLDER + "Subtrees.sol": GAME,
    FOLDER + "Walk.sol": GAME,
}
OPTIMIZED = FOLDER + "Descent.sol"
CEILINGS = "less_than_.*_gas"
NAME = re.compile(r'"(\w+)\.sol:\1"')
# Seconds, of which the tests take five on an idle core.
LIMIT = 120


class Court:
    """A copy of the tests, and the compiler that makes what they deploy."""

    def __init__(self, directory: Path, path: str) -> None:
        """Copy, compile and run the tests once; exits if they fail."""
        self.directory = directory
        self.settings = artifacts.settings(artifacts.profile(), ())
        self.settings["optimizer"]["enabled"] = path == OPTIMIZED
        self.options = [] if path == OPTIMIZED else ["--no-match-test", CEILINGS]
        tests = [f"tests/forge/dispute/{name}.t.sol" for name in FILES[path]]
        for name in [*closure(tests), ".ci/solc", "foundry.toml", REMAPPED]:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
            if name.startswith("tests/"):
                text = NAME.sub(r'"pol/chain/artifacts/\1.json"', (ROOT / name).read_text())
                (directory / name).write_text(text)
        shutil.copytree(artifacts.ARTIFACTS, directory / "pol" / "chain" / "artifacts")
        for name in ("node_modules", "fixtures"):
            (directory / name).symlink_to((ROOT / name).resolve())
        self.compiler = subprocess.Popen(
            ["node", ROOT / ".ci" / "compile.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.usual = {contract: self.code(contract, {}) for contract in CONTRACTS}
        for contract, code in self.usual.items():
            self.install(contract, code)
        done = self.run(600)
        if done is None or done.returncode:
            sys.exit(f"the tests fail before any mutation\n{done.stdout[-3000:] if done else ''}")

    def code(self, path: str, changed: dict[str, str]) -> str | None:
        """The bytecode of a contract with some files changed; None if it does not compile."""
        files = closure([path]) | {REMAPPED}
        sources = {name: {"content": changed.get(name) or (ROOT / name).read_text()} for name in sorted(files)}
        self.settings["outputSelection"] = {path: {"*": ["evm.bytecode.object"]}}
        request = {"language": "Solidity", "sources": sources, "settings": self.settings}
        assert self.compiler.stdin
        assert self.compiler.stdout
        self.compiler.stdin.write(json.dumps(request) + "\n")
        self.compiler.stdin.flush()
        output: dict[str, Any] = json.loads(self.compiler.stdout.readline())
        if any(message["severity"] == "error" for message in output.get("errors", ())):
            return None
        return f"0x{output['contracts'][path][Path(path).stem]['evm']['bytecode']['object']}"

    def install(self, path: str, code: str | None) -> None:
        """What the tests deploy from now on."""
        file = self.directory / "pol" / "chain" / "artifacts" / f"{Path(path).stem}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "bytecode": code}))

    def run(self, limit: float) -> subprocess.CompletedProcess[str] | None:
        """Run the tests up to the first failure; None if they take too long."""
        command = [str(FORGE), "test", "--fail-fast", "--threads", "1", *self.options]
        try:
            return subprocess.run(
                command, cwd=self.directory, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return None

    def fate(self, mutant: Mutant) -> str:
        """What becomes of the mutant: killed, stillborn, equal or survives."""
        changed = {mutant.path: mutant.applied((ROOT / mutant.path).read_text())}
        codes = {path: self.code(path, changed) for path in CONTRACTS if mutant.path in closure([path])}
        if None in codes.values():
            return "stillborn"
        if all(code == self.usual[path] for path, code in codes.items()):
            return "equal"
        for path, code in codes.items():
            self.install(path, code)
        done = self.run(LIMIT)
        for path in codes:
            self.install(path, self.usual[path])
        return "killed" if done is None or done.returncode else "survives"


def attack(path: str, todo: list[Mutant], end: float) -> dict[str, list[Mutant]]:
    """Run one mutant after the other until all have been run or the time is over."""
    fates: dict[str, list[Mutant]] = {name: [] for name in ("killed", "stillborn", "equal", "survives", "not run")}
    with tempfile.TemporaryDirectory() as temporary:
        court = Court(Path(temporary), path)
        for mutant in todo:
            fates[court.fate(mutant) if time.monotonic() < end else "not run"].append(mutant)
    return fates
