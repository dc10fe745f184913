#!/usr/bin/env python3
"""Compare the gas of the calls in tests/forge/gas with the record gas.json; fails if one has become dearer.

    gas.py [--write | RESULTS]

--write makes what is measured now the record; RESULTS is what `forge test --json` said of these tests and others.
A little more is let pass: the optimizer shuffles the stack when neighbouring code changes.
"""

import json
import subprocess
import sys
from pathlib import Path

from artifacts import FORGE, alone

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / ".ci" / "gas.json"
TESTS = "tests/forge/gas/"
TOLERANCE = 30


def run() -> str:
    """What forge says of the tests."""
    command = [FORGE, "test", "--json", "--match-path", f"{TESTS}*"]
    with alone(ROOT / "build" / "forge"):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout


def measured(said: str) -> dict[str, int]:
    """Gas of every test, by its name."""
    suites = json.loads(said[said.index("{") :])
    results = {
        name: test
        for path, suite in suites.items()
        if path.startswith(TESTS)
        for name, test in suite["test_results"].items()
    }
    return {name.removesuffix("()"): test["kind"]["Unit"]["gas"] for name, test in sorted(results.items())}


def main(arguments: list[str]) -> int:
    """Compare or write; 1 if a call is dearer than its record or has none."""
    if len(arguments) > 1:
        raise SystemExit("usage: gas.py [--write | RESULTS]")
    write = arguments == ["--write"]
    found = measured(Path(arguments[0]).read_text() if arguments and not write else run())
    if write:
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    record: dict[str, int] = json.loads(RECORD.read_text())
    dearer = [name for name, gas in found.items() if gas > record.get(name, -TOLERANCE) + TOLERANCE]
    gone = sorted(record.keys() - found.keys())
    for name in dearer:
        print(f"{name}: {found[name]} gas, on record {record.get(name, 'nothing')}")
    for name in gone:
        print(f"{name}: on record, but not measured")
    return 1 if dearer or gone else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
