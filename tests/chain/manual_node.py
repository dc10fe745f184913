"""A node whose blocks come when a test says so, two contracts that count, and wallets whose time is the test's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address

from anvil_node import anvil_node
from node_snapshots import order
from pol.chain.account.gas_fees import GWEI, InclusionPolicy
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection

KEY = b"\x07" * 32
COUNTER = to_checksum_address("0x00000000000000000000000000000000c0117e12")
"""Counts its calls in slot 0."""

ONCE = to_checksum_address("0x000000000000000000000000000000000000a123")
"""The same, and refuses a second call."""

_COUNTER_CODE = "0x5f546001015f5500"
_ONCE_CODE = "0x5f54600a5760015f55005b5f5ffd"


class Pool:
    """A node and its orders. A wallet that waits runs the next of the ``steps``; after the last one blocks come."""

    def __init__(self, url: str) -> None:
        self.connection = Connection.to(url)
        self.eth = self.connection.web3.eth
        self.steps: list[Callable[[], object]] = []
        self.told: list[str] = []
        self.time = 0.0
        self.order("anvil_setCode", COUNTER, _COUNTER_CODE)
        self.order("anvil_setCode", ONCE, _ONCE_CODE)
        self.mine()  # what is set belongs to the next block: no reorganisation of a test goes behind it

    def order(self, method: str, *arguments: Any) -> Any:
        return order(self.connection, method, *arguments)

    def wallet(self, key: bytes = KEY, **settings: Any) -> Wallet:
        settings.setdefault("patience", InclusionPolicy(blocks=2, seconds=30, timeout=100))
        wallet = Wallet.create(
            self.connection, key, clock=lambda: self.time, sleep=self.wait, tell=self.told.append, **settings
        )
        if wallet.balance() == 0:
            self.order("anvil_setBalance", wallet.address, hex(10**20))
        return wallet

    def wait(self, seconds: float) -> None:
        self.time += seconds
        if self.steps:
            self.steps.pop(0)()
        else:
            self.mine()

    def mine(self, blocks: int = 1, base: int | None = None) -> None:
        for _ in range(blocks):
            if base is not None:
                self.order("anvil_setNextBlockBaseFeePerGas", hex(base))
            self.order("evm_mine")

    def crowd(self) -> None:
        """A block that has room for somebody else only, who tips more: what anvil can't include by price it drops."""
        rich = self.eth.accounts[0]
        fees = {"maxFeePerGas": hex(900 * GWEI), "maxPriorityFeePerGas": hex(90 * GWEI)}
        self.order("eth_sendTransaction", {"from": rich, "to": rich, "gas": hex(21_000), **fees})
        self.order("evm_setBlockGasLimit", hex(22_000))
        self.mine()
        self.order("evm_setBlockGasLimit", hex(30_000_000))

    def halt(self) -> None:
        """No block comes."""

    def counted(self, contract: ChecksumAddress = COUNTER) -> int:
        return int.from_bytes(self.eth.get_storage_at(contract, 0))

    def nonce(self, wallet: Wallet) -> int:
        return self.eth.get_transaction_count(wallet.address)

    def hashes(self, wallet: Wallet) -> list[bytes]:
        pool = self.order("txpool_content")["pending"]
        sent = next((sent for address, sent in pool.items() if address.lower() == wallet.address.lower()), {})
        return [bytes.fromhex(transaction["hash"][2:]) for transaction in sent.values()]

    def drop(self, wallet: Wallet) -> None:
        for digest in self.hashes(wallet):
            self.order("anvil_dropTransaction", "0x" + digest.hex())
        assert self.hashes(wallet) == []

    def heard(self, words: str) -> bool:
        return any(words in told for told in self.told)


def count(wallet: Wallet, contract: ChecksumAddress = COUNTER) -> Any:
    return wallet.send_data(contract, b"\x01", "count")


@contextmanager
def pool() -> Iterator[Pool]:
    with anvil_node("--no-mining", "--base-fee", str(GWEI)) as url:
        yield Pool(url)
