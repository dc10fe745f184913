#!/usr/bin/env python3
"""Change a contract in one place after the other and run the forge tests that should notice; fails if one does not.

    mutate.py [--seconds N] [--workers N] [--batch N] [--lines A-B] [--list] FILE ...

A mutant is killed if the tests fail or take ten times as long as usual, stillborn if it does not compile, and equal
if the compiler makes the same bytes of it. The others survive. Survivors that have a good reason are listed in
mutants.txt beside this file, three lines each: `PATH: reason`, the original line after `- ` and the mutant after `+
`. With --seconds the mutants come in a drawn order (fixed seed), and those for which no time is left are counted and
not run. With --batch so many mutants, each with its own copy of the tests, are compiled and run at once: it saves most
of the time where tests are small. It does not work with tests that deploy by name.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"
JUSTIFIED = ROOT / ".ci" / "mutants.txt"

# Imported by a remapping: copied along.
REMAPPED = "contracts/arithmetic/prague/LeadingZeros.sol"

# The tests that answer for a file. They run for every mutant, so only those that look closely.
TESTS = {
    "contracts/arithmetic/Float32.sol": ("arithmetic/Float32.t.sol", "proofs/Float32Laws.t.sol"),
    "contracts/arithmetic/Conversion.sol": ("arithmetic/Conversion.t.sol",),
    "contracts/arithmetic/ScalarMachine.sol": ("arithmetic/ScalarMachine.t.sol",),
    "contracts/commitments/CheckpointLog.sol": ("commitments/CheckpointLog.t.sol",),
    "contracts/commitments/MerkleBranch.sol": ("commitments/MerkleBranch.t.sol", "commitments/CommitmentVectors.t.sol"),
    "contracts/dispute/Clock.sol": ("proofs/ClockLaws.t.sol",),
    "contracts/dispute/Disputes.sol": ("proofs/DisputesLaws.t.sol", "dispute/Clock.t.sol", "dispute/Turns.t.sol"),
    "contracts/dispute/Distance.sol": ("dispute/Distance.t.sol", "proofs/DistanceLaws.t.sol"),
    "contracts/dispute/Frames.sol": ("dispute/Frames.t.sol",),
    "contracts/dispute/Picks.sol": ("dispute/DisputeGame.t.sol", "dispute/Attacks.t.sol"),
    "contracts/dispute/Shares.sol": ("dispute/Shares.t.sol",),
    "contracts/dispute/Walk.sol": ("dispute/DisputeGame.t.sol", "dispute/Attacks.t.sol"),
}

# Operators of Solidity and what is written instead.
SWAPS = {
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "<<": [">>"],
    ">>": ["<<"],
    "+": ["-"],
    "-": ["+"],
    "*": ["+"],
    "/": ["*"],
    "%": ["/"],
    "&": ["|"],
    "|": ["&"],
    "^": ["|"],
    "++": ["--"],
    "--": ["++"],
    "+=": ["-=", "="],
    "-=": ["+=", "="],
    "<<=": [">>="],
    ">>=": ["<<="],
    "!": [""],
    "~": [""],
}
# Functions of assembly likewise.
CALLS = {
    "lt": ["gt", "slt"],
    "gt": ["lt", "sgt"],
    "slt": ["sgt", "lt"],
    "sgt": ["slt", "gt"],
    "eq": ["sub"],
    "iszero": [""],
    "not": [""],
    "add": ["sub"],
    "sub": ["add"],
    "mul": ["add"],
    "div": ["mod"],
    "mod": ["div"],
    "and": ["or"],
    "or": ["and", "xor"],
    "xor": ["or"],
    "shl": ["shr"],
    "shr": ["shl", "sar"],
    "sar": ["shr"],
    "mstore": ["mstore8"],
    "mstore8": ["mstore"],
}
# `lt(x, y)` and not `x <= y`: the negation of the other comparison.
OPPOSITE = {"lt": "gt", "gt": "lt", "slt": "sgt", "sgt": "slt"}
OPERATOR = re.compile(r"<<=|>>=|=>|->|:=|<=|>=|==|!=|&&|\|\||<<|>>|\+\+|--|\+=|-=|[-+*/%&|^<>!~]")
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)(?![\w.])")
CALL = re.compile(r"(?<![\w.])(\w+)\(")
# Statements that leave something that compiles when they are gone.
STATEMENT = re.compile(
    r"^\s*(?!return\b|let\b|for\b|while\b|import\b|using\b|u?int\d*\s|bytes\d*\s|bool\s|error\b|event\b)[\w({].*;\s*$"
)
SKIPPED = re.compile(
    r"^\s*(//|/\*|\*|import\b|pragma\b|using\b|error\b|event\b|assembly\b|library\b|contract\b|function\b)"
)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One changed line of a file; `number` counts from 1."""

    path: str
    number: int
    before: str
    after: str


def code_length(line: str) -> int:
    """Where a comment begins, or the end of the line."""
    comment = line.find("//")
    return len(line) if comment < 0 else comment


def closing(text: str, opening: int) -> int:
    """Position of the parenthesis that closes the one at `opening`, or -1 if it is on another line."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return -1


def variants(line: str) -> Iterator[str]:
    """Every changed form of one line."""
    end = code_length(line)
    code, comment = line[:end], line[end:]
    for found in OPERATOR.finditer(code):
        for other in SWAPS.get(found.group(), ()):
            yield code[: found.start()] + other + code[found.end() :] + comment
    for found in NUMBER.finditer(code):
        if re.search(r"\b(uint|int|bytes)$", code[: found.start()]):
            continue
        text = found.group()
        for value in {int(text, 0) + 1, int(text, 0) - 1, int(text, 0) * 2}:
            if value >= 0 and value != int(text, 0):
                written = f"0x{value:0{len(text) - 2}x}" if text.startswith("0x") else str(value)
                yield code[: found.start()] + written + code[found.end() :] + comment
    for found in CALL.finditer(code):
        for other in CALLS.get(found.group(1), ()):
            yield code[: found.start()] + other + code[found.end() - 1 :] + comment
        last = closing(code, found.end() - 1)
        if found.group(1) in OPPOSITE and last > 0:
            arguments = code[found.end() : last]
            yield f"{code[: found.start()]}iszero({OPPOSITE[found.group(1)]}({arguments})){code[last + 1 :]}{comment}"
    for found in re.finditer(r"\b(if|while) \(", code):
        last = closing(code, found.end() - 1)
        if last > 0:
            yield f"{code[: found.end()]}!({code[found.end() : last]}){code[last:]}{comment}"
    for found in re.finditer(r"\b(true|false)\b", code):
        yield code[: found.start()] + {"true": "false", "false": "true"}[found.group()] + code[found.end() :] + comment
    if (
        STATEMENT.match(code)
        or re.match(r"^\s*\w+ := .*[^{]$", code)
        or re.match(r"^\s*m(store8?|copy)\(.*\)\s*$", code)
    ):
        yield re.match(r"\s*", code)[0] + comment  # type: ignore[index]  # matches every line
    found_branch = re.match(r"^(\s*if .*)\{ (.*) \}\s*$", code)
    if found_branch:
        yield found_branch[1] + "{ }" + comment


def mutants(path: str) -> list[Mutant]:
    """All mutants of a file, without repetitions."""
    found = {}
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if SKIPPED.match(line) or not line.strip():
            continue
        for after in variants(line):
            if after.strip() != line.strip():
                found[number, after] = Mutant(path, number, line, after)
    return list(found.values())


def closure(paths: list[str]) -> set[str]:
    """The files and everything that they import, relative to the root."""
    seen: set[str] = set()
    todo = list(paths)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for target in re.findall(r'from "(\.[^"]+)"|import "(\.[^"]+)"', (ROOT / path).read_text()):
            imported = ((ROOT / path).parent / (target[0] or target[1])).resolve()
            todo.append(str(imported.relative_to(ROOT)))
    return seen


class Workshop:
    """A copy of what the tests of one file need, where mutants are compiled and run."""

    def __init__(self, directory: Path, path: str) -> None:
        """Copy, compile and run the tests once; exits if they fail."""
        self.directory = directory
        self.path = path
        self.text = (ROOT / path).read_text()
        tests = [f"tests/forge/{name}" for name in TESTS[path]]
        for name in [*closure([path, *tests]), ".ci/solc", "foundry.toml", REMAPPED]:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
        for name in ("node_modules", "fixtures"):
            (directory / name).symlink_to((ROOT / name).resolve())
        start = time.monotonic()
        done = self.test(600)
        if done is None or done.returncode:
            raise SystemExit(f"the tests of {path} fail before any mutation\n{done.stdout[-3000:] if done else ''}")
        start = time.monotonic()
        self.limit = 10 * (time.monotonic() - start) + 60
        self.bytes = self.compiled()

    def test(self, limit: float) -> subprocess.CompletedProcess[str] | None:
        """Run the tests up to the first failure; None if they take too long."""
        command = [FORGE, "test", "--fail-fast", "--threads", "1", "--color", "never"]
        try:
            return subprocess.run(
                command, cwd=self.directory, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return None

    def compiled(self) -> str:
        """A hash of all bytecode there is."""
        digest = hashlib.sha256()
        for file in sorted((self.directory / "build" / "forge").rglob("*.json")):
            artifact = json.loads(file.read_text())
            if "bytecode" in artifact:
                digest.update(f"{file.name} {artifact['bytecode']['object']}\n".encode())
        return digest.hexdigest()

    def fate(self, mutant: Mutant) -> str:
        """What becomes of the mutant: killed, stillborn, equal or survives."""
        lines = self.text.splitlines()
        lines[mutant.number - 1] = mutant.after
        (self.directory / self.path).write_text("\n".join(lines) + "\n")
        done = self.test(self.limit)
        if done is None:
            return "killed"
        if done.returncode:
            return "stillborn" if "Compiler run failed" in done.stdout + done.stderr else "killed"
        return "equal" if self.compiled() == self.bytes else "survives"


def justified() -> set[tuple[str, str, str]]:
    """Path, original and mutant of every survivor that has a reason."""
    blocks = re.findall(r"^(\S+): .+\n- (.*)\n\+ (.*)$", JUSTIFIED.read_text(), re.M)
    return {(path, before.strip(), after.strip()) for path, before, after in blocks}


def judge(path: str, todo: list[Mutant], workshop: "Workshop") -> dict[Mutant, str]:
    """What becomes of mutants that are compiled and run together; those that survive are looked at once more alone."""
    fates: dict[Mutant, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in (".ci/solc", "foundry.toml", REMAPPED):
            (Path(temporary) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, Path(temporary) / name)
        (Path(temporary) / "node_modules").symlink_to(ROOT / "node_modules")
        shutil.copytree(ROOT / "fixtures", Path(temporary) / "fixtures")
        tests = [f"tests/forge/{name}" for name in TESTS[path]]
        for number, mutant in enumerate(todo):
            copy = Path(temporary) / "tests" / "forge" / f"m{number}"
            for name in closure([path, *tests]):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
            lines = (ROOT / path).read_text().splitlines()
            lines[mutant.number - 1] = mutant.after
            (copy / path).write_text("\n".join(lines) + "\n")
        while len(fates) < len(todo):
            command = [FORGE, "test", "--json", "--threads", "1", "--allow-failure"]
            done = subprocess.run(command, cwd=temporary, capture_output=True, text=True, check=False)
            output = done.stdout + done.stderr
            broken = {int(n) for n in re.findall(r"Error[^\n]*\n\s*--> tests/forge/m(\d+)/", output)}
            for number in broken:
                fates[todo[number]] = "stillborn"
                shutil.rmtree(Path(temporary) / "tests" / "forge" / f"m{number}")
            if broken:
                continue
            start = done.stdout.find('{"tests/')
            if start < 0:
                sys.exit(f"no results of {path}:\n{output[-3000:]}")
            suites = json.loads(done.stdout[start:].splitlines()[0])
            for number, mutant in enumerate(todo):
                results = [
                    result["status"]
                    for suite, content in suites.items()
                    if suite.startswith(f"tests/forge/m{number}/")
                    for result in content["test_results"].values()
                ]
                if mutant not in fates:
                    if not results:
                        sys.exit(f"{path}: no test ran for {mutant}")
                    fates[mutant] = "killed" if "Failure" in results else workshop.fate(mutant)
    return fates


def attack_together(path: str, todo: list[Mutant], size: int, end: float) -> dict[str, list[Mutant]]:
    """As `attack`, one batch of `size` mutants after the other."""
    fates: dict[str, list[Mutant]] = {name: [] for name in ("killed", "stillborn", "equal", "survives", "not run")}
    with tempfile.TemporaryDirectory() as temporary:
        workshop = Workshop(Path(temporary), path)
        for first in range(0, len(todo), size):
            batch = todo[first : first + size]
            found = judge(path, batch, workshop) if time.monotonic() < end else dict.fromkeys(batch, "not run")
            for mutant, fate in found.items():
                fates[fate].append(mutant)
    return fates


def attack(path: str, todo: list[Mutant], workers: int, end: float) -> dict[str, list[Mutant]]:
    """Run mutants side by side until all have been run or the time is over."""
    fates: dict[str, list[Mutant]] = {name: [] for name in ("killed", "stillborn", "equal", "survives", "not run")}
    with tempfile.TemporaryDirectory() as temporary:
        free: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        for number in range(workers):
            free.put(Workshop(Path(temporary) / str(number), path))

        def run(mutant: Mutant) -> tuple[str, Mutant]:
            if time.monotonic() > end:
                return "not run", mutant
            shop = free.get()
            try:
                return shop.fate(mutant), mutant
            finally:
                free.put(shop)

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for fate, mutant in pool.map(run, todo):
                fates[fate].append(mutant)
    return fates


def main() -> int:
    """Mutate every file named; 1 if a mutant survives without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", default=list(TESTS))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--lines", default="1-100000", help="only mutants of these lines, as 10-25")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    options = parser.parse_args()
    first, last = (int(number) for number in options.lines.split("-"))
    reasons = justified()
    bad = 0
    for path in options.files:
        todo = [mutant for mutant in mutants(path) if first <= mutant.number <= last]
        random.Random(0).shuffle(todo)
        if options.list:
            print("\n".join(f"{m.path}:{m.number}\n- {m.before.strip()}\n+ {m.after.strip()}" for m in todo))
            continue
        start = time.monotonic()
        end = start + options.seconds / len(options.files)
        if options.batch:
            fates = attack_together(path, todo, options.batch, end)
        else:
            fates = attack(path, todo, options.workers, end)
        excused = [m for m in fates["survives"] if (path, m.before.strip(), m.after.strip()) in reasons]
        for m in sorted(set(fates["survives"]) - set(excused), key=lambda m: m.number):
            bad += 1
            print(f"{path}:{m.number} survives\n- {m.before.strip()}\n+ {m.after.strip()}")
        numbers = ", ".join(f"{len(found)} {fate}" for fate, found in fates.items())
        print(
            f"{path}: {numbers} ({len(excused)} of the survivors with a reason); {time.monotonic() - start:.0f} s",
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
