"""The published rounds of drand, and a relay on loopback that answers with them or with what a test lets it answer."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopback_server import Quiet, serving
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

Answer = tuple[int, bytes]


def honest(network: str, number: str) -> Answer:
    """What the public relays answer."""
    entry: dict[str, Any] | None = VECTORS["networks"][network]["rounds"].get(number)
    if entry is None:
        return 404, b"no such round"
    fields = ("round", "randomness", "signature", "previous_signature")
    return 200, json.dumps({name: entry[name] for name in fields if name in entry}).encode()


@contextmanager
def relay(answer: Callable[[str, str], Answer] = honest) -> Iterator[str]:
    """URL of a relay; `answer(network, number)` gives status and body."""

    class Handler(Quiet):
        def respond(self) -> None:
            _, chain_hash, public, number = self.path.split("/")
            networks = {network["info"]["hash"]: name for name, network in VECTORS["networks"].items()}
            status, body = answer(networks[chain_hash], number) if public == "public" else (404, b"")
            self.reply(status, body, **({"Location": self.path} if status == 302 else {}))

    with serving(Handler) as server:
        yield server.url
