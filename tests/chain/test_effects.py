"""An intent has at most one effect: on nodes that lag, lose answers and reorganize, and in killed processes."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import combinations, product
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from eth_utils.conversions import to_hex
from hexbytes import HexBytes
from manual_node import COUNTER, KEY, ONCE, Pool, count, pool

from anvil_node import anvil_node
from misbehaving_nodes import Pass, Raw, gateway
from pol.chain.account.gas_fees import GWEI
from pol.chain.account.outbox import STRANGER
from pol.chain.account.outbox_journal import IntentState, OutboxJournal, OutgoingCall
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.party_database import PartyDatabase

LATE = (0.0, 0.5, 3.0, 30.0)
"""Seconds of a block's age at which a node gives the receipts of its transactions."""
BLOCKS = (0.0, 2.0, 12.0)
"""Seconds between two blocks; 0: each transaction gets one."""
FAULTS = ("blind", "reorganization", "lost answer", "kill", "forgetful", "stranger")
"""Transactions by hash are late as well; a block goes; an answer to a transaction goes; the process goes; the node
shows no transaction that waits, and refuses one that it has; another process takes the nonce."""


class Killed(BaseException):
    """Ends a process as SIGKILL does: nothing of the wallet runs after it."""


class LaggingPool(Pool):
    """A pool behind a gateway. Its clock is that of the wallets; blocks come by it, and answers when they are due."""

    twin: Wallet

    def __init__(self, url: str, block: float, late: float, faults: tuple[str, ...]) -> None:
        self.block, self.late, self.lost = block, late, int("lost answer" in faults)
        self.blind, self.forgetful = "blind" in faults, "forgetful" in faults
        self.is_shared = self.strangers = "stranger" in faults
        self._seen: dict[str, float] = {}
        super().__init__(url)

    def wait(self, seconds: float) -> None:
        before, self.time = self.time, self.time + seconds
        if self.steps:
            self.steps.pop(0)()
        if self.block:
            self.mine(int(self.time // self.block - before // self.block))
        elif self.is_shared:
            self.mine()  # others send as well, or a stranger's transaction would never be deep

    def manner(self, method: str, params: list[Any], node: Pass) -> Any:
        if method == "eth_sendRawTransaction" and self.strangers:
            self.strangers = False
            node(method, [to_hex(strangers(self.twin))])
            if self.block == 0:
                node("evm_mine", [])
        answer = node(method, params)
        refused = isinstance(answer, dict) and "error" in answer
        if method == "eth_sendRawTransaction" and refused and self.forgetful:
            return {"error": {"code": -32000, "message": "transaction type not supported"}}
        if method == "eth_sendRawTransaction" and not refused:
            if self.block == 0:
                node("evm_mine", [])
            if self.lost:
                self.lost -= 1
                return Raw(status=502)
        shows = method == "eth_getTransactionByHash"
        if method == "eth_getTransactionReceipt" or (shows and self.blind):
            in_block = isinstance(answer, dict) and answer.get("blockHash")
            if in_block and self.time < self._seen.setdefault(answer["blockHash"], self.time) + self.late:
                return None
        return None if shows and self.forgetful and answer and not answer["blockHash"] else answer


def strangers(twin: Wallet) -> bytes:
    """A transaction of another process with the first nonce, which no call of ours can replace at once."""
    fees = {"maxFeePerGas": 9 * GWEI, "maxPriorityFeePerGas": 3 * GWEI}
    transaction = {"to": ONCE, "data": "0x01", "gas": 100_000, "nonce": 0, "chainId": 31337}
    return twin._signed({**transaction, **fees})  # type: ignore[typeddict-item]  # fees


@contextmanager
def lagging(block: float, late: float, faults: tuple[str, ...]) -> Iterator[LaggingPool]:
    with anvil_node("--no-mining", "--base-fee", str(GWEI)) as url, gateway(url) as proxy:
        node = LaggingPool(proxy.url, block, late, faults)
        node.twin = node.wallet()
        proxy.manner = node.manner
        yield node


def reorganize(node: LaggingPool, wallet: Wallet, depth: int) -> None:
    """Take blocks away together with their transactions, once the wallet's is in one of them."""
    if node.nonce(wallet) == 0:
        node.steps.insert(0, lambda: reorganize(node, wallet, depth))
    else:
        node.order("anvil_reorg", depth, [])


def kept(wallet: Wallet, folder: Path) -> OutboxJournal:
    """The journal of a process with this folder."""
    return OutboxJournal.of(wallet.connection, wallet.address, PartyDatabase(folder))


def kill() -> None:
    raise Killed


def play(block: float, late: float, faults: tuple[str, ...], folder: Path) -> tuple[int, int]:
    """Calls and transactions after one call through these faults; a killed process is followed by another one."""
    with lagging(block, late, faults) as node:
        for process in range(3):
            journal = OutboxJournal(PartyDatabase(folder), "account")
            wallet = node.wallet(journal=journal)
            node.steps = []
            if process == 0:
                if "reorganization" in faults:
                    node.steps += [lambda wallet=wallet: reorganize(node, wallet, 1)]  # type: ignore[misc]  # a default
                if "kill" in faults:
                    node.steps += [node.halt] * 3 + [kill]
            try:
                count(wallet)
                break
            except Killed:
                continue
            except OperationalError:
                continue
            finally:
                journal.close()
        node.wait(20)
        node.steps = []
        wallet.keep(OutboxJournal(PartyDatabase(folder), "account"), node.told.append)
        wallet.outbox.resume()  # what a reorganization took after it was done
        return node.counted(), node.nonce(wallet)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [faults for number in range(3) for faults in combinations(FAULTS, number)])
@pytest.mark.parametrize(("block", "late"), [*product(BLOCKS, LATE)])
def test_every_pair_of_faults(block: float, late: float, faults: tuple[str, ...], tmp_path: Path) -> None:
    counted, sent = play(block, late, faults, tmp_path)
    assert counted == 1
    assert sent in {1, 1 + ("stranger" in faults)}  # a reorganization may take the stranger's away


@pytest.mark.parametrize(
    ("block", "late", "faults"),
    [(2.0, 30.0, ()), (0.0, 30.0, ("blind",)), (12.0, 3.0, ("kill", "lost answer")), (12.0, 0.0, ("forgetful",))],
)
def test_a_late_receipt_is_no_stranger(block: float, late: float, faults: tuple[str, ...], tmp_path: Path) -> None:
    test_every_pair_of_faults(block, late, faults, tmp_path)


def test_a_strangers_transaction_has_to_be_deep() -> None:
    """It has our nonce, its block goes, and a node that kept our transaction includes it: the call isn't made twice."""
    with pool() as node:
        wallet, twin = node.wallet(), node.wallet()
        kept: list[bytes] = []

        def taken() -> None:
            kept.extend(
                attempt.raw
                for intent in wallet.journal.intents(IntentState.OPEN)
                for attempt in wallet.journal.attempts(intent)
            )
            node.drop(wallet)
            node.eth.send_raw_transaction(strangers(twin))
            node.mine()

        def undone() -> None:
            node.order("anvil_reorg", 1, [])
            node.eth.send_raw_transaction(HexBytes(kept[0]))

        node.steps = [taken, *[node.halt] * 9, undone]
        count(wallet)
        node.mine()
        assert (node.counted(), node.counted(ONCE), node.nonce(wallet)) == (1, 0, 1)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("then", ["again", "careless", "journal lost"])
def test_killed_around_a_broadcast(moment: str, then: str, tmp_path: Path) -> None:
    """The effect happens once, also if the next process doesn't look, or finds no journal."""
    with pool() as node:
        journal, send = OutboxJournal(PartyDatabase(tmp_path / "data"), "account"), node.eth.send_raw_transaction
        first = node.wallet(journal=journal)

        def dies(raw: HexBytes) -> None:
            if moment == "after":
                send(raw)
            kill()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node.eth, "send_raw_transaction", dies)
            with pytest.raises(Killed):
                count(first)
        journal.close()
        folder = tmp_path / ("lost" if then == "journal lost" else "data")
        again = node.wallet(journal=OutboxJournal(PartyDatabase(folder), "account"))
        if then == "careless":
            count(again)
        else:
            again.outbox.resume()
            again.outbox.send(OutgoingCall("count", COUNTER, data=b"\x01"), lambda: node.counted() >= 1)
        node.mine(2)
        assert (node.counted(), node.nonce(again)) == (1, 1)


def killed_after_a_call(wallet: Wallet) -> None:
    with wallet.once():
        count(wallet)
        kill()


@pytest.mark.parametrize("moment", ["sent", "in a block"])
def test_a_command_that_is_started_again_makes_its_call_once(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pool() as node:
        first, again, third = (node.wallet() for _ in range(3))
        node.steps = [kill] if moment == "sent" else []
        with pytest.raises(Killed):
            killed_after_a_call(first)
        with again.once():
            assert count(again)["status"] == 1
        assert (node.counted(), node.nonce(again)) == (1, 1)
        assert node.heard("before it told what became of count")
        with third.once():
            count(third)
        assert (node.counted(), node.nonce(third)) == (2, 2)


def test_what_a_killed_command_began_is_finished_by_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pool() as node:
        first, other, third = (node.wallet() for _ in range(3))
        node.steps = [lambda: node.drop(first), kill]
        with pytest.raises(Killed):
            killed_after_a_call(first)
        with other.once():
            count(other, ONCE)
        assert (node.counted(), node.counted(ONCE)) == (1, 1)
        with third.once():
            count(third)
        assert (node.counted(), node.nonce(third)) == (2, 3)


def test_two_commands_of_one_key_come_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pool() as node:
        first, second = node.wallet(), node.wallet()
        with first.once(), pytest.raises(OperationalError, match="another process works with this key"), second.once():
            pass


@contextmanager
def late_node(seconds: float) -> Iterator[str]:
    """A node with a block every fifth of a second that gives receipts so long after it has got a transaction."""
    sent: dict[str, float] = {}

    def manner(method: str, params: list[Any], node: Pass) -> Any:
        answer = node(method, params)
        if method == "eth_sendRawTransaction" and isinstance(answer, str):
            sent[answer] = time.monotonic()
        late = method == "eth_getTransactionReceipt" and time.monotonic() < sent.get(params[0], 0) + seconds
        return None if late else answer

    with anvil_node("--block-time", "0.2") as url, gateway(url, manner) as proxy:
        yield proxy.url


@pytest.mark.parametrize("data", [b"\x01", b"\x02"], ids=["the same call", "another call"])
def test_a_process_and_commands_with_one_key_take_turns(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None loses a nonce to the other and waits until that is deep; nor is one transaction the effect of both."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with late_node(0.5) as url:
        node = Pool(url)
        told: list[str] = []
        begin = Barrier(2)

        def wallet() -> Wallet:
            return Wallet.create(Connection.to(url), KEY, tell=told.append)

        def process() -> None:
            running = wallet()
            running.keep(kept(running, tmp_path / "data"), told.append)
            for _ in range(3):
                begin.wait()
                count(running)

        def commands() -> None:
            for _ in range(3):
                command = wallet()
                begin.wait()
                with command.once():
                    command.send_data(COUNTER, data, "count")

        node.order("anvil_setBalance", wallet().address, hex(10**20))
        with ThreadPoolExecutor(2) as threads:
            for ran in [threads.submit(process), threads.submit(commands)]:
                ran.result(timeout=120)
        assert (node.counted(), node.nonce(wallet()), told) == (6, 6, [])


def test_a_turn_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command sends nothing beside it; a process, whose clocks run, goes on and says so."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pool() as node:
        stopped, command, process = (node.wallet() for _ in range(3))
        journal = kept(stopped, tmp_path / "other")
        assert journal.turn is not None
        assert journal.turn.take()
        with pytest.raises(OperationalError, match="so count wasn't sent: try again when"), command.once():
            count(command)
        process.keep(kept(process, tmp_path / "data"), node.told.append)
        count(process)
        assert (node.counted(), node.nonce(process), node.told) == (1, 1, [STRANGER])
        journal.close()
        with command.once():
            count(command)
        count(process)
        assert (node.counted(), node.nonce(process), node.told) == (3, 3, [STRANGER])


def test_a_call_that_failed_in_a_block_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command has told that it failed, and says `try again`: so the next one is no repetition of it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pool() as node:
        code = node.eth.get_code(COUNTER)
        first, again = node.wallet(), node.wallet()
        node.steps = [lambda: node.order("anvil_setCode", COUNTER, "0x5f5ffd"), node.mine]
        with pytest.raises(ProtocolError, match="refused"), first.once():
            count(first)
        node.order("anvil_setCode", COUNTER, "0x" + code.hex())
        with again.once():
            assert count(again)["status"] == 1
        assert (node.counted(), node.nonce(again)) == (1, 2)
