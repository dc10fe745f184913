#!/usr/bin/env python3
"""Run the campaign of the rules of the market; fails if a rule breaks, a call reverts or calls are missing.

    invariants.py [--calls N] [--seconds N] [--workers N]

The function `invariant_*` of the campaign holds after the calls of a handler, in an order and with arguments that
forge draws; none of the calls may revert. Pieces of the campaign have seeds of their own. What has been run is kept in
build/audit/invariants.json, and counts as long as the contracts and tests of the campaign stay as they are: a run that
was cut off, by --seconds too, goes on where it was.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).with_name("mutation")))

from mutants import ROOT, closure

FORGE = ROOT / "node_modules" / "@foundry-rs" / "forge-linux-amd64" / "bin" / "forge"
DONE = ROOT / "build" / "audit" / "invariants.json"
DEPTH = 128
"""Calls of one run."""
PIECE = 160 * DEPTH
"""Calls of one process: minutes."""


NAME, PATH = "ConservationTest", "tests/forge/market/Conservation.t.sol"


def digest() -> str:
    """Of everything that the campaign compiles, and of the settings."""
    names = sorted({*closure([PATH]), "foundry.toml"})
    return hashlib.sha256(b"\0".join(name.encode() + b"\0" + (ROOT / name).read_bytes() for name in names)).hexdigest()


def forge(*arguments: str, **settings: str) -> str:
    """What forge prints; exits with all of it if it fails."""
    done = subprocess.run(
        [FORGE, "test", *arguments], cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout[-8000:] + done.stderr[-4000:])
    return done.stdout


def run(seed: int, calls: int) -> dict[str, int]:
    """Calls that one piece has made, and how many of them reverted."""
    chosen = ("--match-path", PATH, "--match-contract", f"^{NAME}$", "--match-test", "^invariant_")
    settings = {"FOUNDRY_INVARIANT_RUNS": str(-(-calls // DEPTH)), "FOUNDRY_INVARIANT_DEPTH": str(DEPTH)}
    out = forge("--json", "--threads", "1", "--fuzz-seed", str(seed), *chosen, **settings)
    suites = json.loads(next(line for line in out.splitlines() if line.startswith('{"tests/')))
    (suite,) = suites.values()
    (result,) = suite["test_results"].values()
    kind: dict[str, Any] = result["kind"]["Invariant"]
    return {"calls": kind["calls"], "reverts": kind["reverts"]}


def main() -> int:
    """Run what is missing; 1 if too little was run, or something reverted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no piece after so many")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    lock = threading.Lock()
    start = f"{NAME} {digest()} "
    kept: dict[str, dict[str, int]] = json.loads(DONE.read_text()) if DONE.exists() else {}

    def total(what: str) -> int:
        return sum(found[what] for name, found in kept.items() if name.startswith(start))

    def piece(seed: int, calls: int) -> None:
        if time.monotonic() >= end:
            return
        found = run(seed, calls)
        with lock:
            kept[f"{start}{seed}"] = found
            DONE.parent.mkdir(parents=True, exist_ok=True)
            DONE.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"seed {seed}: {found['calls']} calls, {found['reverts']} reverted", flush=True)

    # Once, before several processes would compile the same.
    forge("--list", "--match-path", PATH)
    todo, missing, seed = [], options.calls - total("calls"), 1
    while missing > 0:
        if f"{start}{seed}" not in kept:
            todo.append((seed, min(PIECE, missing)))
            missing -= PIECE
        seed += 1
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for waiting in [pool.submit(piece, seed, calls) for seed, calls in todo]:
            waiting.result()
    calls, reverts = total("calls"), total("reverts")
    print(f"{NAME}: {calls} of {options.calls} calls, {reverts} reverted")
    return 0 if calls >= options.calls and reverts == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
