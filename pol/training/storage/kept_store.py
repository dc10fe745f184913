"""What a party has seen of a store, kept in a folder of its own: a solver's files may vanish once a verdict is posted.

Whatever a party reads is written to its own disk before the read returns, so before anything is signed that may have to
be proved later: the task, the learning proof, the states at the ends of drawn segments. A replayed state needs no copy,
it is computed again from them.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import LIMIT, Store

KEPT_SECONDS = 400 * 24 * 3600
"""After its last use; no task of the market lasts longer."""
HELD = 1 << 30
"""Bytes that are held in memory at most, of what the disk doesn't take; the largest objects go first."""
LOG = logging.getLogger(__name__)


class KeptStore(Store):
    """A store whose objects are kept in ``folder`` as they are read, and read from there first.

    Raises:
        OperationalError: no filesystem serves the URL, or the folder can't be written.
    """

    def __init__(self, url: str, folder: Path, options: Mapping[str, Any] | None = None):
        super().__init__(url, options)
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OperationalError(f"can't keep evidence in {folder}: {error}; name another folder") from error
        self._own = Store(f"file://{folder.resolve()}")
        self._scope: str | None = None
        self._known: dict[str, set[str]] = {}
        """By scope the objects that were read in it, as its file says: one digest a line."""
        self._unwritten: dict[str, set[str]] = {}
        """Those that aren't in the file yet."""
        self._unkept: dict[str | None, dict[str, str]] = {}
        """By scope the objects that the disk didn't take, and why: one task's evidence is no other one's business."""
        self._held: dict[str, bytes] = {}

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """The object, from the own disk if it is there and whole; else it is written there before this returns.

        A disk that fails keeps nobody from defending what is at stake already: `require_kept` says so before more is.

        Raises:
            ProtocolError, OperationalError: as `Store.get`.
        """
        if self._own.exists(digest):
            # A copy that the disk has damaged is fetched and written again.
            with suppress(ProtocolError, OperationalError):
                data = self._own.get(digest, limit=limit)
                self._used(digest)
                self._is_kept(digest)
                return data
        held = self._held.get(digest)
        data = held if held is not None and len(held) <= limit else super().get(digest, limit=limit)
        self._note(digest)
        self._write(digest, data)
        return data

    def get_public(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `get`."""
        return self.get(digest, limit=limit)

    def require_kept(self) -> None:
        """Check that all that was read in this scope is on the disk, before anything is signed that needs evidence.

        Raises:
            OperationalError: something isn't, and can't be written now either.
        """
        self._write_again()
        if why := self.unkept():
            raise OperationalError(f"{why}, so nothing new is staked: make room there")

    def keep(self) -> None:
        """Write what was read in this scope and isn't on the disk; what can't be is told, and held in memory."""
        self._write_again()
        if why := self.unkept():
            LOG.error("%s: it is lost when this process ends; make room there now", why)

    def unkept(self) -> str:
        """What of this scope, or of none, isn't on the disk, and why; empty if all is."""
        for scope in {self._scope, None}:
            for digest, why in self._unkept.get(scope, {}).items():
                return f"can't keep the evidence {digest} in {self.folder} ({why})"
        if self._scope is not None and self._unwritten.get(self._scope):
            return f"can't note in {self.folder} for which task evidence is kept"
        return ""

    @contextmanager
    def about(self, scope: str) -> Iterator[None]:
        """What is read inside is kept until ``scope`` is released; what is read outside, until nobody has used it."""
        before, self._scope = self._scope, scope
        try:
            yield
        finally:
            self._scope = before

    def release(self, scope: str) -> int:
        """Remove what was read in a scope and in no other one; the number of files."""
        for digest in self._unkept.pop(scope, {}):
            self._let_go(digest)
        removed = 0
        # A disk that fails keeps the files until nobody has used them.
        with suppress(OSError):
            named = {path.name for path in self.folder.glob("scopes/*")} | self._unwritten.keys()
            kept = set[str]().union(*(self._objects(other) for other in named - {scope}))
            for digest in self._objects(scope) - kept:
                with suppress(OSError):
                    (self.folder / digest[:2] / digest).unlink()
                    removed += 1
            (self.folder / "scopes" / scope).unlink(missing_ok=True)
        self._known.pop(scope, None)
        self._unwritten.pop(scope, None)
        return removed

    def exists(self, digest: str) -> bool:
        """Whether the object is on one's own disk or in the store."""
        return self._own.exists(digest) or super().exists(digest)

    def forget(self, seconds: float = KEPT_SECONDS) -> int:
        """Remove what wasn't used for so long, and what killed writers have left; the number of files."""
        removed, oldest = self._own.clean(), time.time() - seconds
        for path in self.folder.glob("??/*"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
                    removed += 1
        return removed

    def _used(self, digest: str) -> None:
        with suppress(OSError):
            os.utime(self.folder / digest[:2] / digest)
        self._note(digest)

    def _objects(self, scope: str) -> set[str]:
        if scope not in self._known:
            path = self.folder / "scopes" / scope
            self._known[scope] = set(path.read_text().split()) if path.is_file() else set()
        return self._known[scope] | self._unwritten.get(scope, set())

    def _note(self, digest: str) -> None:
        """Remember for whom an object is kept, in memory until the disk takes it."""
        if self._scope is None:
            return
        known = False
        with suppress(OSError):
            known = digest in self._objects(self._scope)
        if not known:
            self._unwritten.setdefault(self._scope, set()).add(digest)
        self._write_notes()

    def _write_notes(self) -> None:
        if self._scope is None or not (left := self._unwritten.get(self._scope)):
            return
        with suppress(OSError):
            (self.folder / "scopes").mkdir(exist_ok=True)
            with (self.folder / "scopes" / self._scope).open("a") as file:
                # On a line of its own, whatever a full disk has left of the one before.
                file.write("".join(f"\n{digest}\n" for digest in sorted(left)))
            del self._unwritten[self._scope]
            if self._scope in self._known:
                self._known[self._scope] |= left

    def _write(self, digest: str, data: bytes) -> None:
        try:
            self._own.put(data)
        except OperationalError as error:
            self._unkept.setdefault(self._scope, {})[digest] = str(error)
            self._held[digest] = data
            while sum(map(len, self._held.values())) > HELD:
                del self._held[max(self._held, key=lambda each: len(self._held[each]))]
            return
        self._is_kept(digest)

    def _write_again(self) -> None:
        self._write_notes()
        for scope in {self._scope, None}:
            for digest in list(self._unkept.get(scope, {})):
                # What can't be had any more can't be kept either, and stays told.
                with suppress(OperationalError, ProtocolError):
                    self.get(digest)

    def _is_kept(self, digest: str) -> None:
        for unkept in self._unkept.values():
            unkept.pop(digest, None)
        self._held.pop(digest, None)

    def _let_go(self, digest: str) -> None:
        """Hold an object no longer, unless another scope needs it."""
        if not any(digest in unkept for unkept in self._unkept.values()):
            self._held.pop(digest, None)
