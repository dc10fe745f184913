#!/usr/bin/env python3
"""Change a contract in one place after the other and run the tests that should notice; fails if one does not.

    mutate.py [--seconds N] [--workers N] [--sample N] [--check N] [--lines A-B] [--forge] [--list] FILE ...

Files for which there are cases in bulk (`bulk.py`), and those of the court, which its tests deploy by name
(`deployed.py`), are attacked so first, and what survives without a reason by the forge tests below; all others, and
everything with --forge, by the forge tests alone. A mutant is killed if a result differs, a test
fails or the tests take ten times as long as usual, stillborn if it does not compile, and equal if the compiler makes
the same bytes of it. The others survive. Survivors that have a good reason are listed in mutants.txt beside this file,
three lines each: `PATH: reason`, the original line after `- ` and the mutant after `+ `. With --seconds the mutants
come in a drawn order (fixed seed), and those for which no time is left are counted and not run. With --check so many of
the mutants that are killed sixty at a time are run alone as well, and have to be killed there too.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bulk
import deployed
from mutants import ROOT, Mutant, justified, mutants, own

os.environ["POL_SOLC_CACHE"] = "off"  # thousands of outputs, none of which is read again

FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"

# The tests that answer for a file. They run for every mutant: only those that look closely, and deploy nothing by name.
TESTS = {
    "contracts/arithmetic/Float32.sol": ("proofs/Float32Laws.t.sol",),
    "contracts/arithmetic/ScalarMachine.sol": ("arithmetic/ScalarMachine.t.sol",),
    "contracts/dispute/Clock.sol": ("proofs/ClockLaws.t.sol",),
    "contracts/dispute/ClockExpiry.sol": ("proofs/DisputesLaws.t.sol",),
    "contracts/dispute/DisputeStorage.sol": ("proofs/DisputesLaws.t.sol",),
    "contracts/dispute/Distance.sol": ("dispute/DistanceVectors.t.sol", "proofs/DistanceLaws.t.sol"),
    "contracts/dispute/FrameHash.sol": ("dispute/FrameHash.t.sol",),
    "contracts/dispute/OpeningSize.sol": ("dispute/OpeningSize.t.sol",),
    "contracts/incentives/Auction.sol": ("incentives/AuctionOpen.t.sol",),
    "contracts/incentives/ForcedErrors.sol": ("incentives/ForcedErrors.t.sol",),
    "contracts/incentives/Jackpot.sol": ("incentives/LotteryDeployment.t.sol",),
    "contracts/incentives/Ranks.sol": ("incentives/Ranks.t.sol",),
    "contracts/incentives/Sortition.sol": ("incentives/LotteryDeployment.t.sol",),
    "contracts/incentives/StakeVault.sol": ("incentives/VaultDeployment.t.sol",),
    "contracts/incentives/ThroughputLimit.sol": ("incentives/AuctionOpen.t.sol",),
}


class Workshop:
    """A copy of what the tests of one file need, where mutants are compiled and run."""

    def __init__(self, directory: Path, path: str) -> None:
        """Copy, compile and run the tests once; exits if they fail."""
        self.directory = directory
        self.path = path
        self.text = (ROOT / path).read_text()
        tests = [f"tests/forge/{name}" for name in TESTS[path]]
        for name in [*own([path, *tests]), ".ci/solc", "foundry.toml"]:
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
        (self.directory / self.path).write_text(mutant.applied(self.text))
        done = self.test(self.limit)
        if done is None:
            return "killed"
        if done.returncode:
            return "stillborn" if "Compiler run failed" in done.stdout + done.stderr else "killed"
        return "equal" if self.compiled() == self.bytes else "survives"


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


def fates_of(path: str, todo: list[Mutant], options: argparse.Namespace, end: float) -> dict[str, list[Mutant]]:
    """The mutants by what becomes of them, in bulk or deployed by name, and by the forge tests."""
    special = bulk if path in bulk.FILES else deployed
    if path not in special.FILES or options.forge:
        return attack(path, todo, options.workers, end)
    fates = deployed.attack(path, todo, end, options.check) if special is deployed else bulk.attack(path, todo, end)
    reasons = justified()
    survivors = {mutant for mutant in fates["survives"] if mutant.key not in reasons}
    # Also what the compiler makes the same bytes of: only tests may call it.
    rest = [*fates["equal"], *survivors]
    if rest and path in TESTS:
        print(f"{path}: {len(fates['killed'])} killed, {len(rest)} more to be tried by forge", flush=True)
        fates["survives"] = [mutant for mutant in fates["survives"] if mutant not in survivors]
        fates["equal"] = []
        for fate, found in attack(path, rest, options.workers, end).items():
            for mutant in found:
                # The tests need not contain all that a contract does.
                fates["survives" if fate == "equal" and mutant in survivors else fate].append(mutant)
    return fates


def main() -> int:
    """Mutate every file named; 1 if a mutant survives without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", default=sorted({*TESTS, *bulk.FILES, *deployed.FILES}))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sample", type=int, default=None, help="only so many of them, drawn by a fixed seed")
    parser.add_argument("--check", type=int, default=0, help="run so many of those killed sixty at a time alone, too")
    parser.add_argument("--lines", default="1-100000", help="only mutants of these lines, as 10-25")
    parser.add_argument("--forge", action="store_true", help="only the tests in Solidity")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    options = parser.parse_args()
    first, last = (int(number) for number in options.lines.split("-"))
    reasons = justified()
    bad = 0
    for path in options.files:
        todo = [mutant for mutant in mutants(path) if first <= mutant.number <= last]
        random.Random(0).shuffle(todo)
        todo = todo[: options.sample]
        if options.list:
            print("\n".join(f"{m.path}:{m.number}\n- {m.before.strip()}\n+ {m.after.strip()}" for m in todo))
            continue
        start = time.monotonic()
        end = start + options.seconds / len(options.files)
        fates = fates_of(path, todo, options, end)
        excused = [m for m in fates["survives"] if m.key in reasons]
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
