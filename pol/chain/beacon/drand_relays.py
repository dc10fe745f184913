"""Rounds of drand from its relays over HTTP, each verified before use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import requests

from pol.chain.rpc.http_deadline import TooLong, body_of, bounded_session, is_timeout, within
from pol.commitments import canonical_json
from pol.errors import OperationalError, PolError, ProtocolError
from pol.verification.beacon.drand import QUICKNET, DrandNetwork, Round, verify_round

TIMEOUT = 10.0
LIMIT = 4096
"""Highest number of bytes of an answer; a round takes 700 at most."""

RoundSource = Callable[[int], Round]
"""Returns the round of a number, verified."""


class Relays:
    """HTTP relays of one drand network, asked in this order. There is no default.

    Args:
        hosts: base URLs; below each lies ``/CHAIN_HASH/public/ROUND``.
        network: which network's rounds.
        timeout: seconds for the whole answer of a relay, from the connection to the last byte.
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
            OperationalError: no relay gave it. A wrong answer is the fault of a relay, never of a party of a task.
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
        try:
            with bounded_session() as session, within(self.timeout):
                answer = session.get(url, timeout=self.timeout, stream=True, allow_redirects=False)
                text = body_of(answer, LIMIT)
        except TooLong as error:
            raise ProtocolError(f"answers with more than {LIMIT} bytes") from error
        except requests.RequestException as error:
            reason = "in time" if is_timeout(error) else f"with a round: {error}"
            if isinstance(error, requests.ConnectionError) and not is_timeout(error):
                reason = "at this address"
            raise OperationalError(f"doesn't answer {reason}") from error
        if answer.status_code != requests.codes.ok:
            raise OperationalError(f"answers with HTTP status {answer.status_code}")
        published, randomness = _parse(text)
        if published.number != number:
            raise ProtocolError(f"answers with round {published.number}")
        if verify_round(self.network, published) != randomness:
            raise ProtocolError("answers with another randomness than its signature's")
        return published


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
