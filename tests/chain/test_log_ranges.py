"""Logs from nodes that limit blocks or logs of a request, in the words of each of them; and requests that are kept.

While somebody looks, the node is asked for each thing once; what is sent ends that.
"""

from collections import Counter
from typing import Any

import pytest
from manual_node import KEY
from web3 import HTTPProvider, Web3
from web3.exceptions import Web3Exception
from web3.types import RPCEndpoint, Wei

from misbehaving_nodes import Pass, Raw, gateway
from node_snapshots import order
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection
from pol.chain.rpc.rpc_methods import MOST, LogRanges, NoLogs
from pol.errors import OperationalError
from shared_chain import SharedChain

REFUSALS = [
    (-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range"),
    (-32600, "block range is too wide"),
    (-32005, "query returned more than 10000 results"),
    (-32005, "limit exceeded"),
    (-32000, "exceed maximum block range: 5000"),
    (-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800"),
    (-32614, "eth_getLogs is limited to a 10,000 range"),
    (413, "the answer is too large"),
    (502, "upstream timed out"),
    (-32701, "Please specify an address in your request or, to remove restrictions, order a dedicated full node"),
]


class Limited:
    """Gives at most so many blocks, or logs, of which each block has one."""

    def __init__(self, blocks: int, logs: int = 10**9, refuses: tuple[int, str] = REFUSALS[0]) -> None:
        self.blocks, self.logs, self.refuses, self.asked, self.refused = blocks, logs, refuses, 0, 0

    def __call__(self, query: dict[str, Any]) -> Any:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        self.asked += 1
        if last - first + 1 > min(self.blocks, self.logs):
            self.refused += 1
            return {"error": {"code": self.refuses[0], "message": self.refuses[1]}}
        return {"result": list(range(first, last + 1))}


@pytest.mark.rules
@pytest.mark.parametrize("node", [Limited(800), Limited(10), Limited(1), Limited(10**6, logs=123)])
def test_every_block_is_read_once_and_the_length_is_remembered(node: Limited) -> None:
    ranges, last = LogRanges(), 12_345
    query = {"fromBlock": "0x1", "toBlock": hex(last)}
    assert ranges.read(node, query)["result"] == list(range(1, last + 1))
    node.asked = node.refused = 0
    assert len(ranges.read(node, query)["result"]) == last
    assert node.refused <= node.asked // 2


@pytest.mark.rules
def test_a_node_without_logs_is_left_and_a_passing_trouble_is_forgotten() -> None:
    ranges, node = LogRanges(), Limited(0)
    query = {"fromBlock": "0x1", "toBlock": hex(20_000)}
    with pytest.raises(NoLogs, match="block 1: "):
        ranges.read(node, query)
    assert (ranges.blocks, node.asked) == (MOST, 13)
    ranges.blocks = 1
    for _ in range(4):
        ranges.read(Limited(MOST), query)
    assert ranges.blocks == MOST
    assert ranges.read(node, query | {"toBlock": "0x0"})["result"] == []


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal[0]}: {refusal[1][:20]}")
def test_a_limit_in_any_words_is_no_failure(node_chain: SharedChain, refusal: tuple[int, str]) -> None:
    def limits(method: str, params: list[Any], node: Pass) -> Any:
        answer = Limited(3, refuses=refusal)(params[0]) if method == "eth_getLogs" else {}
        if "error" in answer:
            return Raw(status=refusal[0], body=refusal[1].encode()) if refusal[0] > 0 else answer
        return node(method, params)

    with node_chain.lent(), gateway(node_chain.connection.name, limits) as proxy:
        connection = Connection.to(proxy.url)
        node_chain.connection.wait_for_block(10)
        assert connection.web3.eth.get_logs({"fromBlock": 0, "toBlock": 10}) == []
        assert proxy.count("eth_getLogs") < 12


@pytest.mark.parametrize("body", [None, b"logs of block 1 are pruned"])
def test_the_next_node_is_asked_for_logs_that_one_does_not_have(node_chain: SharedChain, body: bytes | None) -> None:
    def pruned(method: str, params: list[Any], node: Pass) -> Any:
        if method != "eth_getLogs":
            return node(method, params)
        return Raw(status=400, body=body) if body else {"error": {"code": -32000, "message": "history is pruned"}}

    name = node_chain.connection.name
    with node_chain.lent(), gateway(name, pruned) as proxy, gateway(name) as archive:
        assert Connection.to(proxy.url, archive.url).web3.eth.get_logs({"fromBlock": 0, "toBlock": 1}) == []
        assert archive.count("eth_getLogs") == 1


@pytest.mark.long
def test_logs_that_no_node_has_are_an_error_of_the_node(node_chain: SharedChain) -> None:
    def pruned(method: str, params: list[Any], node: Pass) -> Any:
        return {"error": {"code": -32000, "message": "history is pruned"}} if "Logs" in method else node(method, params)

    with node_chain.lent(), gateway(node_chain.connection.name, pruned) as proxy:
        eth = Connection.to(proxy.url).web3.eth
        with pytest.raises(OperationalError, match=r"gives no logs of block 0.*history is pruned"):
            eth.get_logs({"fromBlock": 0, "toBlock": 1})


class Counting(HTTPProvider):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: Counter[str] = Counter()

    def make_request(self, method: RPCEndpoint, params: Any) -> Any:
        self.asked[method] += 1
        return super().make_request(method, params)


def test_each_thing_is_asked_for_once_while_nothing_is_sent(node_chain: SharedChain) -> None:
    with node_chain.lent():
        provider = Counting(node_chain.connection.name)
        connection = Connection(Web3(provider), "node")
        asked = provider.asked
        address = connection.web3.eth.accounts[1]
        wallet = Wallet.create(connection, KEY)
        order(connection, "anvil_setBalance", wallet.address, hex(10**20))
        asked.clear()
        with connection.cached():
            before = connection.balance(address)
            with connection.cached():
                assert connection.balance(address) == before
            assert connection.now() == connection.now()
            assert (asked["eth_getBalance"], asked["eth_getBlockByNumber"]) == (1, 1)
            wallet.transfer(address, 5)
            assert connection.balance(address) == before + 5
        asked.clear()
        assert [connection.balance(address) for _ in range(2)] == [before + 5] * 2
        assert asked["eth_getBalance"] == 2
        assert connection.web3.eth.chain_id == connection.chain_id
        assert asked["eth_chainId"] == 0


def test_a_refusal_is_asked_for_again(node_chain: SharedChain) -> None:
    provider = Counting(node_chain.connection.name)
    connection = Connection(Web3(provider), "node")
    provider.asked.clear()
    with connection.cached():
        for _ in range(2):
            with pytest.raises(Web3Exception):
                connection.web3.eth.get_logs({"fromBlock": 10**9, "toBlock": 1})
    assert provider.asked["eth_getLogs"] == 2


@pytest.mark.parametrize("embedded", [False, True])
def test_all_that_is_read_together_is_of_one_block(node_chain: SharedChain, embedded: bool) -> None:
    """Blocks that come in between change nothing; the next look has them."""
    with node_chain.lent():
        there = Connection.embedded() if embedded else node_chain.connection
        # An own cache: this connection doesn't know what the other one sends.
        connection = Connection(Web3(there.web3.provider if embedded else Counting(there.name)), "node")
        sender, receiver = there.web3.eth.accounts[1:3]
        there.wait_for_block(20)
        before = there.balance(receiver)
        with connection.cached():
            block = connection.block_number()
            there.web3.eth.send_transaction({"from": sender, "to": receiver, "value": Wei(5)})
            there.wait_for_block(block + 1)
            assert connection.balance(receiver) == before
            assert connection.block_number() == block
        assert connection.balance(receiver) == before + 5
        assert connection.block_number() > block
        with connection.cached():  # who waits looks at the latest block again
            connection.wait_until(connection.now() + 5)
            connection.wait_for_block(connection.block_number() + 2)
