"""A store over HTTP, read only: files with ranges, the newest record, and single chunks with their proofs.

Paths are those of the store, so that fsspec's http filesystem reads it as a store. Only well-formed names are looked
up: no other path of a request reaches a filesystem.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import Any

from aiohttp import web

from pol.commitments.complete_state import prove_at
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.training.record import learning_record, recorded_chunks
from pol.training.storage import stored_checkpoint
from pol.training.storage.checkpoint_tensors import CheckpointTensors
from pol.training.storage.store import OpenFile, Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

PIECE = 1 << 20
MAX_STREAMS = 64
MAX_PROOFS = 8
"""The most requests for chunks at a time: each has to read and hash a whole tensor."""

_FILE = r"/{folder:[0-9a-f]{2}}/{name:[0-9a-f]{64}(\.[a-z]{1,16})?}"
_CHUNK = "/chunk/{checkpoint:[0-9]{1,9}}/{position:[0-9]{1,15}}/{leaf:[0-9]{1,15}}"


class StoreServer:
    """Handles the requests to a store."""

    def __init__(self, store: Store):
        self._store = store
        self._streams = self._proofs = 0
        self._lock = threading.Lock()
        self._last: tuple[StoredCheckpoint, CheckpointTensors] | None = None

    def application(self) -> web.Application:
        """The aiohttp application; every other path is answered with 404, every other method with 405."""
        application = web.Application(client_max_size=1)
        application.on_cleanup.append(self._close)
        application.add_routes(
            [
                web.get(f"/{learning_record.HEAD}", self._record),
                web.get(_FILE, self._file),
                web.get(_CHUNK, self._chunk),
            ]
        )
        return application

    async def _record(self, request: web.Request) -> web.StreamResponse:
        try:
            data = await asyncio.to_thread(self._store.read, learning_record.HEAD, limit=learning_record.DOCUMENT_LIMIT)
        except (ProtocolError, OperationalError):
            return _refusal(404, "no learning record is here")
        return web.Response(body=data, content_type="application/json", headers={"Cache-Control": "no-store"})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if request.match_info["folder"] != name[:2]:
            return _refusal(404, "no such file is here")
        if self._streams >= MAX_STREAMS:
            return _refusal(503, "too many files are being sent: try again later")
        self._streams += 1
        try:
            with ExitStack() as stack:
                try:
                    file = await asyncio.to_thread(stack.enter_context, self._store.open_file(name))
                except (ProtocolError, OperationalError):
                    return _refusal(404, "no such file is here")
                return await _send(request, file)
        finally:
            self._streams -= 1

    async def _chunk(self, request: web.Request) -> web.StreamResponse:
        if self._proofs >= MAX_PROOFS:
            return _refusal(503, "too many chunks are being asked for: try again later")
        self._proofs += 1
        try:
            numbers = (int(request.match_info[name]) for name in ("checkpoint", "position", "leaf"))
            data = await asyncio.to_thread(self._prove, *numbers)
        except ProtocolError:
            return _refusal(404, "the record has no such checkpoint")
        except OperationalError:
            return _refusal(503, "the checkpoint can't be read, or is sealed")
        finally:
            self._proofs -= 1
        return web.Response(body=data, content_type="application/json")

    def _prove(self, checkpoint: int, position: int, leaf: int) -> bytes:
        """The proof of a chunk. Runs one at a time; the checkpoint that was read last stays open."""
        with self._lock:
            record = learning_record.load_record(self._store)
            if checkpoint >= len(record.checkpoints):
                raise ProtocolError(f"there is no checkpoint {checkpoint}")
            entry = record.checkpoints[checkpoint]
            if self._last is None or self._last[0].root != entry.root:
                self._forget()
                saved = stored_checkpoint.load_document(self._store, entry.object)
                if saved.root != entry.root:
                    raise ProtocolError("the checkpoint isn't the one in the log")
                self._last = saved, CheckpointTensors(self._store, saved)
            saved, tensors = self._last
            return recorded_chunks.encode(prove_at(saved.entries, saved.documents, tensors, position, leaf))

    def _forget(self) -> None:
        if self._last is not None:
            self._last[1].close()
            self._last = None

    async def _close(self, _: web.Application) -> None:
        await asyncio.to_thread(self._forget)


async def serve(store: Store, host: str, port: int, ready: Any) -> None:
    """Serve until cancelled; ``ready`` is called with the port once requests are answered.

    Raises:
        OperationalError: the port is not available.
    """
    runner = web.AppRunner(StoreServer(store).application(), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise OperationalError(f"can't listen on {host}:{port}: {reason_of(error)}") from error
        ready(runner.addresses[0][1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _send(request: web.Request, file: OpenFile) -> web.StreamResponse:
    try:
        wanted = request.http_range
    except ValueError:
        return _refusal(416, "not a range of bytes")
    whole = wanted.start is None and wanted.stop is None
    first, last, _ = wanted.indices(file.size)
    if not whole and first >= last:
        return _refusal(416, f"the file has {file.size} bytes")
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "public, max-age=31536000, immutable",
        "Content-Length": str(last - first),
        "Content-Type": "application/octet-stream",
        "X-Content-Type-Options": "nosniff",
    }
    if not whole:
        headers["Content-Range"] = f"bytes {first}-{last - 1}/{file.size}"
    response = web.StreamResponse(status=200 if whole else 206, headers=headers)
    await response.prepare(request)
    if request.method != "HEAD":
        await asyncio.to_thread(file.seek, first)
        left = last - first
        while left and (piece := await asyncio.to_thread(file.read, min(left, PIECE))):
            await response.write(piece)
            left -= len(piece)
    return response


def _refusal(status: int, message: str) -> web.Response:
    """An error without the place of the store."""
    return web.json_response({"error": message}, status=status)
