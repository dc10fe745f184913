"""Rounds of drand from its relays over HTTP; nothing that a relay says is believed before it is verified."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from typing import Any

import requests

from pol.commitments import canonical_json
from pol.errors import OperationalError, PolError, ProtocolError
from pol.training.storage.http_files import HttpFiles, HttpPatience, TooLongError
from pol.verification.beacon.drand import QUICKNET, DrandNetwork, Round, verify_round

TIMEOUT = 10.0
LIMIT = 4096
"""Bytes of an answer; a round takes 700 at most."""

RoundSource = Callable[[int], Round]
"""Gives the round of a number, verified."""


class Relays:
    """HTTP relays of one drand network, asked in this order; the user names them, there is no default.

    Args:
        hosts: base URLs; below each lies ``/CHAIN_HASH/public/ROUND``.
        network: which network's rounds.
        timeout: seconds that each relay has for its whole answer, from the connection to the last byte.
    """

    def __init__(self, hosts: Sequence[str], network: DrandNetwork = QUICKNET, timeout: float = TIMEOUT) -> None:
        if not hosts:
            raise ProtocolError("no relay of drand is named: give the URL of one at least")
        self.hosts = [host.rstrip("/") for host in hosts]
        self.network = network
        self.timeout = timeout

    def round(self, number: int) -> Round:
        """Round ``number`` from the first relay that has it, verified.

        Raises:
            ProtocolError: there is no such round.
            OperationalError: no relay gave it. So too if one gave something else: that is a relay's fault and says
                nothing about anyone in a task.
        """
        due = self.network.time_of(number)
        faults: list[str] = []
        for host in self.hosts:
            try:
                return self._ask(host, number)
            except PolError as error:
                faults.append(f"{host}: {error}")
        raise OperationalError(
            f"no relay gives round {number} of {self.network.name}, due at second {due} since 1970; try again later or "
            f"name another relay ({'; '.join(faults)})"
        )

    def _ask(self, host: str, number: int) -> Round:
        url = f"{host}/{self.network.chain_hash.hex()}/public/{number}"
        patience = HttpPatience(self.timeout, self.timeout, self.timeout, total=self.timeout)
        # Proxies and authorities are those that the endpoints of nodes are asked with.
        options: dict[str, Any] = {"client_kwargs": {"trust_env": True}}
        try:
            if host.lower().startswith("https:"):
                options["ssl"] = _authorities()
            text = HttpFiles(options, patience, redirects=0).read(url, LIMIT)
        except TooLongError as error:
            raise ProtocolError(f"answers with more than {LIMIT} bytes") from error
        except (OSError, ValueError) as error:
            raise OperationalError(f"doesn't answer with a round: {error}") from error
        published, randomness = _parse(text)
        if published.number != number:
            raise ProtocolError(f"answers with round {published.number}")
        if verify_round(self.network, published) != randomness:
            raise ProtocolError("answers with another randomness than its signature's")
        return published


def _authorities() -> ssl.SSLContext:
    """Of certificates: those that `requests` would ask."""
    place = (
        os.environ.get("REQUESTS_CA_BUNDLE")
        or os.environ.get("CURL_CA_BUNDLE")
        or requests.utils.DEFAULT_CA_BUNDLE_PATH
    )
    if os.path.isdir(place):
        return ssl.create_default_context(capath=place)
    return ssl.create_default_context(cafile=place)


def _parse(text: bytes) -> tuple[Round, bytes]:
    try:
        entry: Any = canonical_json.parse(text, "answers with something else than a round: it")
        number = entry["round"]
        parts = [bytes.fromhex(entry[name]) for name in ("signature", "randomness")]
        previous = bytes.fromhex(entry.get("previous_signature", ""))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProtocolError(f"answers with something else than a round: {error!r}") from error
    if type(number) is not int:
        raise ProtocolError(f"answers with {number!r} for the number of a round")
    return Round(number, parts[0], previous), parts[1]
