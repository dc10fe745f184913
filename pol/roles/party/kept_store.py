"""A party's own copies of a store's objects: a solver's files may vanish once a verdict is posted.

Each object that a party reads is written to its own disk before the read returns, and so before it signs a statement
that needs the object as evidence: the task, the learning proof, the states at the ends of drawn segments. A replayed
state needs no copy, as it can be computed again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pol.errors import OperationalError, ProtocolError
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.store import LIMIT, Store

KEPT_SECONDS = 400 * 24 * 3600
"""After its last use; no task of the market lasts longer."""
HELD = 1 << 30
"""Bytes of objects that the disk refused and memory holds; the largest objects are dropped first."""
LOG = logging.getLogger(__name__)
_TABLE = "evidence (scope TEXT, digest TEXT, PRIMARY KEY (scope, digest)) WITHOUT ROWID"
_NOTE = "INSERT OR IGNORE INTO evidence VALUES (?, ?)"
_OF_NO_OTHER = "SELECT digest FROM evidence GROUP BY digest HAVING min(scope) = ?1 AND max(scope) = ?1"


class KeptStore(Store):
    """A store whose objects are kept beside the party's database as they are read, and read from there first.

    The table ``evidence`` has the objects that were read in each scope.
    """

    def __init__(self, url: str, database: PartyDatabase, name: str = "evidence"):
        super().__init__(url)
        self.database, self.folder = database, database.folder / name
        self._own = Store(f"file://{self.folder.resolve()}")
        self._scope: str | None = None
        self._unkept: dict[str | None, dict[str, str]] = {}
        """By scope the objects that the disk, or the table, refused, and why. A task is stopped only by its own."""
        self._held: dict[str, bytes] = {}
        database.create(_TABLE)
        if not database.rows("SELECT 1 FROM evidence LIMIT 1"):
            # The database was lost, or nothing is noted: nobody knows who needs the files, so only age removes them.
            with suppress(OperationalError):
                database.write(*((_NOTE, ("", path.name)) for path in self.folder.glob("??/*")))

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """The object, from the own disk if it is whole there; else it is written there before this returns.

        A disk that fails doesn't stop the defense of stakes already made; `require_kept` stops new ones.
        """
        if self._own.exists(digest):
            # A damaged copy is fetched and written again.
            with suppress(ProtocolError, OperationalError):
                data = self._own.get(digest, limit=limit)
                self._keep(digest)
                return data
        held = self._held.get(digest)
        data = held if held is not None and len(held) <= limit else super().get(digest, limit=limit)
        self._keep(digest, data)
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
        self._keep(digest)
        yield from self._own.pieces(digest, limit=limit)

    def get_public(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `get`."""
        return self.get(digest, limit=limit)

    @property
    def keeps(self) -> bool:
        """Whether the disk has taken all that was read in this scope."""
        return not self.unkept()

    def require_kept(self) -> None:
        """Check that all evidence of this scope is on the disk, before a signature that needs it."""
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
        refused = self._unkept.get(None, {}) | self._unkept.get(self._scope, {})
        return next((f"can't keep the evidence {each} in {self.folder} ({why})" for each, why in refused.items()), "")

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
        kept = self.database.rows("SELECT digest FROM evidence WHERE scope = ? ORDER BY digest", scope)
        return [digest for (digest,) in kept if not self._own.exists(digest)]

    def release(self, scope: str) -> int:
        """Remove objects that were read in this scope only; the number of files."""
        refused = self._unkept.pop(scope, {})
        elsewhere = set[str]().union(*self._unkept.values())
        for digest in refused.keys() - elsewhere:
            self._held.pop(digest, None)
        removed = 0
        # If the disk fails, the files stay until they fall out of use.
        with suppress(OperationalError):
            self.database.write(*((_NOTE, (scope, digest)) for digest in refused))
            for (digest,) in self.database.rows(_OF_NO_OTHER, scope):
                removed += digest not in elsewhere and _removed(self._file(digest))
            self.database.write(("DELETE FROM evidence WHERE scope = ?", (scope,)))
        return removed

    def exists(self, digest: str) -> bool:
        """Whether the object is on one's own disk or in the store."""
        return self._own.exists(digest) or super().exists(digest)

    def forget(self, seconds: float = KEPT_SECONDS) -> int:
        """Remove objects unused for ``seconds``, and files that killed writers have left; the number of files."""
        removed, oldest = self._own.clean(), time.time() - seconds
        return removed + sum(_removed(path, oldest) for path in self.folder.glob("??/*"))

    def _file(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def _keep(self, digest: str, data: bytes | None = None) -> None:
        """Write an object that isn't on the disk, and note the scope that needs it; hold in memory what is refused."""
        try:
            if data is not None:
                self._own.put(data)
            if self._scope is not None:
                self.database.write((_NOTE, (self._scope, digest)))
        except OperationalError as error:
            self._unkept.setdefault(self._scope, {})[digest] = str(error)
            if data is not None:
                self._held[digest] = data
            while sum(map(len, self._held.values())) > HELD:
                del self._held[max(self._held, key=lambda each: len(self._held[each]))]
            return
        with suppress(OSError):
            os.utime(self._file(digest))
        for scope in {self._scope, None}:
            self._unkept.get(scope, {}).pop(digest, None)
        self._held.pop(digest, None)

    def _write_again(self) -> None:
        for scope in {self._scope, None}:
            for digest in list(self._unkept.get(scope, {})):
                # An object that is gone can't be kept either, and stays reported.
                with suppress(OperationalError, ProtocolError):
                    self.get(digest)


def _removed(path: Path, unused_since: float = float("inf")) -> bool:
    with suppress(OSError):
        if path.stat().st_mtime < unused_since:
            path.unlink()
            return True
    return False
