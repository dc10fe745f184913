"""The transaction in a block that has used a nonce: the only proof that another one with that nonce is gone."""

from __future__ import annotations

from dataclasses import dataclass

from eth_typing import BlockNumber, ChecksumAddress
from web3.eth import Eth
from web3.exceptions import BlockNotFound


@dataclass(frozen=True)
class UsedNonce:
    """A transaction's hash, and the number of its block."""

    hash: bytes
    block: int


def used_nonce(eth: Eth, address: ChecksumAddress, nonce: int) -> UsedNonce | None:
    """The transaction with this sender and nonce; None if the node shows none.

    No method finds it by sender and nonce, so the block is looked for in which the account's count passes the nonce.
    Counts of back ends that lag may contradict each other; the transaction itself has to be in the block.

    Raises:
        Web3RPCError: the node has no state of a block that is asked for.
    """

    def used(block: int) -> bool:
        return eth.get_transaction_count(address, BlockNumber(block)) > nonce

    high, step = int(eth.block_number), 1
    if not used(high):
        return None
    while (low := max(high - step, -1)) >= 0 and used(low):
        high, step = low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if used(middle) else (middle, high)
    try:
        block = eth.get_block(BlockNumber(high), full_transactions=True)
    except BlockNotFound:
        return None
    for sent in block["transactions"]:
        if not isinstance(sent, bytes) and (sent["from"], sent["nonce"]) == (address, nonce):
            return UsedNonce(bytes(sent["hash"]), high)
    return None
