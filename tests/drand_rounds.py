"""The published rounds of fixtures/vectors/drand.json."""

import json
from pathlib import Path
from typing import Any

from pol.verification.beacon.drand import Round

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "fixtures" / "vectors" / "drand.json").read_text())


def as_round(entry: dict[str, Any]) -> Round:
    """An entry as the networks' relays answer it."""
    previous = bytes.fromhex(entry.get("previous_signature", ""))
    return Round(int(entry["round"]), bytes.fromhex(entry["signature"]), previous)


ROUNDS = {
    name: [as_round(entry) for entry in network["rounds"].values()] for name, network in VECTORS["networks"].items()
}
"""By the name of the network."""
