"""What is known of a chain at a new block: what is kept, what is asked for again, and in how many requests."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from web3.types import RPCEndpoint

import toy_market
from anvil_node import anvil_node
from misbehaving_nodes import Gateway, Pass, Raw, gateway, honest
from node_snapshots import order
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.deployments.deployment import deploy
from pol.chain.desks.market import Market
from pol.chain.node.connection import Connection
from pol.chain.rpc.http_endpoint import SMALLER_SECONDS
from pol.chain.rpc.node_provider import Endpoints
from pol.chain.rpc.retry_policy import RetryPolicy
from pol.chain.rpc.rpc_cache import ANEW, OLD, UNUSED

MANY = [(RPCEndpoint("eth_getBalance"), [f"0x{(1 << 150) + number:040x}", "latest"]) for number in range(25)]
NONE = bytes(32)


class Place:
    """A market behind a gateway that counts, and its chain without the gateway."""

    def __init__(self, proxy: Gateway) -> None:
        self.proxy, self.direct = proxy, Connection.to(proxy.node)
        self.wallet = Wallet.create(self.direct, b"\x05" * 32)
        toy_market.fund(self.direct, self.wallet.address)
        deployment = deploy(self.wallet)
        self.market, self.seen = deployment.market(self.direct), deployment.market(Connection.to(proxy.url))
        self.market.vault.deposit(self.wallet, toy_market.DEPOSIT)

    def submit(self) -> bytes:
        return self.market.registry.submit(self.wallet, toy_market.terms_of(toy_market.segment_traces()[0]))

    def asked(self, *task_ids: bytes) -> Counter[str]:
        """What a look at some tasks asks for, at a new block; the reads agree with those of a new reader."""
        order(self.direct, "evm_mine")
        self.proxy.calls.clear()
        with self.seen.registry.connection.cached():
            found = [read(self.seen, task_id) for task_id in task_ids]
        calls = Counter(self.proxy.calls)
        assert found == [read(self.market, task_id) for task_id in task_ids]
        return calls


def read(market: Market, task_id: bytes) -> list[Any]:
    """What an event changes, what changes without one, and what isn't there."""
    try:
        drawn: Any = market.proofs.drawn_segments(task_id)
    except Reverted as error:
        drawn = error.error
    return [
        market.registry.task(task_id),
        market.vault.free(market.seats.address),
        drawn,
        market.seats.seating(task_id),
    ]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr("pol.chain.rpc.rpc_cache.OLD", float("inf"))  # this machine may be slow
    with anvil_node() as url, gateway(url) as proxy:
        yield Place(proxy)


def test_a_block_that_names_nothing_costs_three_requests(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no event names isn't asked for, and the rest comes in one batch; a refusal of a contract is an answer."""
    monkeypatch.setattr("pol.chain.rpc.rpc_cache.ANEW", 1 << 30)
    tasks = [place.submit() for _ in range(5)]
    place.asked(*tasks)
    place.proxy.posts = 0
    calls = place.asked(*tasks)
    assert (place.proxy.posts, calls["eth_getLogs"]) == (3, 1)
    assert calls["eth_call"] == 6  # one view for all, and one a task
    place.submit()
    assert place.asked(*tasks)["eth_call"] == 6


def test_what_an_event_names_is_read_again(place: Place) -> None:
    task_id = place.submit()
    for _ in range(3):
        place.asked(task_id)
    snapshot = order(place.direct, "evm_snapshot")
    place.market.registry.cancel(place.wallet, task_id)
    another = place.submit()
    place.asked(task_id, another)
    order(place.direct, "evm_revert", snapshot)
    assert place.asked(task_id)


def test_nothing_is_kept_for_ever(place: Place) -> None:
    """Every kept value is asked for again in turn, and forgotten if nobody reads it."""
    task_id = place.submit()
    place.asked(task_id)
    cache = place.seen.registry.connection._cache
    kept = [value for value in cache._values.values() if value.news is not None]
    assert kept
    calls = sum((place.asked(task_id) for _ in range(ANEW)), Counter[str]())
    assert calls["eth_call"] == 2 * ANEW + len(kept)
    for _ in range(UNUSED + 2):
        place.asked()
        with place.seen.registry.connection.cached():
            place.seen.vault.free(place.wallet.address)
    assert not any(value.news for value in cache._values.values())


@pytest.mark.parametrize(("most", "posts"), [(None, 1), (10, 5), (2, 3)])
def test_a_node_gets_batches_that_it_takes(chain: Any, most: int | None, posts: int) -> None:
    """One that refuses batches of a size gets a tenth, at last each call alone."""
    with gateway(chain.connection.name) as proxy:
        endpoints = Endpoints([proxy.url])
        endpoints.make_request(RPCEndpoint("eth_chainId"), [])
        proxy.posts, proxy.most = 0, most
        found = endpoints.make_batch(MANY)
        assert [answer["result"] for answer in found if answer] == ["0x0"] * (len(MANY) if most != 2 else 0)
        assert proxy.posts == posts
        proxy.posts = 0
        endpoints.make_batch(MANY)
        assert proxy.posts == {None: 1, 10: 3, 2: 0}[most]


def test_a_quorum_agrees_about_each_call_of_a_batch(place: Place) -> None:
    """A node that leaves a call out, or lies about one, spoils no other."""

    def lies(method: str, params: list[Any], node: Pass) -> Any:
        return (
            "0x1"
            if params[0] == MANY[3][1][0]
            else {"error": 1}
            if params[0] == MANY[4][1][0]
            else node(method, params)
        )

    with gateway(place.proxy.node) as first, gateway(place.proxy.node) as second, gateway(place.proxy.node) as third:
        endpoints = Endpoints([first.url, second.url, third.url], quorum=2)
        endpoints.make_request(RPCEndpoint("eth_chainId"), [])
        first.manner = lies
        assert all(endpoints.make_batch(MANY))
        second.manner = lies
        found = endpoints.make_batch(MANY)
        assert [number for number, answer in enumerate(found) if answer is None or answer.get("result") != "0x0"] == [
            3,
            4,
        ]


def test_a_market_that_is_gone_hides_no_other(place: Place) -> None:
    """Two markets share a connection, and a reorganization takes the contracts of one away."""
    task_id, snapshot = place.submit(), order(place.direct, "evm_snapshot")
    connection = place.seen.registry.connection
    other = deploy(place.wallet).market(connection)
    with connection.cached():
        assert other.seats.seating(task_id) == place.seen.seats.seating(task_id)
    order(place.direct, "evm_revert", snapshot)
    assert place.asked(task_id)
    assert place.asked(task_id)


def test_an_event_that_is_gone_names_what_it_did(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A back end that still has the other fork hides a reorganization until its events are left out."""
    monkeypatch.setattr("pol.chain.rpc.rpc_cache.ANEW", 1 << 30)
    snapshot = order(place.direct, "evm_snapshot")
    task_id = place.submit()
    place.asked(task_id)
    numbers = [hex(place.direct.block_number() - ago) for ago in range(2)]
    fork = {number: order(place.direct, "eth_getBlockByNumber", number, False) for number in numbers}
    order(place.direct, "evm_revert", snapshot)
    order(place.direct, "anvil_mine", hex(4))
    place.proxy.manner = lambda method, params, node: (
        fork[params[0]] if method == "eth_getBlockByNumber" and params[0] in fork else node(method, params)
    )
    with place.seen.registry.connection.cached():
        assert place.seen.registry.events("TaskSubmitted")
        read(place.seen, task_id)
    place.proxy.manner = honest
    assert place.asked(task_id)


def test_a_head_that_goes_back_and_forth_keeps_no_value_of_the_block_before(place: Place) -> None:
    task_id = place.submit()
    head = order(place.direct, "eth_getBlockByNumber", "latest", False)
    before = order(place.direct, "eth_getBlockByNumber", hex(int(head["number"], 16) - 1), False)
    found = list[Any]()
    for latest in (head, before, head):
        place.proxy.manner = lambda method, params, node, latest=latest: (
            latest if method == "eth_getBlockByNumber" and params[0] == "latest" else node(method, params)
        )
        with place.seen.registry.connection.cached():
            assert len(place.seen.registry.events("TaskSubmitted")) == (latest is head)
            found += [place.seen.registry.task(task_id)] if latest is before or found else []
    assert found[0] != found[1] == place.market.registry.task(task_id)


def test_an_item_of_a_batch_with_neither_result_nor_error_is_none(chain: Any) -> None:
    """It is asked for alone, and spoils no other."""

    def empty(method: str, params: list[Any], node: Pass) -> Any:
        return {"error": None} if params[0] == MANY[3][1][0] else node(method, params)

    with gateway(chain.connection.name) as first, gateway(chain.connection.name) as second:
        endpoints = Endpoints([first.url, second.url], quorum=2)
        endpoints.make_request(RPCEndpoint("eth_chainId"), [])
        endpoints.make_batch(MANY[:1])
        first.manner = second.manner = empty
        found = endpoints.make_batch(MANY)
        assert [number for number, answer in enumerate(found) if answer is None or "result" not in answer] == [3]


@pytest.mark.parametrize("trouble", ["gateway", "refused", "slow"])
def test_a_node_that_comes_back_gets_batches_again(chain: Any, trouble: str) -> None:
    """A node that restarts answers nothing for a while, which says little of what it takes later."""
    now = 1e9
    with gateway(chain.connection.name) as proxy:
        endpoints = Endpoints([proxy.url], patience=RetryPolicy(now=lambda: now), timeout=1.0)
        endpoints.make_request(RPCEndpoint("eth_chainId"), [])
        (endpoint,) = endpoints._all
        slow = threading.Event()
        proxy.manner = lambda method, params, node: Raw(502) if trouble == "gateway" else slow.wait(10)
        if trouble == "refused":
            endpoint._url = "http://127.0.0.1:1"
        proxy.posts = 0
        assert endpoints.make_batch(MANY) == [None] * len(MANY)
        assert proxy.posts == {"gateway": 3, "refused": 0, "slow": 1}[trouble]
        slow.set()
        endpoint._url, proxy.manner, proxy.posts = proxy.url, honest, 0
        assert all(endpoints.make_batch(MANY[:1])) == (trouble != "gateway")
        now += SMALLER_SECONDS
        proxy.posts = 0
        assert all(endpoints.make_batch(MANY))
        assert proxy.posts == 1


def test_who_looks_seldom_asks_for_all_that_it_keeps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are counted in looks: for a party that looks once an hour, sixteen of them would be most of a day."""
    task_id = place.submit()
    place.asked(task_id)
    values = place.seen.registry.connection._cache._values.values()
    kept = {request for value in values if value.news is not None for request in value.needs or ()}
    now = time.monotonic()
    monkeypatch.setattr("pol.chain.rpc.rpc_cache.OLD", OLD)
    monkeypatch.setattr("pol.chain.rpc.rpc_cache.monotonic", lambda: now)
    for seconds, asks in ((0, True), (OLD / 2, False), (OLD + 1, True), (0, False)):
        now += seconds
        monkeypatch.setattr("pol.chain.rpc.rpc_cache.ANEW", 1 if seconds == 0 and asks else 1 << 60)
        assert (place.asked(task_id)["eth_call"] >= 2 + len(kept)) == asks
