"""What a worker has signed and was shown, kept before anybody sees it: one that starts again signs nothing else."""

from __future__ import annotations

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, decode_entry, encode_entry
from pol.rounds.log.owned_file import OwnedFile
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

KIND, VERSION = "pol/worker-journal", 2
SHOWN = 128
"""Rounds of which an omission, or a second roster, can be shown."""


class WorkerJournal:
    """The claims of a worker in the last two rounds, the receipts that it holds and the first rosters of rounds.

    A file of its store has them. Nothing is signed for a place twice, nor for a round before ``floor``: what was
    signed there isn't known any more.

    Raises:
        ProtocolError: the file is no journal, or that of another key or plan.
    """

    def __init__(self, store: Store, plan: bytes, worker: str) -> None:
        self._store, self._plan, self._worker = store, plan, worker
        name = keccak256(plan + bytes.fromhex(worker[2:])).hex()
        self._file = OwnedFile(store, f"journal-{name}.json", f"process of {worker}")
        self.floor = 0
        self.claims: list[ClaimEntry] = []
        self.receipts: list[DeliveryEntry] = []
        self.rosters: list[tuple[int, bool, RosterEntry]] = []
        """With the round, and whether it is provisional; two of one kind cost the coordinator its stake."""
        if self._file.content:
            self._open()

    def claim(self, round_: int, phase: int, part: int) -> ClaimEntry | None:
        """The claim that the worker has signed for a place."""
        return next((entry for entry in self.claims if entry.claim.place == (round_, phase, part)), None)

    def see(self, roster: Roster, signature: bytes) -> None:
        """Keep the first roster of a round that the coordinator has signed and shown; it is on disk when this returns.

        Raises:
            ProtocolError: it has shown another one before; or the round is before those whose claims are known.
            OperationalError: another process of this worker was started, or the store failed.
        """
        entry = RosterEntry(roster.document.hex(), signature)
        about = (roster.round, roster.provisional)
        shown = [old.document for *kind, old in self.rosters if tuple(kind) == about]
        before = [old.document for *kind, old in self.rosters if tuple(kind) == (roster.round, True)]
        if entry.document not in shown:
            self._store.put(roster.encode())
            oldest = roster.round - SHOWN
            self.rosters = [*(old for old in self.rosters if old[0] >= oldest), (*about, entry)]
            self.floor = max(self.floor, roster.round - 1)
            self.claims = [old for old in self.claims if old.claim.round >= self.floor]
            self._write()
        follows = roster.provisional or not before or roster.begun.hex() in before
        if (shown and shown != [entry.document]) or not follows:
            raise ProtocolError(
                f"the coordinator has shown two rosters of round {roster.round}: {self._worker} signs nothing more, "
                "and its journal has both, which are evidence"
            )
        self._require_floor(roster.round)

    def add(self, entry: ClaimEntry | DeliveryEntry) -> None:
        """Keep an entry, on disk when this returns; receipts of rounds long past are let go.

        Raises:
            ProtocolError: the worker has signed another claim for this place, or may have.
            OperationalError: as `see`.
        """
        if isinstance(entry, DeliveryEntry):
            if entry not in self.receipts:
                self.receipts = [*(old for old in self.receipts if old.round >= entry.round - SHOWN), entry]
                self._write()
            return
        self._require_floor(entry.claim.round)
        known = self.claim(*entry.claim.place)
        if known is None:
            self.claims.append(entry)
            self._write()
        elif known.claim != entry.claim:
            raise ProtocolError(
                f"{self._worker} has signed another claim for round {entry.claim.round}, phase {entry.claim.phase}, "
                f"part {entry.claim.part} before: this one would cost it its stake; replay both, one is false"
            )

    def _require_floor(self, round_: int) -> None:
        if round_ < self.floor:
            raise ProtocolError(
                f"{self._worker} has taken part in round {self.floor + 1}, and signs nothing for round {round_} any "
                "more: the coordinator has gone back"
            )

    def _write(self) -> None:
        kept: list[LogEntry] = [*self.claims, *self.receipts]
        document = {
            "kind": KIND,
            "version": VERSION,
            "plan": self._plan.hex(),
            "worker": self._worker,
            "floor": self.floor,
            "entries": [encode_entry(one).decode() for one in kept],
            "rosters": [
                {"round": round_, "provisional": provisional, "entry": encode_entry(one).decode()}
                for round_, provisional, one in self.rosters
            ],
        }
        self._file.write(canonical_json.encode(document))

    def _open(self) -> None:
        names = ["plan", "worker", "floor", "entries", "rosters"]
        given = canonical_json.Fields.of_document(self._file.content, "the journal", KIND, VERSION, names)
        if (given.hash("plan"), given.text("worker")) != (self._plan, self._worker):
            raise ProtocolError(f"the journal is that of {given.text('worker')}, not of {self._worker}: give it back")
        self.floor = given.integer("floor")
        for item in given.items("entries"):
            entry = decode_entry(str(item).encode())
            if isinstance(entry, ClaimEntry):
                self.claims.append(entry)
            elif isinstance(entry, DeliveryEntry):
                self.receipts.append(entry)
        shown = (
            canonical_json.Fields(item, "a roster", ["round", "provisional", "entry"])
            for item in given.items("rosters")
        )
        for item in shown:
            roster = decode_entry(item.text("entry").encode())
            if isinstance(roster, RosterEntry):
                self.rosters.append((item.integer("round"), item.truth("provisional"), roster))
