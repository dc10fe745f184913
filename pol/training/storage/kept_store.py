"""A party's own copies of a store's objects: a solver's files may vanish once a verdict is posted.

Each object that a party reads is written to its own disk before the read returns, and so before it signs a statement
that needs the object as evidence: the task, the learning proof, the states at the ends of drawn segments. A replayed
state needs no copy, as it can be computed again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pol.errors import OperationalError, ProtocolError, reason_of
from pol.training.storage.store import LIMIT, Store

KEPT_SECONDS = 400 * 24 * 3600
"""After its last use; no task of the market lasts longer."""
HELD = 1 << 30
"""Bytes of objects that the disk refused and memory holds; the largest objects are dropped first."""
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
            raise OperationalError(f"can't keep evidence in {folder}: {reason_of(error)}; name another") from error
        self._own = Store(f"file://{folder.resolve()}")
        self._scope: str | None = None
        self._known: dict[str, set[str]] = {}
        """By scope the objects that were read in it; its file has one digest a line."""
        self._unwritten: dict[str, set[str]] = {}
        """Digests that aren't in the file yet."""
        self._unkept: dict[str | None, dict[str, str]] = {}
        """By scope the objects that the disk refused, and why. A task is stopped only by its own evidence."""
        self._held: dict[str, bytes] = {}

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """The object, from the own disk if it is whole there; else it is written there before this returns.

        A disk that fails doesn't stop the defense of stakes already made; `require_kept` stops new ones.

        Raises:
            ProtocolError, OperationalError: as `Store.get`.
        """
        if self._own.exists(digest):
            # A damaged copy is fetched and written again.
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

    def pieces(self, digest: str, *, limit: int = LIMIT) -> Iterator[bytes]:
        """As `get`, piece by piece. A damaged copy on the own disk is an error here; `get` replaces it."""
        if not self._own.exists(digest):
            try:
                self._own.copy(self, digest, limit=limit)
            except OperationalError:
                # The disk, or the store: `get` knows what to do.
                yield self.get(digest, limit=limit)
                return
        self._used(digest)
        self._is_kept(digest)
        yield from self._own.pieces(digest, limit=limit)

    def get_public(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `get`."""
        return self.get(digest, limit=limit)

    @property
    def keeps(self) -> bool:
        """Whether the disk has taken all that was read in this scope."""
        return not self.unkept()

    def require_kept(self) -> None:
        """Check that all evidence of this scope is on the disk, before a signature that needs it.

        Raises:
            OperationalError: an object isn't there, and can't be written now either.
        """
        self._write_again()
        if why := self.unkept():
            raise OperationalError(f"{why}, so nothing new is staked: make room there")

    def keep(self) -> None:
        """Write the objects of this scope that aren't on the disk; the others are logged and held in memory."""
        self._write_again()
        if why := self.unkept():
            LOG.error("%s: it is lost when this process ends; make room there now", why)

    def unkept(self) -> str:
        """The first object of this scope, or of none, that isn't on the disk, and why; empty if there is none."""
        for scope in {self._scope, None}:
            for digest, why in self._unkept.get(scope, {}).items():
                return f"can't keep the evidence {digest} in {self.folder} ({why})"
        if self._scope is not None and self._unwritten.get(self._scope):
            return f"can't note in {self.folder} which task needs the evidence"
        return ""

    @contextmanager
    def about(self, scope: str) -> Iterator[None]:
        """Keep objects that are read inside until ``scope`` is released. Others are kept until they fall out of use."""
        before, self._scope = self._scope, scope
        try:
            yield
        finally:
            self._scope = before

    def lacks(self, scope: str) -> list[str]:
        """The objects that were kept for ``scope`` and aren't on the own disk any more."""
        return sorted(digest for digest in self._objects(scope) if not self._own.exists(digest))

    def release(self, scope: str) -> int:
        """Remove objects that were read in this scope only; the number of files."""
        for digest in self._unkept.pop(scope, {}):
            self._let_go(digest)
        removed = 0
        # If the disk fails, the files stay until they fall out of use.
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
        """Remove objects unused for ``seconds``, and files that killed writers have left; the number of files."""
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
        """Note the scope of an object, in memory until the disk takes it."""
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
                # On a line of its own, even after a partial line of a full disk.
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
                # An object that is gone can't be kept either, and stays reported.
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
