"""While somebody looks, the node is asked for each thing once; what is sent ends that."""

from collections import Counter
from typing import Any

import pytest
from manual_node import KEY
from web3 import HTTPProvider, Web3
from web3.exceptions import Web3Exception
from web3.types import RPCEndpoint, Wei

from node_snapshots import order
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection
from shared_chain import SharedChain


class Counting(HTTPProvider):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: Counter[str] = Counter()

    def make_request(self, method: RPCEndpoint, params: Any) -> Any:
        self.asked[method] += 1
        return super().make_request(method, params)


def test_each_thing_is_asked_for_once_while_nothing_is_sent(chain: SharedChain) -> None:
    with chain.lent():
        provider = Counting(chain.connection.name)
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


def test_a_refusal_is_asked_for_again(chain: SharedChain) -> None:
    provider = Counting(chain.connection.name)
    connection = Connection(Web3(provider), "node")
    provider.asked.clear()
    with connection.cached():
        for _ in range(2):
            with pytest.raises(Web3Exception):
                connection.web3.eth.get_logs({"fromBlock": 10**9, "toBlock": 1})
    assert provider.asked["eth_getLogs"] == 2


@pytest.mark.parametrize("embedded", [False, True])
def test_all_that_is_read_together_is_of_one_block(chain: SharedChain, embedded: bool) -> None:
    """Blocks that come in between change nothing; the next look has them."""
    with chain.lent():
        there = Connection.embedded() if embedded else chain.connection
        # An own cache: this connection doesn't know what the other one sends.
        connection = Connection(Web3(there.web3.provider if embedded else Counting(there.name)), "node")
        sender, receiver = there.web3.eth.accounts[1:3]
        before = there.balance(receiver)
        with connection.cached():
            block = connection.block_number()
            there.web3.eth.send_transaction({"from": sender, "to": receiver, "value": Wei(5)})
            there.wait_for_block(block + 1)
            assert connection.balance(receiver) == before
            assert connection.block_number() == block
        assert connection.balance(receiver) == before + 5
        assert connection.block_number() > block
