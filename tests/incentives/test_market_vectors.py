"""One vector file per rule that Python and Solidity share; forge reads the same files.

Run this module to write them anew.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pymerkle import InmemoryTree

from pol.incentives import payouts
from pol.incentives.payouts import Deal, Payout
from pol.verification.sampling import draw

VECTORS = Path(__file__).resolve().parents[2] / "fixtures" / "vectors"
ETHER = 10**18


def payout_vectors() -> dict[str, Any]:
    """Amounts as decimal strings: JSON readers lose integers beyond 2^53."""
    deals = [
        Deal(10 * ETHER, 8 * ETHER, ETHER, 5 * ETHER, 3 * ETHER, ETHER),
        Deal(ETHER, ETHER - 1, 1, 2, 2, 1),
        Deal(1_000_003, 900_001, 99_991, 199_999, 31, 13),
        Deal(1_000_003, 900_001, 99_991, 199_999, 1_601, 101),
        Deal((1 << 96) + 1, 1 << 95, (1 << 80) + 1, (1 << 81) + 3, (1 << 79) + 1, (1 << 78) - 1),
    ]
    rows = {
        "accepted": payouts.accepted,
        "rejected": payouts.rejected,
        "challengerRight": payouts.challenger_right,
        "challengerWrong": payouts.challenger_wrong,
        "solverDefaulted": payouts.solver_defaulted,
        "verifierDefaulted": payouts.verifier_defaulted,
        "cancelled": payouts.cancelled,
    }
    return {
        "count": len(deals),
        "deals": [
            {
                **{name: str(amount) for name, amount in asdict(deal).items()},
                **{row: {who: str(wei) for who, wei in asdict(pay(deal)).items()} for row, pay in rows.items()},
                "challengeMoot": _after(1, deal, payouts.challenge_moot),
                "challengerWrongAgain": _after(5, deal, payouts.challenger_wrong),
                "challengerRightAtLast": _after(5, deal, payouts.challenger_right),
            }
            for deal in deals
        ],
    }


def _after(earlier: int, deal: Deal, pay: Callable[[Deal], Payout]) -> dict[str, str]:
    """What the challenge after ``earlier`` others pays."""
    bond = payouts.bond_after(deal.bond, deal.verifier_stake, earlier)
    return {who: str(wei) for who, wei in asdict(pay(replace(deal, bond=bond))).items()}


def draw_vectors() -> dict[str, Any]:
    """Seeds and shapes, up to 32 of 32 segments, with what they draw."""
    shapes = [(1, 1), (2, 2), (4, 2), (10, 3), (32, 32), (33, 32), (1_000_003, 32), ((1 << 32) - 2, 5)]
    seeds = [hashlib.sha256(f"seed {i}".encode()).digest() for i in range(len(shapes))]
    return {
        "seed": ["0x" + seed.hex() for seed in seeds],
        "segments": [segments for segments, _ in shapes],
        "drawn": [draw(seed, *shape) for seed, shape in zip(seeds, shapes, strict=True)],
    }


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def split(size: int) -> int:
    return 1 << (size - 1).bit_length() - 1


def root(entries: list[bytes]) -> bytes:
    """MTH of RFC 9162, section 2.1.1."""
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    k = split(len(entries))
    return node(root(entries[:k]), root(entries[k:]))


def inclusion(entries: list[bytes], index: int) -> list[bytes]:
    """PATH of RFC 9162, section 2.1.3.1."""
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if index < k:
        return [*inclusion(entries[:k], index), root(entries[k:])]
    return [*inclusion(entries[k:], index - k), root(entries[:k])]


def consistency(entries: list[bytes], prior: int, complete: bool = True) -> list[bytes]:
    """SUBPROOF of RFC 9162, section 2.1.4.1."""
    if prior == len(entries):
        return [] if complete else [root(entries)]
    k = split(len(entries))
    if prior <= k:
        return [*consistency(entries[:k], prior, complete), root(entries[k:])]
    return [*consistency(entries[k:], prior - k, False), root(entries[:k])]


def log_vectors() -> dict[str, Any]:
    """Roots by pymerkle, proofs by the RFC's definitions; lists run in parallel as forge reads no records."""
    entries = [hashlib.sha256(f"state {i}".encode()).digest() for i in range(33)]
    tree = InmemoryTree(algorithm="sha256")
    for entry in entries:
        tree.append_entry(entry)
    inclusions = [(i, n) for n in (1, 2, 3, 5, 8, 13, 32, 33) for i in sorted({0, 1, n // 2, n - 1}) if i < n]
    pairs = [(m, n) for n in (1, 2, 3, 7, 8, 9, 33) for m in sorted({1, 2, 4, 6, 8, 32, n}) if m <= n]

    def texts(path: list[bytes]) -> list[str]:
        return ["0x" + item.hex() for item in path]

    return {
        "entries": texts(entries),
        "roots": texts([tree.get_root(size) for size in range(1, len(entries) + 1)]),
        "inclusion_index": [i for i, _ in inclusions],
        "inclusion_size": [n for _, n in inclusions],
        "inclusion_path": [texts(inclusion(entries[:n], i)) for i, n in inclusions],
        "consistency_old_size": [m for m, _ in pairs],
        "consistency_size": [n for _, n in pairs],
        "consistency_path": [texts(consistency(entries[:n], m)) for m, n in pairs],
    }


FILES = {"payouts.json": payout_vectors, "draws.json": draw_vectors, "checkpoint_log.json": log_vectors}


@pytest.mark.parametrize("name", FILES)
def test_file_is_what_python_computes(name: str) -> None:
    assert json.loads((VECTORS / name).read_text()) == FILES[name]()


def test_pymerkle_and_the_rfc_agree_on_roots() -> None:
    vectors = log_vectors()
    entries = [bytes.fromhex(entry[2:]) for entry in vectors["entries"]]
    assert vectors["roots"] == ["0x" + root(entries[:n]).hex() for n in range(1, len(entries) + 1)]


if __name__ == "__main__":
    for file_name, compute in FILES.items():
        (VECTORS / file_name).write_text(json.dumps(compute(), indent=1) + "\n")
