#!/usr/bin/env python3
"""Run the campaigns of the rules of incentives and market; fails if a rule breaks, a call reverts or calls are missing.

    invariants.py [--calls N] [--seconds N] [--workers N] [CAMPAIGN ...]

A campaign is a contract of tests/forge whose function `invariant_*` holds after the calls of a handler, in an order
and with arguments that forge draws; none of the calls may revert. Pieces of a campaign have seeds of their own. What
has been run is kept in build/audit/invariants.json, and counts as long as the contracts and tests of the campaign stay
as they are: a run that was cut off, by --seconds too, goes on where it was. Of some campaigns, only their part of the
calls is asked for.
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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Campaign:
    """Of so many in a thousand calls."""

    name: str
    path: str
    share: int


CAMPAIGNS = (
    Campaign("EtherVaultTest", "tests/forge/incentives/VaultInvariants.t.sol", 225),
    Campaign("CoinVaultTest", "tests/forge/incentives/VaultInvariants.t.sol", 225),
    Campaign("LotteryInvariantsTest", "tests/forge/incentives/LotteryInvariants.t.sol", 225),
    Campaign("AuctionInvariantsTest", "tests/forge/incentives/AuctionInvariants.t.sol", 225),
    Campaign("ConservationTest", "tests/forge/market/Conservation.t.sol", 100),
)


def digest(campaign: Campaign) -> str:
    """Of everything that the campaign compiles, and of the settings."""
    names = sorted({*closure([campaign.path]), "foundry.toml"})
    return hashlib.sha256(b"\0".join(name.encode() + b"\0" + (ROOT / name).read_bytes() for name in names)).hexdigest()


def forge(*arguments: str, **settings: str) -> str:
    """What forge prints; exits with all of it if it fails."""
    done = subprocess.run(
        [FORGE, "test", *arguments], cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout[-8000:] + done.stderr[-4000:])
    return done.stdout


def run(campaign: Campaign, seed: int, calls: int) -> dict[str, int]:
    """Calls that one piece has made, and how many of them reverted."""
    chosen = ("--match-path", campaign.path, "--match-contract", f"^{campaign.name}$", "--match-test", "^invariant_")
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
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=", ".join(c.name for c in CAMPAIGNS))
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no piece after so many")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = [c for c in CAMPAIGNS if c.name in options.campaigns or not options.campaigns]
    if not set(options.campaigns) <= {c.name for c in chosen}:
        parser.error(f"the campaigns are {', '.join(c.name for c in CAMPAIGNS)}")
    end = time.monotonic() + options.seconds
    lock = threading.Lock()
    digests = {campaign.name: digest(campaign) for campaign in chosen}
    kept: dict[str, dict[str, int]] = json.loads(DONE.read_text()) if DONE.exists() else {}
    needed = {c.name: -(-options.calls * c.share // 1000) for c in chosen}

    def key(campaign: Campaign, seed: int) -> str:
        return f"{campaign.name} {digests[campaign.name]} {seed}"

    def total(campaign: Campaign, what: str) -> int:
        start = key(campaign, 0).removesuffix("0")
        return sum(found[what] for name, found in kept.items() if name.startswith(start))

    def piece(campaign: Campaign, seed: int, calls: int) -> None:
        if time.monotonic() >= end:
            return
        found = run(campaign, seed, calls)
        with lock:
            kept[key(campaign, seed)] = found
            DONE.parent.mkdir(parents=True, exist_ok=True)
            DONE.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"{campaign.name}, seed {seed}: {found['calls']} calls, {found['reverts']} reverted", flush=True)

    # Once, before several processes would compile the same. Campaigns go side by side, piece by piece.
    forge("--list", "--match-path", f"{{{','.join(sorted({c.path for c in chosen}))}}}")
    todo = []
    for campaign in chosen:
        missing, seed = needed[campaign.name] - total(campaign, "calls"), 1
        while missing > 0:
            if key(campaign, seed) not in kept:
                todo.append((seed, campaign, min(PIECE, missing)))
                missing -= PIECE
            seed += 1
    todo.sort(key=lambda one: one[0])
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for waiting in [pool.submit(piece, campaign, seed, calls) for seed, campaign, calls in todo]:
            waiting.result()
    for campaign in chosen:
        print(f"{campaign.name}: {total(campaign, 'calls')} of {needed[campaign.name]} calls")
    calls, reverts = (sum(total(campaign, what) for campaign in chosen) for what in ("calls", "reverts"))
    print(f"all: {calls} calls, {reverts} reverted")
    return 0 if calls >= sum(needed.values()) and reverts == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
