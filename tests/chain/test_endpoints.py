"""Nodes that fail, lag and lie: what is asked again, what is believed, and what nobody decides on."""

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3
from web3.types import RPCEndpoint

import toy_market
from anvil_node import anvil_node
from loopback_server import certify
from misbehaving_nodes import Gateway, Manner, Pass, Raw, gateway, honest
from pol.chain.account.remote_signer import RemoteSigner
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.deployments.deployment import deploy
from pol.chain.node.connection import Connection
from pol.chain.rpc.http_endpoint import public_name
from pol.chain.rpc.latest_block import HeadWatch
from pol.chain.rpc.node_provider import Endpoints, NoQuorum, StaleHead
from pol.chain.rpc.quorum import agreed, at_least
from pol.chain.rpc.retry_policy import RetryPolicy
from pol.errors import OperationalError

pytestmark = pytest.mark.long

KEY = b"\x31" * 32


class Clock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.time, self.slept = time.time(), list[float]()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def patience(self, **settings: Any) -> RetryPolicy:
        return RetryPolicy(now=self.now, sleep=self.sleep, seed=1, **settings)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node of its own: how old a head is depends on this machine's clock, and a shared chain may be ahead of it."""
    with anvil_node() as url:
        yield url


@pytest.fixture
def gateways(node: str) -> Iterator[list[Gateway]]:
    """Three ways to one node."""
    with ExitStack() as stack:
        yield [stack.enter_context(gateway(node)) for _ in range(3)]


def urls(gateways: list[Gateway]) -> list[str]:
    return [each.url for each in gateways]


def over(endpoints: Endpoints) -> Connection:
    return Connection(Web3(endpoints), endpoints.name)


def at_first(times: int, what: Any) -> Manner:
    """The first answers to anything are this one."""
    left = iter(range(times))
    return lambda method, params, node: what if next(left, None) is not None else node(method, params)


def to(wanted: str, what: Any) -> Manner:
    """Answers one method so."""
    return lambda method, params, node: what if method == wanted else node(method, params)


def on_a_public_chain(method: str, params: list[Any], node: Pass) -> Any:
    """A node that isn't a test node, so that its clock can't be moved and its head has to advance."""
    return "Geth/v1.16.4" if method == "web3_clientVersion" else node(method, params)


def behind(number: int) -> Manner:
    """A node that never gets further than a block."""
    return lambda method, params, node: (
        hex(number) if method == "eth_blockNumber" else on_a_public_chain(method, params, node)
    )


TROUBLES = {
    "too many requests": Raw(429),
    "too many requests, as JSON-RPC": {"error": {"code": -32005, "message": "limit exceeded"}},
    "internal error": Raw(500, b"oops"),
    "bad gateway": Raw(502, b"<html>"),
    "unavailable": Raw(503),
    "truncated": Raw(200, b'{"jsonrpc": "2.0", "id": 0, "resu', length=500),
    "of another request": Raw(200, b'{"jsonrpc": "2.0", "id": 987654, "result": "0x7a69"}'),
}
LASTING = {
    "no JSON": Raw(200, b"<html>hello</html>"),
    "no JSON-RPC": Raw(200, b"[1]"),
    "no error": {"error": None},
    "too deep": Raw(200, b"[" * 200_000),
    "no text": Raw(200, b"\xff\xfe"),
    "unauthorized": Raw(401),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_passing_trouble_is_asked_again(node: str, trouble: str, clock: Clock) -> None:
    with gateway(node, at_first(2, TROUBLES[trouble])) as bad:
        endpoints = Endpoints([bad.url], patience=clock.patience())
        assert over(endpoints).chain_id == 31337
    (health,) = endpoints.health()
    assert (health.failed, health.failed_in_a_row) == (2, 0)
    assert health.last_error.startswith(bad.url)
    assert len(clock.slept) == 2
    assert 0.125 <= clock.slept[0] <= 0.25 <= clock.slept[1] <= 0.5


@pytest.mark.parametrize("trouble", LASTING)
def test_what_never_was_a_node_is_refused_at_once(node: str, trouble: str, clock: Clock) -> None:
    """But a node that answered before is asked again, whatever a gateway says meanwhile."""
    with gateway(node, lambda method, params, node: LASTING[trouble]) as bad:
        endpoints = Endpoints([bad.url], patience=clock.patience())
        with pytest.raises(OperationalError, match="is the URL right"):
            over(endpoints)
        assert clock.slept == []
        assert len(bad.calls) == 1
        bad.manner = honest
        connection = over(endpoints)
        bad.manner = at_first(2, LASTING[trouble])
        assert connection.gas_price() > 0
        assert len(clock.slept) == 2


def test_a_node_that_ends_and_comes_back(node: str, clock: Clock) -> None:
    """Connections that are refused and reset."""
    with gateway(node) as gone:
        endpoints = Endpoints([gone.url], patience=clock.patience())
        connection = over(endpoints)
    with pytest.raises(OperationalError, match="can't be reached"):
        connection.block_number()
    assert len(clock.slept) == 5
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoints = Endpoints([f"http://127.0.0.1:{server.getsockname()[1]}"], patience=clock.patience(), timeout=0.3)
        with pytest.raises(OperationalError, match=r"didn't answer within 0\.3 s"):
            over(endpoints)


LAST_PIECE = 60  # three seconds and more
HEAD = b"HTTP/1.1 200 OK\r\n"
DRIPS: dict[str, tuple[bytes, bytes]] = {
    "a body of a stated length": (HEAD + b"Content-Length: 1000\r\n\r\n", b" "),
    "a body without a length": (HEAD + b"Connection: close\r\n\r\n", b" "),
    "a body in chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "the length of a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "a header": (HEAD + b"X-Slow: ", b"a"),
    "headers": (HEAD, b"A: b\r\n"),
    "the status": (b"HTTP/1.1 200 ", b"O"),
}


@contextmanager
def dripping(begin: bytes, more: bytes, secured: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server whose answer begins so, and goes on with a piece now and then; nobody waits for the last of them."""
    over, pieces = threading.Event(), iter(range(LAST_PIECE))

    def serve() -> None:
        peer, _ = server.accept()
        with suppress(OSError), secured.wrap_socket(peer, server_side=True) if secured else peer as talking:
            talking.recv(1 << 16)
            talking.sendall(begin)
            while not over.wait(0.05) and next(pieces, None) is not None:
                talking.sendall(more)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{'https' if secured else 'http'}://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join()
        assert next(pieces, None) is not None, "the client has waited for all of it"


@pytest.mark.parametrize("what", DRIPS)
def test_an_answer_that_drips(what: str) -> None:
    """Each piece comes in time, the whole answer never does."""
    with dripping(*DRIPS[what]) as url:
        endpoints = Endpoints([url], patience=RetryPolicy(attempts=1), timeout=0.4)
        with pytest.raises(OperationalError, match=r"didn't (finish its )?answer within 0\.4 s"):
            over(endpoints)


@pytest.mark.parametrize("what", ["a body of a stated length", "a header"])
def test_a_secured_answer_that_drips(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = certify(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    told = r"didn't (finish its )?answer within 0\.4 s"
    with dripping(*DRIPS[what], context) as url, pytest.raises(OperationalError, match=told):
        over(Endpoints([url], patience=RetryPolicy(attempts=1), timeout=0.4))


def test_a_drip_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with dripping(*DRIPS["a header"]) as url:
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(OperationalError, match=r"didn't answer within 0\.4 s"):
            over(Endpoints(["http://node.invalid:8545"], patience=RetryPolicy(attempts=1), timeout=0.4))


def test_the_others_of_a_quorum_go_on(gateways: list[Gateway]) -> None:
    with dripping(*DRIPS["a header"]) as url:
        endpoints = Endpoints([url, *urls(gateways)[:2]], quorum=2, patience=RetryPolicy(attempts=1), timeout=0.4)
        assert over(endpoints).chain_id == 31337


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_an_answer_without_an_end(node: str, encoding: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are counted as they come out of their encoding."""
    monkeypatch.setattr("pol.chain.rpc.http_endpoint.MOST_BYTES", 1 << 20)
    body = b" " * (64 << 20)
    raw = Raw(200, gzip.compress(body, 1), {"Content-Encoding": "gzip"}) if encoding else Raw(200, body)
    told = "answered with more than 1048576 bytes"
    with gateway(node, lambda *_: raw) as huge, pytest.raises(OperationalError, match=told):
        over(Endpoints([huge.url], patience=RetryPolicy(attempts=1)))


def test_nobody_sends_us_to_another_node(gateways: list[Gateway]) -> None:
    first, second, _ = gateways
    first.manner = lambda *_: Raw(307, headers={"Location": second.url})
    with pytest.raises(OperationalError, match=r"refused \(HTTP 307\)"):
        over(Endpoints([first.url], patience=RetryPolicy(attempts=1)))
    assert not second.calls


@pytest.mark.parametrize("what", ["a body of a stated length", "a header"])
def test_a_signer_that_drips(what: str) -> None:
    with dripping(*DRIPS[what]) as url, pytest.raises(OperationalError, match="doesn't answer"):
        RemoteSigner(url, to_checksum_address("0x" + "11" * 20), timeout=0.4).secret_key(1)


def test_retry_after(node: str, clock: Clock) -> None:
    """A number and a date are obeyed; what is longer than our patience is an error at once."""
    with gateway(node, at_first(1, Raw(429, headers={"Retry-After": "17"}))) as bad:
        over(Endpoints([bad.url], patience=clock.patience()))
        assert clock.slept == [pytest.approx(17)]
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(clock.time + 30))
        bad.manner = at_first(1, Raw(503, headers={"Retry-After": date}))
        over(Endpoints([bad.url], patience=clock.patience()))
        assert clock.slept[1] == pytest.approx(30, abs=1.5)
        bad.manner = at_first(1, Raw(429, headers={"Retry-After": "3600"}))
        with pytest.raises(OperationalError, match="429"):
            over(Endpoints([bad.url], patience=clock.patience()))
        for nonsense in ("-5", "soon", "٣", "1e9"):
            bad.manner = at_first(1, Raw(429, headers={"Retry-After": nonsense.encode().decode("latin-1")}))
            over(Endpoints([bad.url], patience=clock.patience()))
            assert clock.slept[-1] <= 0.25


def test_equal_seeds_wait_equally_long() -> None:
    def waits(seed: int) -> list[float]:
        clock = Clock()
        list(RetryPolicy(seed=seed, now=clock.now, sleep=clock.sleep, attempts=12).rounds(lambda: 0.0))
        return clock.slept

    assert waits(1) == waits(1) != waits(2)
    assert len(waits(1)) == 11
    assert all(4 <= wait <= 8 for wait in waits(1)[6:])


def test_one_endpoint_costs_no_request_more(node: str) -> None:
    with gateway(node) as counted:
        connection = Connection.to(counted.url)
        assert counted.calls == ["eth_chainId", "web3_clientVersion"]
        connection.now()
        connection.gas_price()
        connection.balance(Wallet.create(connection, KEY).address)
        assert counted.calls[2:] == ["eth_getBlockByNumber", "eth_gasPrice", "eth_getBalance"]


def test_secrets_of_urls_stay_there() -> None:
    url = "http://me:hunter2@127.0.0.1:9/v3/0123456789abcdef?key=hunter3"
    assert public_name(url) == "http://127.0.0.1:9/..."
    endpoints = Endpoints([url])
    with pytest.raises(OperationalError) as caught:
        over(endpoints)
    for secret in ("hunter2", "0123456789abcdef", "hunter3"):
        assert secret not in f"{caught.value} {caught.value.__cause__} {endpoints.health()} {endpoints.name}"
        assert secret not in str(caught.value.__context__)


def test_a_head_that_goes_back(node: str, clock: Clock) -> None:
    requests.post(node, json={"jsonrpc": "2.0", "id": 1, "method": "anvil_mine", "params": ["0x14"]}, timeout=30)
    with gateway(node, on_a_public_chain) as lagging:
        endpoints = Endpoints([lagging.url], patience=clock.patience())
        connection = over(endpoints)
        high = connection.block_number()
        assert high >= 20
        lagging.manner = behind(1)
        with pytest.raises(StaleHead, match=f"went back from block {high} to 1.*wait until the node"):
            connection.block_number()
        assert "went back" in endpoints.health()[0].last_error
        lagging.manner = on_a_public_chain
        assert connection.block_number() == high


def test_a_head_that_stands_still(node: str, clock: Clock) -> None:
    with gateway(node, on_a_public_chain) as halted:
        connection = over(Endpoints([halted.url], patience=clock.patience()))
        number = connection.block_number()
        clock.time += 299
        assert connection.block_number() == number
        clock.time += 10
        with pytest.raises(StaleHead, match=f"has been block {number} for 3.. s"):
            connection.now()
        # Whoever starts beside a node that stopped long ago sees it by the block's time.
        with pytest.raises(StaleHead):
            over(Endpoints([halted.url], patience=clock.patience())).now()


def test_test_chains_stand_still_and_go_back(node: str, clock: Clock) -> None:
    connection = over(Endpoints([node], patience=clock.patience()))
    make = connection.web3.provider.make_request
    snapshot = make(RPCEndpoint("evm_snapshot"), [])["result"]
    make(RPCEndpoint("anvil_mine"), ["0x5"])
    number = connection.block_number()
    clock.time += 10_000
    make(RPCEndpoint("evm_revert"), [snapshot])
    assert connection.block_number() == number - 5


def test_a_reorganisation_isn_t_a_stale_head() -> None:
    watch = HeadWatch(lambda: 1000.0, stall=300.0)
    assert watch.objection(10, "a", 990) is None
    assert watch.objection(12, "c", 995) is None
    assert watch.objection(10, "a", 990) is not None
    assert watch.objection(10, "b", 990) is None
    assert watch.objection(11, "d", 991) is None


def test_failover_and_back(gateways: list[Gateway], clock: Clock) -> None:
    first, second, _ = gateways
    endpoints = Endpoints(urls(gateways), patience=clock.patience())
    connection = over(endpoints)
    first.manner = lambda method, params, node: Raw(500)
    assert connection.gas_price() > 0
    assert clock.slept == []
    asked = len(first.calls)
    connection.gas_price()
    assert len(first.calls) == asked
    assert endpoints.health()[0].rests_until > clock.time
    first.manner = honest
    clock.time += 60
    seen = second.count("eth_gasPrice")
    connection.gas_price()
    assert second.count("eth_gasPrice") == seen
    assert first.calls[-3:] == ["eth_chainId", "eth_blockNumber", "eth_gasPrice"]


def test_failover_to_a_node_that_is_behind(node: str, clock: Clock) -> None:
    requests.post(node, json={"jsonrpc": "2.0", "id": 1, "method": "evm_mine", "params": []}, timeout=30)
    with gateway(node, on_a_public_chain) as good, gateway(node, behind(0)) as late:
        connection = over(Endpoints([good.url, late.url], patience=clock.patience()))
        connection.block_number()
        good.manner = lambda method, params, node: Raw(503)
        with pytest.raises(OperationalError):
            connection.balance(Wallet.create(connection, KEY).address)
        assert late.count("eth_getBalance") == 0


@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_nodes_of_different_chains(gateways: list[Gateway], quorum: int) -> None:
    gateways[2].manner = to("eth_chainId", "0x1")
    with pytest.raises(OperationalError, match=f"different chains.*{gateways[2].url} says 0x1"):
        Connection.to(*urls(gateways), quorum=quorum)


def test_a_node_that_changes_its_chain(gateways: list[Gateway], clock: Clock) -> None:
    """It was down when the process began; what it says is never passed on."""
    gateways[0].manner = lambda method, params, node: Raw(503)
    endpoints = Endpoints(urls(gateways), patience=clock.patience())
    connection = over(endpoints)
    gateways[0].manner = lambda method, params, node: {"eth_chainId": "0x1"}.get(method, "0x7")
    clock.time += 1000
    assert connection.gas_price() != 7
    assert "is on chain 1, not on 31337" in endpoints.health()[0].last_error
    assert gateways[0].count("eth_gasPrice") == 0


@pytest.mark.parametrize("liar", [0, *(pytest.param(liar, marks=pytest.mark.long) for liar in (1, 2))])
def test_one_liar_of_three_is_outvoted(gateways: list[Gateway], liar: int) -> None:
    def lies(method: str, params: list[Any], node: Pass) -> Any:
        answer = node(method, params)
        if method in ("eth_getBalance", "eth_blockNumber", "eth_gasPrice", "eth_getTransactionCount"):
            return hex(int(answer, 16) + 10**9)
        if method == "eth_call":
            return "0x" + "ee" * 32
        if method == "eth_getLogs":
            return []
        if method in ("eth_getTransactionReceipt", "eth_getBlockByNumber") and answer:
            return answer | {"status": "0x0", "timestamp": "0xffffffff"}
        return answer

    gateways[liar].manner = lies
    endpoints = Endpoints(urls(gateways), quorum=2)
    connection, truth = over(endpoints), over(Endpoints([urls(gateways)[liar - 1]]))
    wallet = Wallet.create(connection, KEY)
    toy_market.fund(truth, wallet.address)
    market = deploy(wallet).market(connection)
    market.vault.deposit(wallet, toy_market.DEPOSIT)
    assert market.vault.free(wallet.address) == toy_market.DEPOSIT
    assert len(market.vault.events("Deposited")) == 1
    assert connection.balance(wallet.address) == truth.balance(wallet.address)
    assert (connection.block_number(), connection.now()) == (truth.block_number(), truth.now())
    assert connection.gas_price() == truth.gas_price()
    with pytest.raises(Reverted, match="InvalidTerms"):
        market.registry.submit(wallet, toy_market.terms_of(toy_market.segment_traces()[0], steps=41))
    assert endpoints.health()[liar].outvoted > 0
    assert all(health.outvoted == 0 for i, health in enumerate(endpoints.health()) if i != liar)


def test_a_liar_that_writes_like_nobody_else_decides_nothing(gateways: list[Gateway]) -> None:
    """Nodes agree whatever the case of their hexadecimals, and the answer that is passed on is in one case."""

    def loud(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: loud(each) for name, each in value.items()}
        if isinstance(value, list):
            return [loud(each) for each in value]
        return value.upper() if isinstance(value, str) else value

    gateways[0].manner = lambda method, params, node: (
        node(method, params) if method == "eth_chainId" else loud(node(method, params))
    )
    connection, truth = over(Endpoints(urls(gateways), quorum=2)), over(Endpoints([gateways[1].url]))
    wallet = Wallet.create(connection, KEY)
    toy_market.fund(truth, wallet.address)
    market = deploy(wallet).market(connection)
    with connection.cached():
        market.vault.deposit(wallet, toy_market.DEPOSIT)
    for _ in range(2):
        with connection.cached():
            assert market.vault.free(wallet.address) == toy_market.DEPOSIT
            assert len(market.vault.events("Deposited")) == 1


@pytest.mark.parametrize("quorum", [1, 2])
def test_a_call_has_a_result(gateways: list[Gateway], clock: Clock, quorum: int) -> None:
    """Null is a block or a transaction that a node doesn't know yet; as the result of a call it is a node's failure."""
    gateways[0].manner = to("eth_call", None)
    connection = over(Endpoints(urls(gateways)[:quorum], quorum, clock.patience()))
    with connection.cached(), pytest.raises(OperationalError, match="without a result"):
        connection.web3.eth.call({"to": to_checksum_address(KEY[:20])})
    provider = connection.web3.provider
    assert isinstance(provider, Endpoints)
    assert provider.make_batch([(RPCEndpoint("eth_call"), [{}, "0x0"])]) == [None]


def test_a_quorum_with_one_node_down(gateways: list[Gateway], clock: Clock) -> None:
    endpoints = Endpoints(urls(gateways), quorum=2, patience=clock.patience())
    connection = over(endpoints)
    gateways[1].manner = lambda method, params, node: Raw(500)
    wallet = Wallet.create(connection, KEY)
    assert connection.balance(wallet.address) >= 0
    assert connection.now() > 0
    gateways[2].manner = gateways[1].manner
    with pytest.raises(OperationalError, match="2 nodes have to agree and 1 answered"):
        connection.balance(wallet.address)


def test_two_nodes_that_contradict_each_other(gateways: list[Gateway], clock: Clock) -> None:
    connection = over(Endpoints(urls(gateways)[:2], quorum=2, patience=clock.patience()))
    address = Wallet.create(connection, KEY).address
    gateways[1].manner = to("eth_getBalance", "0x7")
    with pytest.raises(NoQuorum, match="contradict each other about eth_getBalance"):
        connection.balance(address)
    assert len(clock.slept) == 5
    gateways[1].manner = honest
    assert connection.balance(address) >= 0


def test_reads_are_pinned_to_a_block_that_the_quorum_has(gateways: list[Gateway]) -> None:
    """The answers are of one block, though one node is ahead of the others."""
    asked: list[Any] = []
    ahead = 1000

    def first(method: str, params: list[Any], node: Pass) -> Any:
        asked.extend(params[1:] if method == "eth_getBalance" else [])
        return hex(int(node(method, params), 16) + ahead) if method == "eth_blockNumber" else node(method, params)

    gateways[0].manner = first
    endpoints = Endpoints(urls(gateways), quorum=2)
    connection = over(endpoints)
    number = connection.block_number()
    connection.balance(Wallet.create(connection, KEY).address)
    assert asked == [hex(number)]
    assert [health.head for health in endpoints.health()] == [number + ahead, number, number]


def test_a_transaction_goes_to_all_and_counts_once(gateways: list[Gateway]) -> None:
    """The node behind all three takes it once and calls it known, or its nonce used, twice."""
    connection = Connection.to(*urls(gateways), quorum=2)
    wallet = Wallet.create(connection, b"\x32" * 32)
    toy_market.fund(connection, wallet.address)
    before = connection.web3.eth.get_transaction_count(wallet.address)
    wallet.transfer(wallet.address, 1)
    assert connection.web3.eth.get_transaction_count(wallet.address) == before + 1
    assert all(each.count("eth_sendRawTransaction") == 1 for each in gateways)


def test_an_answer_that_is_lost_after_sending(node: str, clock: Clock) -> None:
    """The transaction is mined, the answer never arrives: sent again, and found by its hash."""
    lost = iter(range(1))

    def loses(method: str, params: list[Any], node: Pass) -> Any:
        answer = node(method, params)
        return Raw(502) if method == "eth_sendRawTransaction" and next(lost, None) is not None else answer

    with gateway(node, loses) as bad:
        connection = over(Endpoints([bad.url], patience=clock.patience()))
        wallet = Wallet.create(connection, b"\x33" * 32)
        toy_market.fund(connection, wallet.address)
        assert wallet.transfer(wallet.address, 1)["status"] == 1
        assert bad.count("eth_sendRawTransaction") == 2
        assert connection.web3.eth.get_transaction_count(wallet.address) == 1


def test_a_node_that_names_another_hash(node: str, clock: Clock) -> None:
    """Who waits for the wrong receipt sends again."""
    with gateway(node, to("eth_sendRawTransaction", "0x" + "ab" * 32)) as liar:
        wallet = Wallet.create(over(Endpoints([liar.url], patience=clock.patience())), b"\x34" * 32)
        toy_market.fund(over(Endpoints([node])), wallet.address)
        with pytest.raises(OperationalError, match="another hash"):
            wallet.transfer(wallet.address, 1)


def test_what_changes_state_otherwise_is_sent_once(node: str, clock: Clock) -> None:
    with gateway(node) as bad:
        endpoints = Endpoints([bad.url], patience=clock.patience())
        connection = over(endpoints)
        bad.manner = at_first(1, Raw(500))
        account = connection.web3.eth.accounts[0]
        bad.calls.clear()
        bad.manner = lambda method, params, node: Raw(500)
        for method, params in (("eth_sendTransaction", [{"from": account, "to": account}]), ("evm_mine", [])):
            with pytest.raises(OperationalError):
                endpoints.make_request(RPCEndpoint(method), params)
        assert bad.calls == ["eth_sendTransaction", "evm_mine"]


def test_numbers_of_nodes() -> None:
    for wrong in (([], 1), (["http://a", "http://b"], 3), (["http://a"], 0), (["http://a", "http://a"], 2)):
        with pytest.raises(OperationalError, match="quorum"):
            Endpoints(*wrong)


VOTES = st.lists(st.sampled_from("abc"), min_size=1, max_size=9)


@given(VOTES, st.integers(1, 9))
def test_an_answer_holds_if_it_alone_has_a_quorum(votes: list[str], needed: int) -> None:
    reached = {vote for vote in votes if votes.count(vote) >= needed}
    assert agreed(votes, needed) == (next(iter(reached)) if len(reached) == 1 else None)


@given(st.integers(2, 7), st.data())
def test_fewer_liars_than_a_quorum_never_win(needed: int, data: st.DataObject) -> None:
    """Whatever they say, together or each for itself, and wherever they stand: the truth, or nothing."""
    honest_nodes = data.draw(st.integers(0, 9))
    lies = data.draw(st.lists(st.sampled_from(["x", "y", "z"]), max_size=needed - 1))
    votes = data.draw(st.permutations(["truth"] * honest_nodes + lies))
    assert agreed(votes, needed) == ("truth" if honest_nodes >= needed else None)


@given(st.integers(1, 6), st.lists(st.integers(0, 50), min_size=1, max_size=9), st.data())
def test_liars_move_no_head_beyond_the_honest(needed: int, heads: list[int], data: st.DataObject) -> None:
    lies = data.draw(st.lists(st.integers(-(2**70), 2**70), max_size=needed - 1))
    found = at_least(data.draw(st.permutations(heads + lies)), needed)
    if found is None:
        assert len(heads) + len(lies) < needed
        return
    assert found <= max(heads)
    assert sum(number >= found for number in heads + lies) >= needed
    if len(heads) >= needed:
        assert found >= sorted(heads, reverse=True)[needed - 1]
