"""A web3 provider over several nodes of a chain, with retries, failover and quorum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from eth_utils.conversions import to_bytes
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from pol.chain.rpc.http_endpoint import Endpoint, Health, Trouble
from pol.chain.rpc.latest_block import STALL_SECONDS, HeadWatch
from pol.chain.rpc.quorum import agreed, at_least, comparable, reduced
from pol.chain.rpc.refused_transactions import Refusal
from pol.chain.rpc.retry_policy import RetryPolicy
from pol.chain.rpc.rpc_methods import LOCAL, ORDERS, READS, pinned, quantity, varies
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError

TIMEOUT = 30.0
"""Time limit of one answer of one node, in seconds."""

NULL = '["result", null]'


class StaleHead(OperationalError):
    """The node's latest block is too old."""


class NoQuorum(OperationalError):
    """Too few nodes agree."""


class Endpoints(JSONBaseProvider):
    """Nodes of one chain, in order of preference.

    With ``quorum`` 1 a read goes to the first node that answers. With more, a read goes to all nodes, pinned to a block
    that a quorum has, and a quorum has to agree. Signed transactions always go to all nodes.
    """

    def __init__(
        self, urls: Sequence[str], quorum: int = 1, patience: RetryPolicy | None = None, timeout: float = TIMEOUT
    ) -> None:
        super().__init__()
        if not urls or not 1 <= quorum <= len(urls) or len(set(urls)) < len(urls):
            raise OperationalError(f"a quorum of {quorum} needs as many different URLs of nodes, not {len(set(urls))}")
        self._patience = patience or RetryPolicy()
        self._quorum = quorum
        self._all = [Endpoint(url, timeout, self._patience.now) for url in urls]
        self._watch = HeadWatch(self._patience.now)
        self._current = self._all[0] if len(urls) == 1 else None
        self._chain_id: int | None = None
        self._threads = ThreadPoolExecutor(2 * len(urls), "rpc") if len(urls) > 1 else None

    @property
    def name(self) -> str:
        """The nodes' URLs, without secrets."""
        return ", ".join(endpoint.name for endpoint in self._all)

    def health(self) -> tuple[Health, ...]:
        """The record of each node so far."""
        return tuple(endpoint.health for endpoint in self._all)

    def refuse_stale_heads(self, stall: float = STALL_SECONDS) -> None:
        """Refuse heads that go back, or that are older than ``stall`` seconds. Not for test chains."""
        self._watch.stall = stall

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """The reliable answer to a request.

        Raises:
            StaleHead: the latest block is too old.
            NoQuorum: too few nodes agree.
            OperationalError: no node answers.
        """
        if method == "eth_sendRawTransaction":
            return self._send(params)
        if method not in READS:
            if method.startswith(ORDERS):
                self._watch.forget()
            return self._attempts(method, lambda: self._first(method, params), once=True)
        if method == "eth_chainId" and len(self._all) > 1:
            return self._attempts(method, self._one_chain)
        if self._quorum == 1 or method in LOCAL:
            return self._attempts(method, lambda: self._first(method, params))
        return self._attempts(method, lambda: self._voted(method, params))

    def make_batch(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse | None]:
        """Answers to reads of named blocks, in few requests of HTTP; None where none is reliable: ask for it alone."""

        def ask(endpoint: Endpoint) -> list[RPCResponse | None]:
            try:
                self._greet(endpoint)
            except Trouble:
                return [None] * len(requests)
            return endpoint.make_batch(requests)

        endpoints = self._rested(self._quorum)
        if self._quorum == 1:
            return ask(endpoints[0])
        columns = list((self._threads.map if self._threads is not None else map)(ask, endpoints))
        lost = Trouble("it isn't in the batch", passing=True)
        found = list[RPCResponse | None]()
        for (method, _), answers in zip(requests, zip(*columns, strict=True), strict=True):
            told = [(endpoint, answer or lost) for endpoint, answer in zip(endpoints, answers, strict=True)]
            try:
                found.append(self._most(method, told))
            except (Trouble, NoQuorum):
                found.append(None)
        return found

    def _attempts(self, method: str, ask: Callable[[], RPCResponse], once: bool = False) -> RPCResponse:
        failure: Trouble | OperationalError | None = None
        for _ in self._patience.rounds(self._until_enough_may_be_asked):
            try:
                return ask()
            except Trouble as trouble:
                failure = trouble
                met = any(endpoint.health.answered for endpoint in self._all)
                if (once and trouble.sent) or not (trouble.passing or met):
                    break
            except (StaleHead, NoQuorum) as error:
                failure = error
        if isinstance(failure, OperationalError):
            raise failure
        raise OperationalError(
            f"no answer to {method}: {failure}. Is the node running, and is the URL right? "
            "If so, try again later or add another --rpc"
        ) from None

    def _until_enough_may_be_asked(self) -> float:
        """Seconds until a quorum of nodes accepts requests; our own rests only order the nodes."""
        until = sorted(endpoint.asked_to_wait_until for endpoint in self._all)
        return max(0.0, until[self._quorum - 1] - self._patience.now())

    def _rested(self, least: int) -> list[Endpoint]:
        now = self._patience.now()
        rested = [endpoint for endpoint in self._all if endpoint.health.rests_until <= now]
        return rested if len(rested) >= least else self._all

    # One node at a time.

    def _first(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        last: Exception = Trouble("no node is left to ask", passing=True)
        for endpoint in self._rested(1):
            try:
                if endpoint is not self._current:
                    self._greet(endpoint)
                    if self._quorum == 1:
                        self._check_head(endpoint, endpoint.make_request(RPCEndpoint("eth_blockNumber"), []))
                    self._current = endpoint
                answer = endpoint.make_request(method, params)
                if method == "eth_chainId":
                    self._chain_of(endpoint, answer)
                if method == "eth_blockNumber" or (method == "eth_getBlockByNumber" and params[0] == "latest"):
                    self._check_head(endpoint, answer)
            except Trouble as trouble:
                last = trouble
                if method not in READS and trouble.sent:
                    raise
            except StaleHead as stale:
                last = stale
            else:
                return answer
        raise last

    def _check_head(self, endpoint: Endpoint, answer: RPCResponse) -> None:
        head = answer.get("result")
        try:
            if isinstance(head, dict):
                number, block, timestamp = quantity(head["number"]), str(head["hash"]), quantity(head["timestamp"])
                objection = self._watch.objection(number, block, timestamp)
            else:
                number = quantity(head)
                objection = self._watch.objection(number)
        except (KeyError, TypeError, ValueError):
            message = f"{endpoint.name} gave a malformed latest block"
            endpoint.failed(message)
            raise Trouble(message, passing=True) from None
        endpoint.saw_head(number)
        if objection is not None:
            endpoint.failed(objection)
            raise _stale(endpoint.name, objection)

    def _greet(self, endpoint: Endpoint) -> None:
        """Check, once after each trouble, that a node is on the chain of the others."""
        if endpoint.chain_id is None:
            self._chain_of(endpoint, endpoint.make_request(RPCEndpoint("eth_chainId"), []))

    def _chain_of(self, endpoint: Endpoint, answer: RPCResponse) -> int:
        try:
            chain_id = quantity(answer.get("result"))
        except (TypeError, ValueError):
            raise Trouble(f"{endpoint.name} didn't say which chain it is on", passing=False) from None
        self._chain_id = chain_id if self._chain_id is None else self._chain_id
        if chain_id != self._chain_id:
            message = f"{endpoint.name} is on chain {chain_id}, not on {self._chain_id}"
            endpoint.failed(message)
            raise Trouble(message, passing=False)
        endpoint.chain_id = chain_id
        return chain_id

    # All nodes.

    def _each(self, endpoints: Sequence[Endpoint], method: RPCEndpoint, params: Any) -> Iterator[tuple[Endpoint, Any]]:
        """Answers and troubles, in the order of the nodes."""

        def ask(endpoint: Endpoint) -> RPCResponse | Trouble:
            try:
                if method != "eth_chainId":
                    self._greet(endpoint)
                return endpoint.make_request(method, params)
            except Trouble as trouble:
                return trouble

        ask_all = self._threads.map if self._threads is not None else map
        yield from zip(endpoints, ask_all(ask, endpoints), strict=True)

    def _one_chain(self) -> RPCResponse:
        """The chain id of all nodes. Differences aren't outvoted: the URLs are mixed up."""
        answers = list(self._each(self._all, RPCEndpoint("eth_chainId"), []))
        good = [(endpoint, answer) for endpoint, answer in answers if not isinstance(answer, Trouble)]
        ids = {endpoint.name: str(answer.get("result")) for endpoint, answer in good}
        if len(set(ids.values())) > 1:
            told = ", ".join(f"{name} says {value}" for name, value in ids.items())
            raise OperationalError(f"the nodes are on different chains: {told}. Name nodes of one chain with --rpc")
        if len(good) < self._quorum:
            raise next(answer for _, answer in answers if isinstance(answer, Trouble))
        for endpoint, answer in good:
            self._chain_of(endpoint, answer)
        return good[0][1]  # type: ignore[no-any-return]  # Trouble was sorted out

    def _voted(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        if varies(method, params):
            return self._number(method, params)
        return self._same(method, pinned(method, params, self._head))

    def _head(self) -> str:
        return str(self._number(RPCEndpoint("eth_blockNumber"), []).get("result"))

    def _number(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        numbers: dict[Endpoint, int] = {}
        answers = list(self._each(self._rested(self._quorum), method, params))
        for endpoint, answer in answers:
            with suppress(KeyError, TypeError, ValueError):
                numbers[endpoint] = quantity(answer["result"])
        found = at_least(list(numbers.values()), self._quorum)
        if found is None:
            return self._most(method, answers)
        if method == "eth_blockNumber":
            for endpoint, number in numbers.items():
                endpoint.saw_head(number)
            if (objection := self._watch.objection(found)) is not None:
                raise _stale(self.name, objection)
        return {"jsonrpc": "2.0", "id": 0, "result": hex(found)}

    def _same(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        answer = self._most(method, list(self._each(self._rested(self._quorum), method, params)))
        block = answer.get("result")
        if method == "eth_getBlockByNumber" and isinstance(block, dict):
            number, name, time = quantity(block["number"]), str(block["hash"]), quantity(block["timestamp"])
            if number == self._watch.highest and (objection := self._watch.objection(number, name, time)) is not None:
                raise _stale(self.name, objection)
        return answer

    def _most(self, method: str, answers: Sequence[tuple[Endpoint, Any]]) -> RPCResponse:
        """The answer of a quorum."""
        forms: dict[Endpoint, str] = {}
        told: dict[str, RPCResponse] = {}
        for endpoint, answer in answers:
            if not isinstance(answer, Trouble):
                if "result" in answer:
                    answer["result"] = reduced(method, answer["result"])
                forms[endpoint] = comparable(answer)
                told.setdefault(forms[endpoint], answer)
        if len(forms) < self._quorum:
            troubles = [str(answer) for _, answer in answers if isinstance(answer, Trouble)]
            passing = any(answer.passing for _, answer in answers if isinstance(answer, Trouble))
            raise Trouble(
                f"{self._quorum} nodes have to agree and {len(forms)} answered: {'; '.join(troubles)}", passing=passing
            )
        form = agreed(list(forms.values()), self._quorum)
        if form is None:
            # An object that is still spreading: some nodes have it, others don't yet.
            if len(told) == 2 and NULL in told:
                return told[NULL]
            groups = "; ".join(" and ".join(e.name for e, f in forms.items() if f == one) for one in told)
            raise NoQuorum(
                f"the nodes contradict each other about {method}, and no {self._quorum} agree: {groups}. Nothing is "
                "decided on this: try again later; if it stays so, find out which node lies and name another with --rpc"
            )
        for endpoint, other in forms.items():
            if other not in (form, NULL):
                endpoint.outvoted(f"answered {method} otherwise than {self._quorum} others")
        return told[form]

    # Signed transactions.

    def _send(self, params: Any) -> RPCResponse:
        digest = "0x" + keccak256(to_bytes(hexstr=params[0])).hex()
        taken: RPCResponse = {"jsonrpc": "2.0", "id": 0, "result": digest}

        def send() -> RPCResponse:
            refusals: list[RPCResponse] = []
            trouble: Trouble | None = None
            method = RPCEndpoint("eth_sendRawTransaction")
            for endpoint, answer in list(self._each(self._all, method, params)):
                if isinstance(answer, Trouble):
                    trouble = answer
                    lost.append(answer.sent)
                elif "result" in answer and str(answer["result"]).lower() != digest:
                    trouble = Trouble(f"{endpoint.name} gave another hash to the transaction", passing=True)
                    endpoint.failed(str(trouble))
                elif "result" in answer or Refusal.of(str(answer["error"])) is Refusal.KNOWN:
                    accepted.append(endpoint)
                else:
                    refusals.append(answer)
            if accepted:
                return taken
            # The first request may have succeeded with its answer lost: the second one then finds the nonce used.
            if any("nonce" in str(answer["error"]).lower() for answer in refusals) and self._has(digest):
                return taken
            used = any(Refusal.of(str(answer["error"])) is Refusal.USED for answer in refusals)
            if any(lost) and refusals and not used:
                # A node whose answer was lost may have the transaction: another one's refusal doesn't take it back.
                told = f"an answer to the transaction was lost, and a node refuses it: {refusals[0]['error']}"
                raise Trouble(told, passing=True)
            if len(refusals) >= self._quorum:
                return refusals[0]
            raise trouble or Trouble("too few nodes answered", passing=True)

        accepted, lost = list[Endpoint](), list[bool]()
        return self._attempts("eth_sendRawTransaction", send)

    def _has(self, digest: str) -> bool:
        found = self.make_request(RPCEndpoint("eth_getTransactionByHash"), [digest]).get("result")
        return isinstance(found, dict) and str(found.get("hash")).lower() == digest


def _stale(name: str, objection: str) -> StaleHead:
    return StaleHead(
        f"{name} isn't in step with the chain: {objection}. Nothing is decided on this: wait until the node "
        "has caught up (and see that this machine's clock is right), or name another with --rpc"
    )
