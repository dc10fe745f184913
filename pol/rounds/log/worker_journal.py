"""What a worker has signed, kept before anybody sees it: one that starts again signs nothing else."""

from __future__ import annotations

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, decode_entry, encode_entry
from pol.training.storage.store import Store

KIND, VERSION = "pol/worker-journal", 1
RECEIPTS = 128
"""Rounds that an omission can be shown of."""
_LIMIT = 1 << 24


class WorkerJournal:
    """The claims of a worker in the last rounds, and the receipts that it holds, in a file of its store.

    Raises:
        ProtocolError: the file is no journal.
    """

    def __init__(self, store: Store, plan: bytes, worker: str) -> None:
        self._store = store
        self._file = f"journal-{keccak256(plan + bytes.fromhex(worker[2:])).hex()}.json"
        self.claims: list[ClaimEntry] = []
        self.receipts: list[DeliveryEntry] = []
        if store.holds(self._file):
            given = canonical_json.Fields.of_document(
                store.read(self._file, limit=_LIMIT), "the journal", KIND, VERSION, ["entries"]
            )
            for item in given.items("entries"):
                self._take(item)

    def claim(self, round_: int, phase: int, part: int) -> ClaimEntry | None:
        """The claim that the worker has signed for a place."""
        return next((entry for entry in self.claims if entry.claim.place == (round_, phase, part)), None)

    def add(self, entry: ClaimEntry | DeliveryEntry) -> None:
        """Keep an entry, on disk when this returns; those of rounds long past are let go."""
        if isinstance(entry, ClaimEntry):
            self.claims = [*(old for old in self.claims if old.claim.round >= entry.claim.round - 1), entry]
        elif entry not in self.receipts:
            self.receipts = [*(old for old in self.receipts if old.round >= entry.round - RECEIPTS), entry]
        kept: list[LogEntry] = [*self.claims, *self.receipts]
        entries = [encode_entry(one).decode() for one in kept]
        document = {"kind": KIND, "version": VERSION, "entries": entries}
        self._store.replace(self._file, canonical_json.encode(document))

    def _take(self, item: object) -> None:
        entry = decode_entry(str(item).encode())
        if isinstance(entry, ClaimEntry):
            self.claims.append(entry)
        elif isinstance(entry, DeliveryEntry):
            self.receipts.append(entry)
        else:
            raise ProtocolError("a worker's journal has claims and receipts only: give the worker another store")
