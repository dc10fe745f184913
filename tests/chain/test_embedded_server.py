"""The embedded chain behind a local port: several connections, a clock that runs ahead, and a journal that is kept."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from web3.types import RPCEndpoint

from pol.chain.account.wallet import Wallet
from pol.chain.embedded.embedded_server import ChainJournal
from pol.chain.node.connection import Connection
from pol.errors import OperationalError

KEY, ETHER = b"\1" * 32, 10**18
SECONDS = 60


@contextmanager
def server(journal: Path, ending: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    """URL of a server with a journal; it gets a signal at the end."""
    command = [sys.executable, "-m", "pol.chain.embedded.embedded_server", "--journal", str(journal)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"Listening on (\S+)", process.stdout.readline())
            assert found is not None
            yield f"http://{found[1]}"
        finally:
            process.send_signal(ending)
            code = process.wait(SECONDS)
        assert code == (0 if ending is signal.SIGTERM else -ending)


def ordered(connection: Connection, method: str, *arguments: Any) -> Any:
    return connection.web3.provider.make_request(RPCEndpoint(method), list(arguments))


@pytest.mark.long
def test_a_killed_server_goes_on_with_its_chain(tmp_path: Path) -> None:
    journal = tmp_path / "chain.journal"
    with server(journal, signal.SIGKILL) as url:
        connection = Connection.to(url)
        rich, address = connection.web3.eth.accounts[0], Wallet.create(connection, KEY).address
        connection.web3.eth.send_transaction({"from": rich, "to": address, "value": ETHER})  # type: ignore[typeddict-item]  # an int
        wallet = Wallet.create(Connection.to(url), KEY)
        assert wallet.balance() == ETHER
        wallet.transfer(rich, ETHER // 2)
        head, before = connection.latest()["hash"], (connection.block_number(), connection.now())
    with server(journal) as url:
        connection = Connection.to(url)
        assert connection.latest()["hash"] == head
        wallet = Wallet.create(connection, KEY)
        assert 0 < wallet.balance() < ETHER // 2
        wallet.transfer(rich, ETHER // 8)
        assert connection.block_number() == before[0] + 1
        assert connection.now() > before[1]


def test_time_passes_as_fast_as_it_is_told_to(tmp_path: Path) -> None:
    with server(tmp_path / "chain.journal") as url:
        connection = Connection.to(url)
        ordered(connection, "evm_mine")
        assert abs(connection.now() - time.time()) < SECONDS
        assert "error" not in ordered(connection, "anvil_setBlockTimestampInterval", 100)
        assert "error" not in ordered(connection, "evm_setAutomine", False)
        assert "error" not in ordered(connection, "evm_setIntervalMining", 0.2)
        first, began = connection.block_number(), connection.now()
        deadline = time.monotonic() + SECONDS
        while connection.block_number() < first + 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        blocks, passed = connection.block_number() - first, connection.now() - began
        # At least a fifth of a second lies between two blocks, and counts a hundred times.
        assert blocks >= 5
        assert passed >= (blocks - 1) * 20


@pytest.mark.parametrize(
    ("asked", "code"),
    [("[" * 100_000, -32700), ("{", -32700), ('{"id": 1}', -32603), ('{"id": 1, "method": "eth_nothing"}', None)],
)
def test_what_it_cannot_answer_is_an_error(serving: str, asked: str, code: int | None) -> None:
    with urllib.request.urlopen(urllib.request.Request(serving, asked.encode())) as answer:
        error = json.load(answer)["error"]
    assert error if code is None else error["code"] == code


@pytest.mark.parametrize("header", [("Origin", "http://evil.example"), ("Origin", "null"), ("Host", "evil.example:80")])
def test_a_page_in_a_browser_gets_no_answer(serving: str, header: tuple[str, str]) -> None:
    """It could make blocks, take the money of accounts, and read by a name of its own that leads here."""
    asked = b'{"id": 1, "method": "eth_chainId"}'
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(serving, asked, dict([header])))
    named = urllib.request.Request(serving.replace("127.0.0.1", "localhost"), asked)
    with urllib.request.urlopen(named) as answer:
        assert "result" in json.load(answer)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("served") / "chain.journal") as url:
        yield url


def test_a_journal_ends_with_the_last_whole_group(tmp_path: Path) -> None:
    journal = ChainJournal(tmp_path / "journal")
    journal[b"a"], journal[b"b"] = b"1", b"2"
    journal.commit()
    journal[b"a"] = b"3"
    del journal[b"b"]
    assert dict(ChainJournal(tmp_path / "journal")) == {b"a": b"1", b"b": b"2"}
    journal.close()
    assert dict(ChainJournal(tmp_path / "journal")) == {b"a": b"3"}
    with pytest.raises(OperationalError, match="can't open the chain's journal"):
        ChainJournal(tmp_path)
