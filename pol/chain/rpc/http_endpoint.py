"""One JSON-RPC endpoint over HTTP, and a record of its answers and failures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from pol.chain.rpc.http_deadline import TooLong, body_of, is_timeout, session_to, within
from pol.chain.rpc.rpc_methods import PINNED, RISING, LogRanges, NoLogs

LIMIT_EXCEEDED = (-32005, 429)
"""JSON-RPC codes for too many requests (EIP-1474; some gateways repeat the HTTP status); -32005 also for many logs."""

TOO_MUCH = frozenset({400, 413, *range(500, 600)})
"""HTTP statuses by which gateways refuse a range of logs, or fail because of its length."""

REST_SECONDS = 2.0
MOST_REST_SECONDS = 120.0
MOST_BYTES = 256 << 20
MOST_TOGETHER = 1000
"""Requests of a batch; many public nodes take no more."""
SMALLER_SECONDS = 600.0
"""For so long a node gets smaller batches than one that it refused: it may only have been restarted."""
MOST_NESTED = 64
"""Deepest nesting of a parsed answer: the parser is recursive, and some libraries (py-evm) lift Python's limit for
recursion, so that a node could crash the process by brackets."""

NEVER_NULL = (PINNED.keys() | RISING) - {"eth_getBlockByNumber"}
"""Reads that have a result at each block that a node knows."""

_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


class Trouble(Exception):
    """No usable answer of one endpoint."""

    def __init__(self, message: str, *, passing: bool, wait: float = 0.0, sent: bool = True, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        """Of HTTP, where the node refused by it."""
        self.passing = passing
        """Whether another attempt may help, also at an endpoint that never answered."""
        self.wait = wait
        """Pause that the endpoint asked for, in seconds."""
        self.sent = sent
        """Whether the node may have got the request."""


@dataclass(frozen=True)
class Health:
    """The record of one endpoint, for metrics and people. Times are seconds since 1970."""

    name: str
    answered: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    outvoted: int = 0
    """Answers that differed from the quorum's."""
    latency: float = 0.0
    """Duration of the last answer, in seconds."""
    head: int | None = None
    """The last block that it called latest."""
    head_at: float = 0.0
    last_error: str = ""
    last_error_at: float = 0.0
    rests_until: float = 0.0
    """Until then other endpoints are preferred."""


class Endpoint(JSONBaseProvider):
    """One URL. Each request is made once; the caller decides about retries.

    Name and messages leave out path, query and password of the URL, which are keys at most hosted nodes.
    """

    def __init__(self, url: str, timeout: float, now: Callable[[], float]) -> None:
        super().__init__()
        self._url, self._timeout, self._now = url, timeout, now
        self._session = session_to(url)
        self._lock = threading.Lock()
        self._health = Health(public_name(url))
        self._waits_until = 0.0
        self._ranges, self._together, self._smaller_until = LogRanges(), MOST_TOGETHER, 0.0
        self.chain_id: int | None = None
        """Its last answer; None after trouble."""

    @property
    def name(self) -> str:
        """The URL without its secrets."""
        return self._health.name

    @property
    def asked_to_wait_until(self) -> float:
        """End of the pause that it asked for; seconds since 1970, 0 if it didn't."""
        return self._waits_until

    @property
    def health(self) -> Health:
        """Its record so far."""
        return self._health

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Send one request; logs are asked for in as many as the node's limits need.

        Raises:
            Trouble: there is no usable answer, or it gives no logs of a block.
        """
        if method != "eth_getLogs":
            return self._request(method, params)
        try:
            return self._ranges.read(self._logs, params[0])
        except NoLogs as error:
            message = f"{self.name} gives no logs of {error}"
            self.failed(message)
            raise Trouble(message, passing=True) from None

    def make_batch(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse | None]:
        """Send requests in as few as the node takes together. None where there is no usable answer.

        A node that refuses a batch, or fails with it, gets smaller ones for a while, at last none.
        """
        if self._now() >= self._smaller_until:
            self._together = MOST_TOGETHER
        found = list[RPCResponse | None]()
        while (left := requests[len(found) :]) and self._together > 1:
            try:
                found += self._batch(left[: self._together])
            except Trouble as trouble:
                if trouble.wait or not trouble.sent:
                    break
                self._together, self._smaller_until = self._together // 10, self._now() + SMALLER_SECONDS
                if trouble.passing and trouble.status not in TOO_MUCH:
                    break
        return found + [None] * len(left)

    def _batch(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse | None]:
        asked = [self.encode_rpc_request(method, params) for method, params in requests]
        answers = self._parsed("a batch", self._post(b"[" + b",".join(asked) + b"]"))
        if not isinstance(answers, list):
            raise Trouble(f"{self.name} takes no batch of {len(asked)} requests", passing=False)
        by_id = {each["id"]: each for each in answers if _is_response(each) and isinstance(each.get("id"), int)}
        found = [by_id.get(self.decode_rpc_response(each)["id"], {}) for each in asked]
        return [
            cast(RPCResponse, answer) if answer and not _is_null(method, answer) else None
            for (method, _), answer in zip(requests, found, strict=True)
        ]

    def _logs(self, query: dict[str, Any]) -> RPCResponse:
        try:
            return self._request(RPCEndpoint("eth_getLogs"), [query])
        except Trouble as trouble:
            if trouble.wait or trouble.status not in TOO_MUCH:
                raise
            return {"jsonrpc": "2.0", "id": 0, "error": {"code": trouble.status, "message": str(trouble)}}

    def _request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        started = self._now()
        try:
            answer = self._answer(method, params)
        except Trouble as trouble:
            self.failed(str(trouble), trouble.wait)
            raise
        with self._lock:
            told = replace(self._health, failed_in_a_row=0, rests_until=0.0)
            self._health = replace(told, answered=told.answered + 1, latency=self._now() - started)
        return answer

    def failed(self, message: str, wait: float = 0.0) -> None:
        """Record a failure: the more in a row, the longer other endpoints are preferred."""
        self.chain_id = None
        with self._lock:
            if wait:
                self._waits_until = self._now() + wait
            now, in_a_row = self._now(), self._health.failed_in_a_row + 1
            rest = max(wait, min(REST_SECONDS * 2 ** min(in_a_row - 1, 10), MOST_REST_SECONDS))
            error = replace(self._health, last_error=message, last_error_at=now, rests_until=now + rest)
            self._health = replace(error, failed=error.failed + 1, failed_in_a_row=in_a_row)

    def outvoted(self, message: str) -> None:
        """Record an answer that a quorum contradicted."""
        with self._lock:
            error = replace(self._health, last_error=message, last_error_at=self._now())
            self._health = replace(error, outvoted=error.outvoted + 1)

    def saw_head(self, number: int) -> None:
        """Record its latest block."""
        with self._lock:
            self._health = replace(self._health, head=number, head_at=self._now())

    def _answer(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        request = self.encode_rpc_request(method, params)
        answer, asked = self._parsed(method, self._post(request)), self.decode_rpc_response(request)
        if not _is_response(answer):
            raise Trouble(f"{self.name} answered {method} with something that isn't JSON-RPC", passing=False)
        if _is_null(method, answer):
            raise Trouble(f"{self.name} answered {method} without a result", passing=True)
        error = answer.get("error")
        if isinstance(error, dict) and error.get("code") in LIMIT_EXCEEDED and not _is_of_logs(method, error):
            raise Trouble(f"{self.name} refused {method}: too many requests", passing=True, sent=False)
        if answer.get("id") != asked.get("id") and error is None:
            raise Trouble(f"{self.name} answered another request than {method}", passing=True)
        return cast(RPCResponse, answer)

    def _parsed(self, method: str, body: bytes) -> Any:
        if nesting(body) > MOST_NESTED:
            raise Trouble(f"{self.name} answered {method} with something nested too deeply", passing=False)
        try:
            return self.decode_rpc_response(body)
        except ValueError:
            raise Trouble(f"{self.name} answered {method} with something that isn't JSON", passing=False) from None

    def _post(self, request: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        with (
            self._trouble(),
            within(self._timeout),
            self._session.post(
                self._url, data=request, headers=headers, timeout=self._timeout, stream=True, allow_redirects=False
            ) as response,
        ):
            self._check_status(response)
            return body_of(response, MOST_BYTES)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Convert exceptions of requests; their texts contain the URL, so neither text nor cause is passed on."""
        try:
            yield
        except requests.Timeout as error:
            sent = not isinstance(error, requests.ConnectTimeout)
            raise Trouble(f"{self.name} didn't answer within {self._timeout:g} s", passing=True, sent=sent) from None
        except TooLong:
            told = f"{self.name} answered with more than {MOST_BYTES} bytes"
            raise Trouble(told, passing=False, status=413) from None
        except requests.exceptions.ChunkedEncodingError:
            raise Trouble(f"{self.name} broke off in the middle of an answer", passing=True) from None
        except requests.ConnectionError as error:
            if is_timeout(error):
                raise Trouble(
                    f"{self.name} didn't finish its answer within {self._timeout:g} s", passing=True
                ) from None
            refused = "Connection refused" in str(error) or "resolve" in str(error)
            what = "can't be reached" if refused else "broke the connection"
            raise Trouble(f"{self.name} {what}", passing=not refused, sent=not refused) from None
        except requests.RequestException as error:
            raise Trouble(f"{self.name} can't be asked: {type(error).__name__}", passing=False) from None

    def _check_status(self, response: requests.Response) -> None:
        status = response.status_code
        if status == 429:
            wait = self._retry_after(response)
            raise Trouble(f"{self.name} refused: too many requests (HTTP 429)", passing=True, wait=wait, sent=False)
        if status >= 500:
            wait = self._retry_after(response)
            raise Trouble(f"{self.name} failed (HTTP {status})", passing=True, wait=wait, status=status)
        if status != 200:
            raise Trouble(f"{self.name} refused (HTTP {status})", passing=False, status=status)

    def _retry_after(self, response: requests.Response) -> float:
        """Seconds of the header Retry-After (RFC 9110: a number or a date); 0 if it is absent or malformed."""
        text = response.headers.get("Retry-After", "")
        try:
            if text.isascii() and text.isdigit():
                return float(min(int(text), MOST_REST_SECONDS))
            date = parsedate_to_datetime(text)
        except ValueError:
            return 0.0
        seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - self._now()
        return min(max(seconds, 0.0), MOST_REST_SECONDS)


def _is_response(answer: Any) -> bool:
    """Whether it has the form of JSON-RPC: either a result or an error, which isn't null."""
    if not isinstance(answer, dict) or ("result" in answer) == ("error" in answer):
        return False
    return "result" in answer or answer["error"] is not None


def _is_null(method: str, answer: dict[str, Any]) -> bool:
    """Whether a result is missing that there always is: null is a block or a transaction that a node doesn't know."""
    return method in NEVER_NULL and "result" in answer and answer["result"] is None


def _is_of_logs(method: str, error: dict[str, Any]) -> bool:
    """Whether an error is about the number of logs or blocks, not of requests."""
    words = str(error.get("message")).lower()
    return method == "eth_getLogs" and error.get("code") == -32005 and not ("request" in words or "rate" in words)


def public_name(url: str) -> str:
    """Scheme, host and port of a URL, and dots for the rest."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" + ("/..." if parts.path.strip("/") or parts.query else "")


def nesting(body: bytes) -> int:
    """Depth of nested brackets, those in strings included."""
    depth = deepest = 0
    for bracket in body.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
