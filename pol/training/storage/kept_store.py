"""What a party has seen of a store, kept in a folder of its own: a solver's files may vanish once a verdict is posted.

Whatever a party reads is written to its own disk before the read returns, so before anything is signed that may have to
be proved later: the task, the learning proof, the states at the ends of drawn segments. A replayed state needs no copy,
it is computed again from them.
"""

from __future__ import annotations

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
        self._unkept: dict[str, str] = {}
        self._scope: str | None = None
        self._known: dict[str, set[str]] = {}
        """By scope the objects that were read in it; also in files, one digest a line."""

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
                return data
        data = super().get(digest, limit=limit)
        self._note(digest)
        try:
            self._own.put(data)
            self._unkept.pop(digest, None)
        except OperationalError as error:
            self._unkept[digest] = str(error)
        return data

    def get_public(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `get`."""
        return self.get(digest, limit=limit)

    def require_kept(self) -> None:
        """Check that all that was read is on the disk. To be called before anything is signed that needs evidence.

        Raises:
            OperationalError: something isn't, and can't be written now either.
        """
        for digest in list(self._unkept):
            self.get(digest)
        for digest, why in self._unkept.items():
            raise OperationalError(
                f"can't keep the evidence {digest} in {self.folder} ({why}), so nothing new is staked: make room there"
            )

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
        mine = self._objects(scope)
        others = {path.name for path in self.folder.glob("scopes/*")} - {scope}
        kept = set[str]().union(*(self._objects(other) for other in others))
        removed = 0
        for digest in mine - kept:
            with suppress(OSError):
                (self.folder / digest[:2] / digest).unlink()
                removed += 1
        self._known.pop(scope, None)
        (self.folder / "scopes" / scope).unlink(missing_ok=True)
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
        return self._known[scope]

    def _note(self, digest: str) -> None:
        """Remember for whom an object is kept. Where that fails it is kept until nobody has used it."""
        if self._scope is None or digest in self._objects(self._scope):
            return
        with suppress(OSError):
            (self.folder / "scopes").mkdir(exist_ok=True)
            with (self.folder / "scopes" / self._scope).open("a") as file:
                file.write(f"{digest}\n")
            self._objects(self._scope).add(digest)
