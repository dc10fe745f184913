"""A party's own copy of a training in rounds: all that it may have to answer with, whatever becomes of the store."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from pol.commitments.checkpoint_log import CheckpointLog, LogEdge
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, PolError, ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.roles.party.kept_store import KeptStore
from pol.rounds.auditing.claim_replay import load_phase, load_start, phase_constants
from pol.rounds.auditing.roster_rules import final_of
from pol.rounds.log.journaled_keeper import journaled_entries, keeper_journal_name
from pol.rounds.log.log_entries import PAGE, ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, decode_entry
from pol.rounds.log.logged_rounds import LoggedRounds, rounds_of
from pol.rounds.log.owned_file import FILE_LIMIT
from pol.rounds.log.rounds_log import HEAD, LogHead, load_plan, pages_of, read_page, read_pages
from pol.rounds.log.worker_journal import KeptEntries, journal_name
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import ROSTER_LIMIT, Roster
from pol.rounds.round_claim import INITIAL
from pol.rounds.worker_key import require_signed
from pol.training.storage.store import Store

OTHER = "other head"
"""A second head of the keeper's that doesn't extend the one before."""
DONE = "answerable"
"""The claims whose answers lie in the folder."""
_TABLE = "rounds (plan TEXT, name TEXT, content BLOB NOT NULL, PRIMARY KEY (plan, name))"


class KeptRounds:
    """What a party holds of a plan on its disk: its claims, what they name, the log, and the journal.

    Objects are copied as they are read (`KeptStore`), and what changes is copied to the table ``rounds``. `refresh`
    follows the store; answers are made of the copies alone.
    """

    def __init__(self, store: KeptStore, registration: bytes, worker: str, executors: ExecutorFactory) -> None:
        self.store, self.own, self.worker = store, Store(f"file://{store.folder.resolve()}"), worker
        self.name = self.own.put(registration)
        self._executors = executors
        with store.about(self.name):
            self.plan: RoundsPlan = load_plan(store, self.name)
        self.head: LogHead | None = None
        self.log = CheckpointLog()
        self.other: LogHead | None = None
        """A head that contradicts `head`: evidence against the keeper."""
        self.journal = KeptEntries(self.own)
        self.troubles: list[str] = []
        self.unanswerable: list[str] = []
        """Of the own claims, those that this party couldn't answer for, and why."""
        self.logged = rounds_of(self.own, self.plan, (), is_whole=True)
        """The log."""
        self._pages: list[tuple[str, int]] = []
        """Of the log, each with its size, by their objects: which doesn't change is read once."""
        self._edge = LogEdge()
        """Of the log's full pages."""
        self._begun: tuple[int, list[bytes]] = (0, [])
        self._takes = {HEAD: self._take_log, journal_name(self.plan.digest, worker): self._take_journal}
        if worker == self.plan.coordinator:
            self._takes[keeper_journal_name(self.plan.digest)] = self._take_begun
        store.database.create(_TABLE)
        self._done = set[str](json.loads(self._copy(DONE) or "[]"))
        if store.lacks(self.name):
            self._done = set()  # all is looked for again
        for name, take in self._takes.items():
            if (data := self._copy(name)) is not None:
                take(name, data)
        if (other := self._copy(OTHER)) is not None:
            self.other = LogHead.decode(other)

    def refresh(self) -> None:
        """Copy what the store has by now: ``troubles`` says what couldn't be read, ``unanswerable`` what is missing."""
        self.troubles, self.unanswerable = [], []
        for name, take in self._takes.items():
            try:
                if self.store.holds(name) and (data := self.store.read(name, limit=FILE_LIMIT)) != self._copy(name):
                    take(name, data)
            except PolError as error:
                self.troubles.append(str(error))
        for entry in self.owed:
            if entry.claim.digest.hex() not in self._done:
                try:
                    with self.store.about(self.name):
                        self._keep(entry)
                except PolError as error:
                    self.unanswerable.append(self._missing(entry, error))
                else:
                    self._done.add(entry.claim.digest.hex())
                    self._keep_copy(DONE, json.dumps(sorted(self._done)).encode())

    @cached_property
    def rounds(self) -> LoggedRounds:
        """The log and the journal."""
        logged = set(self.logged.entries)
        besides = (entry for entry in self.journal.entries() if entry not in logged)
        return rounds_of(self.own, self.plan, [*self.logged.entries, *besides], is_whole=False, known=self.logged)

    @property
    def owed(self) -> list[ClaimEntry]:
        """The own claims, for each of which this party answers."""
        return [entry for entry in self.rounds.claims.values() if entry.worker == self.worker]

    @property
    def receipts(self) -> list[DeliveryEntry]:
        """The receipts that the party holds."""
        return [entry for entry in self.rounds.entries if isinstance(entry, DeliveryEntry)]

    def suspect(self) -> LoggedRounds:
        """The log as the store shows it, with rosters that this party was shown in the place of those of the log."""
        rounds = replace(self.logged, store=Store(self.store.url))
        logged = {
            (r.round, r.provisional): r.document for rosters in rounds.rosters.values() for r in final_of(rosters)
        }
        others = list[LogEntry]()
        for entry in self.journal.entries():
            if isinstance(entry, RosterEntry):
                roster = Roster.decode(self.own.get(entry.document))
                if logged.get((roster.round, roster.provisional), roster.document) != roster.document:
                    others.append(entry)
        if not others:
            return rounds
        return rounds_of(rounds.store, self.plan, [*rounds.entries, *others], is_whole=True, known=rounds)

    def claim(self, digest: bytes) -> ClaimEntry:
        """A claim of this party, or one that it names. Raises OperationalError: neither log nor journal has it."""
        entry = self.rounds.claims.get(digest)
        if entry is None:
            raise OperationalError(
                f"neither the kept log nor the journal has claim {digest.hex()[:16]}: put back the store of the worker "
                "that has signed it, or answer with the process that has it"
            )
        return entry

    @cached_property
    def members(self) -> dict[str, bytes]:
        """The members of all rosters that were signed, each with the first one's document."""
        found = dict[str, bytes]()
        for rosters in self.rounds.rosters.values():
            for roster in rosters:
                found = dict.fromkeys((member.worker for member in roster.members), roster.document) | found
        return found

    @cached_property
    def whole(self) -> tuple[list[LogEntry], CheckpointLog]:
        """The log with what its keeper has written to its journal by now: all heads that follow extend it.

        Raises:
            OperationalError: the copies of log and journal are of different times.
        """
        known, (first, entries) = self.log.entries, self._begun
        hashes, done = list(map(keccak256, entries)), len(known) - first
        if done < 0 or any(one != other for one, other in zip(known[first:], hashes, strict=False)):
            raise OperationalError("the kept log isn't the one that the keeper's journal goes on with: look again")
        return [*self.logged.entries, *map(decode_entry, entries[done:])], CheckpointLog([*known, *hashes[done:]])

    def other_log(self) -> CheckpointLog:
        """The log under the `other` head. Raises OperationalError: there is none, or its pages are gone."""
        if self.other is None:
            raise OperationalError("the keeper's heads agree: look again")
        return CheckpointLog([keccak256(page) for page in read_pages(self.store, self.other)])

    def roster(self, document: bytes) -> tuple[Roster, bytes]:
        """A roster with its coordinator's signature. Raises OperationalError: neither log nor journal has it."""
        for roster in (roster for of_round in self.rounds.rosters.values() for roster in of_round):
            if roster.document == document:
                return roster, self.rounds.signature_of(roster)
        raise OperationalError(
            f"neither the kept log nor the journal has roster {document.hex()[:16]}: put the journal back"
        )

    def _keep(self, entry: ClaimEntry) -> None:
        """Read all that demands and disputes about a claim of this party ask for: each object is copied."""
        rounds = replace(self.rounds, store=self.store)
        given = [self.claim(source.claim) for source in rounds.sources(entry) if source.claim != INITIAL]
        for each in (entry, *given):
            rounds.end(each)
            # Who has given a source may have no stake by then: that it was a member is shown then.
            roster, _ = self.roster(each.claim.roster)
            if roster.round != each.claim.round:
                raise ProtocolError(f"the roster that {each.worker}'s claim names is of round {roster.round}")
            roster.place(each.worker)
        load_phase(self.store, self.plan.phase(entry.claim.phase))
        phase_constants(rounds, entry)
        load_start(rounds, entry, self._executors)

    def _missing(self, entry: ClaimEntry, error: PolError) -> str:
        claim = entry.claim
        return (
            f"a demand or dispute about the claim of round {claim.round}, {self.plan.phase_name(claim.phase)}, part "
            f"{claim.part} could not be answered, and would cost the stake: {error}. Put back the objects and the "
            f"journal in {self.store.url}, or the folder {self.store.database.folder}"
        )

    def _copy(self, name: str) -> bytes | None:
        query = "SELECT content FROM rounds WHERE (plan, name) = (?, ?)"
        return next((bytes(content) for (content,) in self.store.database.rows(query, self.name, name)), None)

    def _keep_copy(self, name: str, data: bytes) -> None:
        self.store.database.write(("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", (self.name, name, data)))

    def _take_log(self, name: str, data: bytes) -> None:
        """Go on with the newest head of the log, if it extends the one before; else keep both."""
        head = LogHead.decode(data)
        if self.head is not None and (head.size, head.root) == (self.head.size, self.head.root):
            return
        if head.plan != self.plan.digest:
            raise ProtocolError(f"{self.store.url} has the log of another plan: name its store, or its --plan")
        require_signed(head.digest, head.signature, self.plan.coordinator, f"the head of the log in {self.store.url}")
        scope, before = f"log-{head.size}-{head.root.hex()[:16]}", self.head
        with self.store.about(scope):
            pages = pages_of(self.store, head)
            both = enumerate(zip(pages, self._pages, strict=False))
            same = next((at for at, (one, (other, _)) in both if one != other), min(len(pages), len(self._pages)))
            read = [read_page(self.store, page) for page in pages[same:]]
        texts, known = [text for page in read for text in page], sum(size for _, size in self._pages[:same])
        old, hashes = self.log.entries, list(map(keccak256, texts))
        edge = full = self._edge if self._edge.size <= known else LogEdge()
        for each in (*old[edge.size : known], *hashes):
            edge = edge.append(each)
            full = full if edge.size % PAGE else edge
        if edge.size != head.size or edge.root() != head.root:
            raise OperationalError(f"the pages of the log in {self.store.url} don't lead to its root: ask its keeper")
        if any(one != other for one, other in zip(old[known:], hashes, strict=False)):
            self.other = head
            self._keep_copy(OTHER, data)
            return
        if head.size < len(old):
            return  # an older state
        with self.store.about(self.name):
            for page in pages[max(0, same - 1) : -1]:
                self.store.get(page)  # they stay, whatever becomes of this head
            entries = [*self.logged.entries, *map(decode_entry, texts[len(old) - known :])]
            logged = rounds_of(self.store, self.plan, entries, is_whole=True, known=self.logged)  # reads the rosters
        for each in hashes[len(old) - known :]:
            self.log.append(each)
        sizes = (*(size for _, size in self._pages[:same]), *map(len, read))
        self.head, self._pages, self._edge = head, list(zip(pages, sizes, strict=True)), full
        self.logged = replace(logged, store=self.own)
        self._keep_copy(name, data)
        if before is not None:
            self.store.release(f"log-{before.size}-{before.root.hex()[:16]}")
        self._changed()

    def _take_journal(self, name: str, data: bytes) -> None:
        journal = KeptEntries(self.store)
        journal.decode(data, self.plan.digest, self.worker)
        with self.store.about(self.name):
            entries = list(journal.entries())
            for entry in entries:
                if isinstance(entry, RosterEntry):
                    self.store.get(entry.document, limit=ROSTER_LIMIT)
        if len(entries) < len(list(self.journal.entries())):
            return  # an older state: the copy has more
        journal.store, self.journal = self.own, journal
        self._keep_copy(name, data)
        self._changed()

    def _take_begun(self, name: str, data: bytes) -> None:
        """Copy the journal of the keeper, whose own process this is beside."""
        begun = journaled_entries(data, name)
        if begun != self._begun and begun[0] + len(begun[1]) >= self._begun[0] + len(self._begun[1]):
            self._begun = begun
            self._keep_copy(name, data)
            self._changed("whole")

    def _changed(self, *names: str) -> None:
        for name in names or ("rounds", "members", "whole"):
            with suppress(AttributeError):
                delattr(self, name)
