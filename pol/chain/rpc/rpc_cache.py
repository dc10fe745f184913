"""What a node has said: one block for all reads of a stretch, and values that stay while the chain says the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from web3 import Web3
from web3.types import RPCEndpoint, RPCResponse

from pol.chain.rpc.rpc_methods import ORDERS, PINNED, RISING, pinned
from pol.errors import OperationalError

LATEST = frozenset(
    f"eth_{name}"
    for name in ("call", "getBlockByNumber", "blockNumber", "getLogs", "getBalance", "getCode", "gasPrice")
)
"""Answers that change with a block."""
REPEATED = frozenset({"eth_call", "eth_getBalance", "eth_gasPrice"})
"""Of these, those that are asked for again at the next block, all in one batch."""
CONSTANT = frozenset({"eth_chainId"})
HEAD = "eth_getBlockByNumber", ("latest", False)
"""The request for the block to which the others are pinned."""
REVERT = 3
"""The code of an error that is the answer of a contract."""
ANEW, UNUSED = 16, 8
"""Blocks after which a kept value is asked for again all the same, and after which one that nobody reads is dropped."""
OLD = 300.0
"""Seconds after which it is asked for again, too: a party that looks seldom sees few blocks."""

NAME = "RPC cache of pol"

Batch = Callable[[Sequence[tuple[RPCEndpoint, Any]]], Sequence[RPCResponse | None]]
"""Answers to many requests at once; None where there is none."""
T = TypeVar("T")


@dataclass(eq=False)
class Value:
    """What follows from some answers."""

    value: Any
    block: str
    """Hash of the last block whose value it is known to be."""
    used: int
    """The number of the block in which it was read last, of those that this cache has seen."""
    needs: dict[str, RPCResponse] | None
    """The answers, by request; None if it doesn't follow from answers alone, and goes with its block."""
    news: Callable[[], int] | None
    told: int
    """What ``news`` said in the last block: it says the same while the chain can't have changed the value."""
    asked: float
    """When the node gave it, in monotonic seconds."""
    turn: int
    """By it the values are asked for again one after the other."""


class RpcCache:
    """Keeps the answers about one block while it is `active`, and constant ones for good.

    All reads of a stretch are of the block that was the latest at its first read. The next stretch asks for the latest
    block again. If it is another one, what the last stretches have read is asked for again in one batch, but for what
    the chain can't have changed. A middleware of web3; `of` returns the one of a web3.
    """

    @classmethod
    def of(cls, web3: Web3) -> RpcCache:
        """The cache that everybody shares who uses this web3."""
        onion = web3.middleware_onion
        if NAME not in onion:
            cache = cls(getattr(web3.provider, "make_batch", None))
            onion.add(lambda _: cache, NAME)  # type: ignore[arg-type]  # web3 only calls what it is given
            _caches[web3] = cache
        return _caches[web3]

    def __init__(self, batch: Batch | None = None) -> None:
        self._batch = batch
        self._depth = 0
        self._head: RPCResponse | None = None
        """The answer to HEAD; None if it has to be asked for again."""
        self._block = ""
        """Hash of the block of the answers."""
        self._blocks = 0
        """How many there were."""
        self._is_renewed = True
        """Whether what was read before this block has been asked for again."""
        self._answers: dict[str, RPCResponse] = {}
        """By request, as it was made: not yet pinned."""
        self._values: dict[object, Value] = {}
        self._needs: dict[str, RPCResponse] | None = None
        """The answers that the value needs which is made now; None if it needs what no batch asks for."""
        self._constant: dict[str, RPCResponse] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it, all answers are of one block until something is sent."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.forget()

    @contextmanager
    def outside(self) -> Iterator[None]:
        """As outside of any stretch: for work that takes time, and sends."""
        depth, self._depth = self._depth, 0
        try:
            yield
        finally:
            self._depth = depth

    def forget(self) -> None:
        """Look at the latest block again."""
        self._head = None

    def once(self, key: object, work: Callable[[], T], news: Callable[[], int] | None = None) -> T:
        """``work()``, which follows from the chain alone: within a stretch only if the chain may have changed it.

        It has to be made anew where one of the node's answers differs, or where it depends on more than calls.

        Args:
            news: says the same number as before while the chain can't have changed it.
        """
        if not self._depth or "result" not in self._latest():
            return work()
        if (known := self.held(key)) is None:
            told = news() if news is not None else 0
            self._needs = {}
            try:
                found = work()
            finally:
                needs, self._needs = self._needs, None  # a value that needs another one goes with its block
            if self._head is None:
                return found  # what it has sent may have changed it
            self._values[key] = Value(
                found, self._block, self._blocks, needs or None, news, told, monotonic(), len(self._values)
            )
            return found
        value: T = known.value
        return value

    def held(self, key: object) -> Value | None:
        """The value of this block, if it is known without new work; None outside of a stretch."""
        if not self._depth or self._head is None or (known := self._values.get(key)) is None:
            return None
        if known.block != self._block:
            if not self._is_renewed:
                self._is_renewed = True
                self._renew()
            if known.block != self._block:
                return None
        known.used, self._needs = self._blocks, None
        return known

    def _renew(self) -> None:
        """Ask again for what was read before, and find the values that are still the same."""
        asked, open_, now = dict[str, RPCResponse](), dict[object, int](), monotonic()
        for key, value in list(self._values.items()):
            if value.block == self._block:
                continue
            if value.needs is None or self._blocks - value.used > UNUSED:
                del self._values[key]
                continue
            try:
                told = value.news() if value.news is not None else 0
            except OperationalError:
                # Nothing is known then. Who reads next meets the trouble, or is of another market than that.
                self._values = {key: value for key, value in self._values.items() if value.block == self._block}
                return
            is_due = (value.turn + self._blocks) % ANEW == 0 or now - value.asked > OLD
            if value.news is not None and told == value.told and not is_due:
                value.block = self._block
            else:
                open_[key] = told
                asked |= value.needs
        made = [json.loads(request) for request in asked] if self._batch is not None else []
        requests = [(RPCEndpoint(method), pinned(method, params, self._number)) for method, params in made]
        found = self._batch(requests) if self._batch is not None and requests else [None] * len(asked)
        for (request, known), answer in zip(asked.items(), found, strict=True):
            if answer is not None and _is_answer(answer):
                self._answers.setdefault(request, known if _same(known, answer) else answer)
        for key, told in open_.items():
            value = self._values[key]
            if all(self._answers.get(request) is known for request, known in (value.needs or {}).items()):
                value.block, value.told, value.asked = self._block, told, now
            else:
                del self._values[key]

    def _number(self) -> str:
        found = self._latest().get("result")
        if not found:
            raise OperationalError("the node doesn't say which block is the latest; try again later")
        named = found["number"]
        return named if isinstance(named, str) else hex(named)  # an embedded chain gives an integer

    def wrap_make_request(self, make_request: Callable[[RPCEndpoint, Any], Any]) -> Callable[[RPCEndpoint, Any], Any]:
        """`make_request` behind the cache."""

        def head() -> Any:
            if self._head is None:
                found = make_request(RPCEndpoint(HEAD[0]), HEAD[1])
                if "error" in found or not found["result"]:
                    return found
                if str(found["result"]["hash"]) != self._block:
                    self._answers.clear()
                    self._blocks, self._is_renewed = self._blocks + 1, False
                self._head, self._block = found, str(found["result"]["hash"])
            return self._head

        self._latest = head

        def answer(method: RPCEndpoint, params: Any) -> Any:
            if method in CONSTANT:
                return answered(self._constant, method, params, params)
            if not (self._depth and method in LATEST):
                if method not in LATEST and method != "eth_getTransactionCount":
                    # A transaction has an effect in a new block only; an order to a test node in any.
                    self.forget()
                    if method.startswith(ORDERS):
                        self._block = ""
                        self._values.clear()
                self._needs = None
                return make_request(method, params)
            if method not in REPEATED or not (method in RISING or "latest" in params[PINNED[method] :]):
                self._needs = None
            if (method, tuple(params)) == HEAD:
                return head()
            if method == "eth_blockNumber":
                return {"jsonrpc": "2.0", "id": 0, "result": self._number()}
            head()  # before the answers: they are those of this block
            return answered(self._answers, method, params, pinned(method, params, self._number))

        def answered(answers: dict[str, RPCResponse], method: RPCEndpoint, params: Any, at: Any) -> Any:
            request = json.dumps([method, params], default=str, sort_keys=True)
            if request not in answers:
                response = make_request(method, at)
                if not _is_answer(response):
                    self._needs = None
                    return response
                answers[request] = response
            if self._needs is not None and answers is self._answers:
                self._needs[request] = answers[request]
            return answers[request]

        return answer


def _is_answer(response: RPCResponse) -> bool:
    """Whether a response tells what the chain says: a result, or a contract's refusal."""
    error: Any = response.get("error")
    if error is None:
        return "result" in response
    return isinstance(error, dict) and (error.get("code") == REVERT or str(error.get("data", "")).startswith("0x"))


def _same(one: RPCResponse, other: RPCResponse) -> bool:
    return one.get("result") == other.get("result") and one.get("error") == other.get("error")


_caches: WeakKeyDictionary[Web3, RpcCache] = WeakKeyDictionary()
