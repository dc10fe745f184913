"""Calls that depend on no other share blocks, and each has its effect once."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from manual_node import COUNTER, ONCE, Pool, pool

from pol.chain.account import outbox
from pol.chain.account.outbox_journal import IntentState
from pol.chain.account.wallet import Reverted, Wallet
from pol.errors import OperationalError


def post(wallet: Wallet, *calls: bytes) -> None:
    for data in calls:
        assert wallet.post_data(COUNTER, data, "count") is None


@contextmanager
def wallet_of_pool() -> Iterator[tuple[Pool, Wallet]]:
    with pool() as node:
        yield node, node.wallet()


def test_calls_share_a_block() -> None:
    with wallet_of_pool() as (node, wallet):
        with wallet.posting():
            post(wallet, b"\x01", b"\x02", b"\x03")
            assert node.counted() == 0
        assert {int(receipt["blockNumber"]) for receipt in wallet.receipts} == {node.eth.block_number}
        assert (node.counted(), node.nonce(wallet), len(wallet.receipts)) == (3, 3, 3)


def test_the_same_call_is_posted_once() -> None:
    with wallet_of_pool() as (node, wallet):
        with wallet.posting():
            post(wallet, b"\x01", b"\x01")
        assert node.counted() == 1
        wallet.send_data(COUNTER, b"\x01", "count")
        assert node.counted() == 2


def test_a_refused_call_leaves_no_gap() -> None:
    with wallet_of_pool() as (node, wallet):
        wallet.send_data(ONCE, b"\x01", "count")
        with wallet.posting():
            post(wallet, b"\x01")
            with pytest.raises(Reverted):
                wallet.post_data(ONCE, b"\x01", "count")
            post(wallet, b"\x02")
        assert (node.counted(), node.counted(ONCE), node.nonce(wallet)) == (2, 1, 3)


def test_a_call_that_waits_comes_behind_those_that_dont() -> None:
    with wallet_of_pool() as (node, wallet):
        with wallet.posting():
            post(wallet, b"\x01")
            assert wallet.send_data(COUNTER, b"\x02", "count")["status"] == 1
            assert node.counted() == 2
            post(wallet, b"\x03")
        assert node.counted() == 3


def test_dropped_calls_are_broadcast_again() -> None:
    with wallet_of_pool() as (node, wallet):
        with wallet.posting():
            post(wallet, b"\x01", b"\x02")
            node.drop(wallet)
        assert (node.counted(), node.nonce(wallet)) == (2, 2)


def test_no_more_are_under_way_than_nodes_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST_POSTED", 2)
    most = 0
    with wallet_of_pool() as (node, wallet):
        with wallet.posting():
            for number in range(5):
                post(wallet, bytes([number]))
                most = max(most, len(node.hashes(wallet)))
        assert (most, node.counted()) == (2, 5)


def test_what_is_late_stays_in_the_journal_and_is_finished_later() -> None:
    with wallet_of_pool() as (node, wallet):

        def posted() -> None:
            with wallet.posting():
                post(wallet, b"\x01", b"\x02")
                node.steps = [node.halt] * 300

        with pytest.raises(OperationalError, match="isn't in enough blocks"):
            posted()
        assert len(wallet.journal.intents(IntentState.OPEN)) == 2
        node.steps = []
        assert len(wallet.outbox.resume()) == 2
        assert (node.counted(), wallet.journal.intents(IntentState.OPEN)) == (2, [])


def test_a_stranger_with_our_key_goes_first() -> None:
    """Another process has sent something that isn't in a block yet: nothing replaces it."""
    with pool() as node:
        wallet, other = node.wallet(), node.wallet()
        with other.posting():
            post(other, b"\x01")
            _posted(node, wallet)
        assert node.counted() == 2


def _posted(node: Pool, wallet: Wallet) -> None:
    with wallet.posting():
        post(wallet, b"\x02")
    assert node.nonce(wallet) == 2
