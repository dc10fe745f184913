"""Copies the lineage of a training from the base's store into the run's own: all objects that its check reads."""

from __future__ import annotations

from collections.abc import Iterator

from pol.training.lineage import lineage
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage.sealing import MAX_RECIPIENTS, sealed_size
from pol.training.storage.store import LIMIT, Store


class CopyingStore(Store):
    """A store whose objects are copied into ``target`` as they are read, byte for byte: sealed ones stay sealed."""

    def __init__(self, source: Store, target: Store):
        super().__init__(source.url, source.options, source.patience)
        self._source, self._target = source, target

    def get(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `Store.get` of the source."""
        self.get_public(digest, limit=sealed_size(limit, MAX_RECIPIENTS))
        return self._source.get(digest, limit=limit)

    def pieces(self, digest: str, *, limit: int = LIMIT) -> Iterator[bytes]:
        """As `Store.pieces` of the source."""
        self._target.copy(self._source, digest, limit=sealed_size(limit, MAX_RECIPIENTS))
        yield from self._source.pieces(digest, limit=limit)

    def get_public(self, digest: str, *, limit: int = LIMIT) -> bytes:
        """As `Store.get_public` of the source."""
        data = self._source.get_public(digest, limit=limit)
        self._target.put_public(data)
        return data


def copy_record(source: Store, target: Store, record: LearningRecord, index: int) -> str:
    """Check the lineage of a record and the document of checkpoint ``index``, and copy them; the record's digest."""
    run = RecordedRun(CopyingStore(source, target), record)
    lineage.of_record(run.store, record)
    run.document(run.at(index))
    return target.put_public(record.encode())
