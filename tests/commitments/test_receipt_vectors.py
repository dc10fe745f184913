"""Vectors of receipts of execution, shared with Solidity; run as a script, this file writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.json_rows import json_rows
from pol.commitments.keccak import keccak256
from pol.commitments.receipt import RECEIPT_NODES, receipt_nodes, receipt_of, receipt_seed

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parent.parent.parent / "fixtures" / "vectors" / "receipts.json"
NODES = (1, 2, 3, 4, 7, 64, 1000, 2**31)


def vectors() -> dict[str, list[Any]]:
    """One column for each value; `drawn` and `roots` have four entries a row."""
    found: dict[str, list[Any]] = {
        name: [] for name in ("draw", "segment", "nodes", "seed", "drawn", "roots", "receipt")
    }
    for number, nodes in enumerate(NODES):
        draw, segment = keccak256(b"draw %d" % number), number * number * 1_000_003 % 2**32
        seed = receipt_seed(draw, segment)
        roots = [keccak256(b"root %d %d" % (number, place)) for place in range(RECEIPT_NODES)]
        row = ("0x" + draw.hex(), segment, nodes, "0x" + seed.hex(), receipt_nodes(seed, nodes))
        shown = (["0x" + root.hex() for root in roots], "0x" + receipt_of(roots).hex())
        for column, value in zip(found.values(), (*row, *shown), strict=True):
            column.extend(value) if isinstance(value, list) else column.append(value)
    return found


def test_the_vectors_hold() -> None:
    assert json.loads(FILE.read_text()) == vectors()


if __name__ == "__main__":
    FILE.write_text(json_rows(vectors()))
