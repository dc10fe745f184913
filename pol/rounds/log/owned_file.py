"""A file of a store that one process writes: who starts beside it takes the file over, and it stops."""

from __future__ import annotations

import secrets

from pol.commitments import canonical_json
from pol.errors import OperationalError
from pol.training.storage.store import Store

FILE_LIMIT = 1 << 28


class OwnedFile:
    """The file ``name`` with its ``content``, empty if there is none; ``owner`` is who may write it, once at a time.

    One beside which another was started raises at its next write, or at the end of one that was under way: nobody may
    hear of what it has written before `write` has returned.
    """

    def __init__(self, store: Store, name: str, owner: str) -> None:
        self._store, self._name, self._owner = store, name, owner
        self._newest = f"start-{name.partition('-')[2]}"
        self._start = canonical_json.encode({"start": secrets.token_hex(16)})
        # Before the file is read: a process that writes it later finds this, and stops.
        store.replace(self._newest, self._start)
        self.content = store.read(name, limit=FILE_LIMIT) if store.holds(name) else b""

    def write(self, content: bytes) -> None:
        """The new content is on disk when this returns."""
        self._require_newest()  # writes nothing over the other one's content
        if content != self.content:
            self._store.replace(self._name, content)
            self.content = content
            self._require_newest()  # a write can take longer than another one's start

    def _require_newest(self) -> None:
        if self._store.read(self._newest) != self._start:
            raise OperationalError(
                f"another {self._owner} was started on {self._name} in {self._store.url}: this one stops"
            )
