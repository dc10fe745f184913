"""What a worker has signed and was shown, kept before anybody sees it: one that starts again signs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import (
    PAGE,
    ClaimEntry,
    DeliveryEntry,
    LogEntry,
    RosterEntry,
    decode_entry,
    encode_entry,
    join_entries,
    split_entries,
)
from pol.rounds.log.owned_file import FILE_LIMIT, OwnedFile
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

KIND, VERSION = "pol/worker-journal", 3
SHOWN = 128
"""Rounds whose receipts and rosters stand in the file itself."""


def journal_name(plan: bytes, worker: str) -> str:
    """The file of a worker's journal in its store."""
    return f"journal-{keccak256(plan + bytes.fromhex(worker[2:])).hex()}.json"


@dataclass
class KeptEntries:
    """What a journal has: claims of the last two rounds, receipts and first rosters, and all that was before.

    Nothing is dropped: a worker answers for claims of any age (docs/spec/rounds.md, "Demands").
    """

    store: Store
    floor: int = 0
    """Nothing is signed for a round before."""
    claims: list[ClaimEntry] = field(default_factory=list)
    receipts: list[DeliveryEntry] = field(default_factory=list)
    rosters: list[tuple[int, bool, RosterEntry]] = field(default_factory=list)
    """With the round, and whether it is provisional; two of one kind cost the coordinator its stake."""
    behind: list[bytes] = field(default_factory=list)
    """Entries of rounds before, and the claims of others that own ones name; less than a page of them."""
    pages: list[str] = field(default_factory=list)
    """Objects of `PAGE` entries each, from before these."""

    def entries(self) -> Iterator[LogEntry]:
        """All that was ever kept; what is needed last comes last."""
        for page in self.pages:
            yield from map(decode_entry, split_entries(self.store.get(page)))
        yield from map(decode_entry, self.behind)
        yield from (entry for *_, entry in self.rosters)
        yield from self.claims
        yield from self.receipts

    def decode(self, data: bytes, plan: bytes, worker: str) -> None:
        """Take up the content of a journal's file."""
        names = ["plan", "worker", "floor", "entries", "rosters", "behind", "pages"]
        given = canonical_json.Fields.of_document(data, "the journal", KIND, VERSION, names)
        if (given.hash("plan"), given.text("worker")) != (plan, worker):
            raise ProtocolError(f"the journal is that of {given.text('worker')}, not of {worker}: give it back")
        self.floor, self.pages = given.integer("floor"), [str(page) for page in given.items("pages")]
        self.behind = [str(item).encode() for item in given.items("behind")]
        for item in given.items("entries"):
            entry = decode_entry(str(item).encode())
            if isinstance(entry, ClaimEntry):
                self.claims.append(entry)
            elif isinstance(entry, DeliveryEntry):
                self.receipts.append(entry)
        for shown in (
            canonical_json.Fields(e, "a roster", ["round", "provisional", "entry"]) for e in given.items("rosters")
        ):
            roster = decode_entry(shown.text("entry").encode())
            if isinstance(roster, RosterEntry):
                self.rosters.append((shown.integer("round"), shown.truth("provisional"), roster))


def read_journal(store: Store, plan: bytes, worker: str) -> KeptEntries:
    """A worker's journal, for a process beside the one that writes it; empty if there is none."""
    kept, name = KeptEntries(store), journal_name(plan, worker)
    if store.holds(name):
        kept.decode(store.read(name, limit=FILE_LIMIT), plan, worker)
    return kept


class WorkerJournal(KeptEntries):
    """The journal of a worker that signs: a file of its store, and pages.

    Nothing is signed for a place twice, nor for a round before ``floor``: what was signed there isn't looked at any
    more.
    """

    def __init__(self, store: Store, plan: bytes, worker: str) -> None:
        super().__init__(store)
        self._plan, self._worker = plan, worker
        self._file = OwnedFile(store, journal_name(plan, worker), f"process of {worker}")
        if self._file.content:
            self.decode(self._file.content, plan, worker)

    def claim(self, round_: int, phase: int, part: int) -> ClaimEntry | None:
        """The claim that the worker has signed for a place."""
        return next((entry for entry in self.claims if entry.claim.place == (round_, phase, part)), None)

    def see(self, roster: Roster, signature: bytes) -> None:
        """Keep the first roster of a round that the coordinator has signed and shown; it is on disk when this returns.

        Raises:
            ProtocolError: it has shown another one before; or the round is before those whose claims are known.
        """
        entry = RosterEntry(roster.document.hex(), signature)
        about = (roster.round, roster.provisional)
        shown = [old.document for *kind, old in self.rosters if tuple(kind) == about]
        before = [old.document for *kind, old in self.rosters if tuple(kind) == (roster.round, True)]
        if entry.document not in shown:
            self.store.put(roster.encode())
            oldest, self.floor = roster.round - SHOWN, max(self.floor, roster.round - 1)
            self._leave(old for round_, _, old in self.rosters if round_ < oldest)
            self._leave(old for old in self.claims if old.claim.round < self.floor)
            self.rosters = [*(old for old in self.rosters if old[0] >= oldest), (*about, entry)]
            self.claims = [old for old in self.claims if old.claim.round >= self.floor]
            self._write()
        follows = roster.provisional or not before or roster.begun.hex() in before
        if (shown and shown != [entry.document]) or not follows:
            raise ProtocolError(
                f"the coordinator has shown two rosters of round {roster.round}: {self._worker} signs nothing more, "
                "and its journal has both, which are evidence"
            )
        self._require_floor(roster.round)

    def add(self, entry: ClaimEntry | DeliveryEntry, named: Iterable[ClaimEntry] = ()) -> None:
        """Keep an entry, on disk when this returns, and the claims of others that it names (`ClaimAuthor.named`)."""
        if isinstance(entry, DeliveryEntry):
            if entry not in self.receipts:
                oldest = entry.round - SHOWN
                self._leave(old for old in self.receipts if old.round < oldest)
                self.receipts = [*(old for old in self.receipts if old.round >= oldest), entry]
                self._write()
            return
        self._require_floor(entry.claim.round)
        known = self.claim(*entry.claim.place)
        if known is None:
            self._leave(named)
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

    def _leave(self, entries: Iterable[LogEntry]) -> None:
        """Let entries go from the file's lists, not from the journal."""
        known = set(self.behind)
        self.behind += [data for data in map(encode_entry, entries) if data not in known]

    def _write(self) -> None:
        while len(self.behind) >= PAGE:
            self.pages.append(self.store.put(join_entries(self.behind[:PAGE])))
            self.behind = self.behind[PAGE:]
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
            "behind": [data.decode() for data in self.behind],
            "pages": self.pages,
        }
        self._file.write(canonical_json.encode(document))
