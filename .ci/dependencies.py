"""Writes docs/dependencies.md: what an installation of pol brings, under which licence and why.

``.venv/bin/python .ci/dependencies.py [--check]``, in an environment that .ci/setup --dev has made.
"""

import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
WHY = {
    "aiohttp": "reads stores over HTTP, and serves them; brings its C speed-ups",
    "click": "the command line",
    "cryptography": "Ed25519 and X25519: signed heads, attestations, sealed stores",
    "fsspec": "stores: folders, HTTP, S3 and others behind one interface",
    "numpy": "words of tensors, the reference executor",
    "pymerkle": "the checkpoint log of RFC 9162",
    "rfc8785": "canonical JSON, whose bytes are hashed",
    "rich": "tables and progress on a terminal",
    "zstandard": "checkpoints as compressed updates",
    "prometheus-client": "metrics of `pol run` and `pol monitor`",
    "tomlkit": "`pol config` changes a pol.toml and keeps its comments",
    "web3": "nodes, contracts, transactions",
    "eth-keys": "secp256k1 keys of workers, which a contract can check",
    "py-arkworks-bls12381": "verifies drand's signatures fast",
    "py-ecc": "verifies them as the reference does; exact proofs of steps",
    "requests": "relays of drand",
    "torch": "capture, stock kernels, the recorder",
}
"""By direct dependency of the core and of the extras that roles are made of: its job."""
ROLES = {
    "": "replay, audit, verify, inspect, serve: whoever checks without a chain",
    "whistleblower": "watch a market, object, challenge; audit rounds",
    "verifier": "take seats on a market",
    "operator": "deploy, monitor, relay",
    "solver": "train for a fee",
    "submitter": "publish a task and pay for it",
    "demo": "`pol demo`",
}
POL = "proof-of-learning"
NOT_COUNTED = re.compile(r"nvidia-|cuda-|triton")
"""Parts of torch's builds for GPUs: their names change with each release of torch and with the platform."""


@cache
def closure(extra: str) -> dict[str, set[str]]:
    """All distributions that an installation brings; for each, the direct dependencies that need it."""
    found: dict[str, set[str]] = {}
    for direct, extras in _needs(POL, extra):
        seen: set[tuple[str, str]] = set()
        waiting = [(direct, each) for each in ("", *extras)]
        while waiting:
            name, part = waiting.pop()
            if (name, part) in seen or NOT_COUNTED.match(name):
                continue
            seen.add((name, part))
            waiting += [(needed, each) for needed, those in _needs(name, part) for each in ("", *those)]
        for name, _ in seen:
            found.setdefault(name, set()).add(direct)
    return found


def _needs(name: str, extra: str) -> list[tuple[str, frozenset[str]]]:
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        sys.exit(f"{name} isn't installed: run .ci/setup --dev first")
    found: list[tuple[str, frozenset[str]]] = []
    for requirement in map(Requirement, lines):
        marker, own = requirement.marker, canonicalize_name(requirement.name)
        if marker is not None and not any(marker.evaluate({"extra": each}) for each in ("", extra)):
            continue
        if own == POL:
            found += [each for part in requirement.extras for each in _needs(POL, part)]
        else:
            found.append((own, frozenset(requirement.extras)))
    return found


def licence(name: str) -> str:
    """What its author says."""
    about = metadata(name)
    if about.get("License-Expression"):
        return about["License-Expression"]
    classified = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License")]
    classified = [line for line in classified if line != "OSI Approved"]
    text = (about.get("License") or "").strip().splitlines()
    return ", ".join(classified) or (text[0][:60] if text else "unknown")


def page() -> str:
    """The whole page."""
    core = closure("")
    lines = [
        "# Dependencies",
        "",
        f"`pip install {POL}` brings {len(core)} distributions: {len(_needs(POL, ''))} that pol imports, and what they",
        "need. No torch, no compiler:",
        "each has wheels for CPython 3.11 to 3.14 on x86-64 and arm64. Roles add extras ([installation](install.md)).",
        "`.ci/dependencies.py` writes this page from the locked set (`.ci/constraints.txt`); a test compares it.",
        "",
        "| install | who | distributions |",
        "| --- | --- | --- |",
    ]
    for extra, who in ROLES.items():
        name = f"`{POL}[{extra}]`" if extra else f"`{POL}`"
        lines.append(f"| {name} | {who} | {len(closure(extra))} |")
    lines += ["", "torch counts without the parts of its builds for GPUs.", ""]
    lines += ["## Core", "", *_table(core, _needs(POL, ""))]
    for extra, title in (("chain", "Chain"), ("rounds", "Rounds"), ("beacon", "Beacon"), ("train", "Train")):
        more = {name: by for name, by in closure(extra).items() if name not in core}
        direct = [each for each in _needs(POL, extra) if each[0] in more and each[0] not in core]
        lines += ["", f"## {title}: `{POL}[{extra}]` adds {len(more)}", "", *_table(more, direct)]
    return "\n".join(lines) + "\n"


def _table(found: dict[str, set[str]], direct: list[tuple[str, frozenset[str]]]) -> list[str]:
    names = {name for name, _ in direct}
    rows = ["| distribution | licence | why |", "| --- | --- | --- |"]
    for name in sorted(found, key=lambda each: (each not in names, each)):
        by = ", ".join(sorted(found[name] & names)) if names else ""
        why = WHY[name] if name in names else f"needed by {by}"
        rows.append(f"| {'**' + name + '**' if name in names else name} | {licence(name)} | {why} |")
    return rows


def main() -> None:
    """Write the page, or compare it."""
    made = page()
    if "--check" not in sys.argv:
        PAGE.write_text(made)
    elif PAGE.read_text() != made:
        sys.exit("docs/dependencies.md isn't that of what is installed: run .venv/bin/python .ci/dependencies.py")


if __name__ == "__main__":
    main()
