#!/usr/bin/env python3
"""Measure which lines and branches of the contracts forge's tests reach; fails below all of them.

    coverage.py [FOLDER ...]    (default: dispute and incentives below contracts)

What the tool cannot see is listed in coverage_exceptions.txt beside this file, a line each: `PATH KIND TEXT #
reason`, where KIND is `line` or `branch` and TEXT is the source line without its indentation. An exception that
excuses nothing fails, too.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"
REPORT = ROOT / "build" / "audit" / "lcov.info"
EXCEPTIONS = ROOT / ".ci" / "coverage_exceptions.txt"
# Of arithmetic and commitments, tests in Python kill every mutant that has no reason to live.
FOLDERS = ("contracts/dispute", "contracts/incentives")
# Coverage compiles without the optimizer: what depends on exact gas is left out.
NOT_HERE = ("--no-match-test", "gas_never_changes|[Gg]as_snapshot|less_than_.*_gas", "--no-match-contract", "Gas")


def measure() -> str:
    """Run the tests of these folders and return forge's report."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    tests = "tests/forge/{arithmetic/**,commitments/**,dispute/**,incentives/**,proofs/**,market/StateLeaf.t.sol}"
    command = [FORGE, "coverage", "--match-path", tests, *NOT_HERE, "--report", "lcov", "--report-file", REPORT]
    profile = os.environ | {"FOUNDRY_PROFILE": "coverage"}
    done = subprocess.run(command, cwd=ROOT, env=profile, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-4000:] + done.stderr[-4000:])
    return REPORT.read_text()


def missed(report: str) -> Iterator[tuple[str, str, int]]:
    """Path, kind and line number of everything that no test reached."""
    path = ""
    for entry in report.splitlines():
        name, _, value = entry.partition(":")
        if name == "SF":
            path = value
        elif name == "DA" and value.split(",")[1] == "0":
            yield path, "line", int(value.split(",")[0])
        elif name == "BRDA" and value.split(",")[3] in ("0", "-"):
            yield path, "branch", int(value.split(",")[0])


def counts(report: str, folder: str) -> dict[str, int]:
    """Sums of forge's totals over the files of a folder: lines and branches, found and hit."""
    total = dict.fromkeys(("LF", "LH", "BRF", "BRH"), 0)
    path = ""
    for entry in report.splitlines():
        name, _, value = entry.partition(":")
        if name == "SF":
            path = value
        elif name in total and path.startswith(folder + "/"):
            total[name] += int(value)
    return total


def exceptions() -> dict[tuple[str, str, str], bool]:
    """The excused places; the value says whether anything was excused by it."""
    found = {}
    for entry in EXCEPTIONS.read_text().splitlines():
        if not entry or entry.startswith("#"):
            continue
        place, separator, reason = entry.rpartition(" # ")
        if not separator or not reason:
            raise SystemExit(f"{EXCEPTIONS.name}: no reason given: {entry}")
        path, kind, text = place.split(" ", 2)
        found[path, kind, text.strip()] = False
    return found


def main(folders: list[str]) -> int:
    """Print totals of the folders and everything that is missed and not excused."""
    folders = folders or list(FOLDERS)
    report = measure()
    excused = exceptions()
    failures = []
    for path, kind, number in missed(report):
        if not any(path.startswith(folder + "/") for folder in folders):
            continue
        text = (ROOT / path).read_text().splitlines()[number - 1].strip()
        if (path, kind, text) in excused:
            excused[path, kind, text] = True
        else:
            failures.append(f"{path}:{number}: {kind} not reached: {text}")
    for folder in folders:
        total = counts(report, folder)
        print(f"{folder}: {total['LH']}/{total['LF']} lines, {total['BRH']}/{total['BRF']} branches")
    stale = [
        place for place, used in excused.items() if not used and any(place[0].startswith(f + "/") for f in folders)
    ]
    failures += [f"{EXCEPTIONS.name}: nothing to excuse: {' '.join(place)}" for place in stale]
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
