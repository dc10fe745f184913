"""A call whose gas fits into a transaction is sent, also where a quarter more would not fit."""

import pytest
from manual_node import COUNTER

from anvil_node import anvil_node
from node_snapshots import order
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection
from pol.dispute.encoding.move_gas import BLOCK_GAS

LOOP = "0x5f355b60019003806002570000"
"""Counts its argument down to zero; 26 gas each time."""
BLOCK = 30_000_000


@pytest.mark.parametrize(("hardfork", "most"), [("prague", BLOCK), ("osaka", BLOCK_GAS)])
def test_a_margin_is_as_large_as_there_is_room(hardfork: str, most: int) -> None:
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
