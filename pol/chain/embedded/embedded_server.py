"""The embedded chain behind a local port, for several processes: ``python -m pol.chain.embedded.embedded_server``.

Every transaction gets a block at once. After ``evm_setIntervalMining`` there is a block in every interval, and after
``anvil_setBlockTimestampInterval`` the chain's clock runs faster than this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from web3.middleware.base import MiddlewareOnion
from web3.types import RPCEndpoint

from pol.chain.embedded.embedded_chain import embedded_web3
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError


class ChainJournal(MutableMapping[bytes, bytes]):
    """The store in a file. What changes between two calls of `commit` is there whole or not at all.

    Raises:
        OperationalError: the file can't be read or written. So do `commit` and `close`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changes: dict[bytes, bytes | None] = {}
        with self._operational("open"):
            self._database = sqlite3.connect(path, isolation_level=None)
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
                self._database.execute(f"PRAGMA {pragma}").fetchall()
            self._database.execute("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            self._entries: dict[bytes, bytes] = dict(self._database.execute("SELECT key, value FROM entries"))

    def __getitem__(self, key: bytes) -> bytes:
        return self._entries[key]

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._entries[key] = self._changes[key] = value

    def __delitem__(self, key: bytes) -> None:
        del self._entries[key]
        self._changes[key] = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def commit(self) -> None:
        """Write the changes since the last call."""
        if not self._changes:
            return
        gone = [(key,) for key, value in self._changes.items() if value is None]
        kept = [(key, value) for key, value in self._changes.items() if value is not None]
        with self._operational("write"), self._database:
            self._database.execute("BEGIN")
            self._database.executemany("DELETE FROM entries WHERE key = ?", gone)
            self._database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", kept)
        self._changes.clear()

    def close(self) -> None:
        """Commit, and let go of the file."""
        self.commit()
        with self._operational("write"):
            self._database.close()

    @contextmanager
    def _operational(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OperationalError(f"can't {action} the chain's journal {self._path}: {error}") from error


LOOPBACK = "127.0.0.1"
HOSTS = frozenset({LOOPBACK, "localhost"})
MOST_BYTES = 1 << 24
PARSE, INTERNAL = -32700, -32603
"""Codes of errors (JSON-RPC 2.0)."""
MINING = frozenset({"eth_sendRawTransaction", "eth_sendTransaction", "evm_mine"})


class EmbeddedServer:
    """Answers requests to the chain in a journal, one after another."""

    def __init__(self, journal: Path) -> None:
        self._journal = ChainJournal(journal)
        self._pace, self._interval = 1, 0.0
        self._at, self._since = int(time.time()), time.monotonic()
        self._web3 = embedded_web3(0, self._journal, self._now)
        self._tester: Any = self._web3.provider.ethereum_tester  # type: ignore[attr-defined]  # of a test provider
        # The chain's clock has run ahead of ours when it ran last.
        self._at = max(self._at, int(self._tester.get_block_by_number("latest")["timestamp"]) + 1)
        self._request = self._web3.provider.request_func(self._web3, MiddlewareOnion([]))
        self._mined = self._height()

    def _now(self) -> int:
        return self._at + int(self._pace * (time.monotonic() - self._since))

    def _height(self) -> int:
        return int(self._tester.backend.chain.get_canonical_head().block_number)

    async def answer(self, request: web.Request) -> web.Response:
        """One request, or a list of them; none of a page in a browser.

        A page of any site can send one here, and reads the answer by a name of its own that leads to this machine.
        """
        if "Origin" in request.headers or request.url.host not in HOSTS:
            raise web.HTTPForbidden(text="no requests of web pages: ask by JSON-RPC at 127.0.0.1")
        try:
            asked = canonical_json.parse(await request.read(), "the request")
        except ProtocolError as error:
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": _error(PARSE, str(error))})
        told = [self._told(each) for each in asked] if isinstance(asked, list) else self._told(asked)
        self._journal.commit()
        return web.Response(text=json.dumps(told), content_type="application/json")

    def _told(self, asked: Any) -> dict[str, Any]:
        number = asked.get("id") if isinstance(asked, dict) else None
        try:
            told = self._answered(str(asked["method"]), list(asked.get("params") or []))
        except Exception as error:  # noqa: BLE001  # the server outlives a request that the tester can't take
            told = {"error": _error(INTERNAL, f"{type(error).__name__}: {error}")}
        kept = {name: _plain(told[name]) for name in ("result", "error") if name in told}
        return {"jsonrpc": "2.0", "id": number, **(kept or {"result": None})}

    def _answered(self, method: str, params: list[Any]) -> Mapping[str, Any]:
        if method == "evm_setAutomine":
            return {"result": None}
        if method == "anvil_setBlockTimestampInterval":
            self._at, self._since, self._pace = self._now(), time.monotonic(), int(params[0])
            return {"result": None}
        if method == "evm_setIntervalMining":
            self._interval = float(params[0])
            return {"result": None}
        if method in MINING:
            self._tester.backend.date_pending_block()
        return self._request(RPCEndpoint(method), params)

    async def let_time_pass(self) -> None:
        """Make a block in every interval in which no transaction has made one."""
        while True:
            await asyncio.sleep(self._interval or 0.1)
            if self._interval and self._height() == self._mined:
                self._answered("evm_mine", [])
                self._journal.commit()
            self._mined = self._height()

    async def serve(self, port: int) -> None:
        """Serve until SIGTERM or SIGINT. Raises OperationalError: the port is taken, or the disk failed."""
        application = web.Application(client_max_size=MOST_BYTES)
        application.router.add_post("/", self.answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
            print(f"Listening on {LOOPBACK}:{runner.addresses[0][1]}", flush=True)
            clock = asyncio.ensure_future(self.let_time_pass())
            await asyncio.wait({clock, asyncio.ensure_future(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
            if clock.done():
                clock.result()
            clock.cancel()
        except OSError as error:
            raise OperationalError(f"can't listen at {LOOPBACK}:{port}: {error}; choose another port") from error
        finally:
            await runner.cleanup()
            self._journal.close()


def _error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _plain(value: Any) -> Any:
    """A result as JSON-RPC writes it: quantities and data in hexadecimal."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Mapping):
        # The code of an error is a number.
        return {str(name): each if name == "code" else _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    raise TypeError(f"no JSON for {type(value).__name__}")


def main() -> None:
    """Serve the chain in a journal."""
    parser = argparse.ArgumentParser(description="An embedded chain behind a local JSON-RPC port.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--journal", type=Path, required=True)
    given = parser.parse_args()
    try:
        asyncio.run(EmbeddedServer(given.journal).serve(given.port))
    except OperationalError as error:
        sys.exit(f"pol: {error}")


if __name__ == "__main__":
    main()
