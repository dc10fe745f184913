"""Connections, wallets, the log cache, deployments."""

from typing import Any

import pytest
from manual_node import COUNTER

import toy_market
from anvil_node import anvil_node
from misbehaving_nodes import Pass, gateway, honest
from node_snapshots import order
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.desks.market import Market
from pol.chain.node.connection import Connection
from pol.dispute.encoding.move_sizes import BLOCK_GAS
from pol.errors import OperationalError, ProtocolError

LOOP = "0x5f355b60019003806002570000"
"""Counts its argument down to zero; 26 gas each time."""
BLOCK = 30_000_000


def market_on(connection: Connection) -> tuple[Market, Wallet, Deployment]:
    wallet = Wallet.create(connection, b"\x05" * 32)
    toy_market.fund(connection, wallet.address)
    deployment = deploy(wallet)
    return deployment.market(connection), wallet, deployment


def test_nothing_listens() -> None:
    with pytest.raises(OperationalError, match="Is the node running"):
        Connection.to("http://127.0.0.1:9")


@pytest.mark.long
def test_embedded_chains_repeat_themselves() -> None:
    def head(seed: int) -> bytes:
        connection = Connection.embedded(seed)
        market_on(connection)
        connection.wait_until(connection.now() + 1000)
        return bytes(connection.web3.eth.get_block("latest")["hash"])

    assert head(1) == head(1)
    assert head(1) != head(2)


def test_time_and_blocks() -> None:
    connection = Connection.embedded()
    now, number = connection.now(), connection.block_number()
    connection.wait_until(now + 500)
    assert connection.now() > now + 500
    connection.wait_for_block(number + 7)
    assert connection.block_number() >= number + 7


def test_a_revert_is_told_before_anything_is_sent() -> None:
    market, wallet, _ = market_on(Connection.embedded())
    sent = len(wallet.receipts)
    with pytest.raises(Reverted, match="InvalidTerms") as caught:
        market.registry.submit(wallet, toy_market.terms_of(toy_market.segment_traces()[0], steps=41))
    assert caught.value.error == "InvalidTerms"
    assert caught.value.arguments
    assert len(wallet.receipts) == sent


def test_a_deployment_document() -> None:
    _, _, deployment = market_on(Connection.embedded())
    assert Deployment.from_json(deployment.to_json()) == deployment
    for text in ("{}", "[]", "x", '{"chain_id": 1}'):
        with pytest.raises(ProtocolError):
            Deployment.from_json(text)
    with anvil_node() as url, pytest.raises(OperationalError, match="is chain"):
        deployment.market(Connection.to(url))


def test_the_log_cache_follows_a_reorganisation() -> None:
    """Events that didn't happen are forgotten."""
    with anvil_node() as url:
        connection = Connection.to(url)
        market, wallet, _ = market_on(connection)
        registry = market.registry
        market.vault.deposit(wallet, toy_market.DEPOSIT)
        snapshot = connection.web3.provider.make_request("evm_snapshot", [])["result"]  # type: ignore[arg-type]  # anvil's
        terms = toy_market.terms_of(toy_market.segment_traces()[0])
        registry.submit(wallet, terms)
        assert len(registry.events("TaskSubmitted")) == 1
        connection.web3.provider.make_request("evm_revert", [snapshot])  # type: ignore[arg-type]  # anvil's
        connection.wait_for_block(connection.block_number() + 3)
        assert registry.events("TaskSubmitted") == []
        assert len(market.vault.events("Deposited")) == 1
        registry.submit(wallet, terms)
        assert len(registry.events("TaskSubmitted", submitter=wallet.address)) == 1
        assert registry.events("TaskSubmitted", submitter="0x" + "00" * 20) == []


def test_the_log_cache_reads_again_only_what_may_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a reorganization, also while the chain is shorter than it was; and near the head."""
    monkeypatch.setattr("pol.chain.node.event_cache.DEEP", 2)
    with anvil_node() as url:
        connection = Connection.to(url)
        market, wallet, _ = market_on(connection)
        vault = market.vault
        vault.deposit(wallet, 5)
        assert len(vault.events("Deposited")) == 1
        read = connection.block_number()
        connection.wait_for_block(read + 2)
        assert len(vault.events("Deposited")) == 1
        snapshot = connection.web3.provider.make_request("evm_snapshot", [])["result"]  # type: ignore[arg-type]  # anvil's
        for _ in range(3):
            vault.deposit(wallet, 5)
            vault.events("Deposited")
        connection.web3.provider.make_request("evm_revert", [snapshot])  # type: ignore[arg-type]  # anvil's
        original, calls = connection.web3.manager.request_blocking, list[Any]()

        def counted(method: Any, params: Any, *others: Any) -> Any:
            calls.extend(params if method == "eth_getLogs" else ())
            return original(method, params, *others)

        monkeypatch.setattr(connection.web3.manager, "request_blocking", counted)
        assert len(vault.events("Deposited")) == 1
        assert calls == []
        vault.deposit(wallet, 7)
        assert [event["amount"] for event in vault.events("Deposited")] == [5, 7]
        assert [query["fromBlock"] for query in calls] == [hex(read + 1)]


def test_an_event_that_a_lagging_back_end_leaves_out_is_read_later() -> None:
    """Behind a balancer one back end has the head, and another one gives the logs: neither says that it lags."""
    with anvil_node() as url:
        market, wallet, deployment = market_on(Connection.to(url))
        behind = 0

        def lags(method: str, params: list[Any], node: Pass) -> Any:
            if method == "eth_getLogs" and behind:
                last = int(params[0]["toBlock"], 16) - behind
                return (
                    node(method, [params[0] | {"toBlock": hex(last)}])
                    if last >= int(params[0]["fromBlock"], 16)
                    else []
                )
            return (
                None if method == "eth_getBlockByNumber" and behind and params[0] != "latest" else node(method, params)
            )

        with gateway(url, lags) as proxy:
            vault = deployment.market(Connection.to(proxy.url)).vault
            for number, behind in enumerate((0, 3, 1, 200, 3, 0), 1):  # noqa: B007 - `lags` reads it
                market.vault.deposit(wallet, number)
                seen = [event["amount"] for event in vault.events("Deposited")]
                assert seen == {1: [1], 2: [1], 3: [1, 2], 4: [1, 2], 5: [1, 2], 6: [1, 2, 3, 4, 5, 6]}[number]


@pytest.mark.parametrize(("hardfork", "most"), [("prague", BLOCK), ("osaka", BLOCK_GAS)])
def test_a_margin_of_gas_is_as_large_as_there_is_room(hardfork: str, most: int) -> None:
    """A call whose gas fits into a transaction is sent, also where a quarter more would not fit."""
    with anvil_node("--gas-limit", str(BLOCK), hardfork=hardfork) as url:
        connection = Connection.to(url)
        order(connection, "anvil_setCode", COUNTER, LOOP)
        wallet = Wallet.create(connection, b"\x07" * 32)
        order(connection, "anvil_setBalance", wallet.address, hex(10**20))
        for share in (0.5, 0.9):
            gas = round(share * most)
            receipt = wallet.send_data(COUNTER, (gas // 26).to_bytes(32, "big"), "loop")
            assert receipt["status"] == 1
            sent = connection.web3.eth.get_transaction(receipt["transactionHash"])["gas"]
            assert sent <= most
            assert sent >= 1.05 * receipt["gasUsed"]


def test_an_event_left_out_is_read_later_by_who_looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last blocks of the last look are read again, however many there are since; those before are not."""
    monkeypatch.setattr("pol.chain.node.event_cache.DEEP", 4)
    with anvil_node() as url:
        market, wallet, deployment = market_on(Connection.to(url))
        behind, asked = 0, list[int]()

        def lags(method: str, params: list[Any], node: Pass) -> Any:
            if method != "eth_getLogs":
                return node(method, params)
            asked.append(int(params[0]["fromBlock"], 16))
            return node(method, [params[0] | {"toBlock": hex(int(params[0]["toBlock"], 16) - behind)}])

        with gateway(url, lags) as proxy:
            connection = Connection.to(proxy.url)
            vault = deployment.market(connection).vault
            vault.events("Deposited")
            market.vault.deposit(wallet, 1)
            order(connection, "anvil_mine", hex(20))
            market.vault.deposit(wallet, 2)
            behind = 1
            assert [event["amount"] for event in vault.events("Deposited")] == [1]
            last, behind = connection.block_number(), 0
            order(connection, "anvil_mine", hex(20))
            assert [event["amount"] for event in vault.events("Deposited")] == [1, 2]
            assert asked[-1] == last - 3


def test_an_event_is_the_same_however_a_node_writes_it() -> None:
    """Nodes of a quorum agree whatever the case of their hexadecimals, and the answer of any of them is taken."""
    with anvil_node() as url:
        market, wallet, deployment = market_on(Connection.to(url))

        def loud(method: str, params: list[Any], node: Pass) -> Any:
            found = node(method, params)
            for log in found if method == "eth_getLogs" else ():
                log |= {"blockHash": "0x" + log["blockHash"][2:].upper(), "logIndex": "0x0" + log["logIndex"][2:]}
            return found

        with gateway(url) as proxy:
            vault = deployment.market(Connection.to(proxy.url)).vault
            for number in range(1, 4):
                market.vault.deposit(wallet, number)
                assert [event["amount"] for event in vault.events("Deposited")] == [*range(1, number + 1)]
                proxy.manner = loud if number == 1 else honest
