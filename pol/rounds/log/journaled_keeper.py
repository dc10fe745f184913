"""A keeper's log whose entries stand in a journal before anybody hears of them: who starts again signs nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.rounds.log.log_entries import PAGE, LogEntry, RosterEntry, decode_entry, encode_entry
from pol.rounds.log.owned_file import OwnedFile
from pol.rounds.log.rounds_log import HEAD, LogHead, LogKeeper, read_pages
from pol.rounds.worker_key import WorkerKey, require_signed
from pol.training.storage.store import Store

KIND, VERSION = "pol/keeper-journal", 1


def keeper_journal_name(plan: bytes) -> str:
    """The file of a keeper's journal in its store."""
    return f"keeper-{plan.hex()}.json"


def require_keeper_journal(store: Store, plan: bytes, keeper: str) -> str:
    """Check that a log in a store is this keeper's and has its journal; the name of the journal's file."""
    name = keeper_journal_name(plan)
    if store.holds(HEAD):
        head = LogHead.decode(store.read(HEAD))
        require_signed(head.digest, head.signature, keeper, f"the head of the log in {store.url}")
        if not store.holds(name):
            raise ProtocolError(
                f"the training in {store.url} has begun already, and {name}, which says what was signed, isn't there: "
                "put it back, or begin a new training in an empty store"
            )
    return name


def journaled_entries(content: bytes, name: str) -> tuple[int, list[bytes]]:
    """How many entries a keeper's log had before those of its journal, and these, in their order."""
    given, entries = _decode(content, name)
    return given.integer("first"), [data for _, data in entries]


class JournaledKeeper:
    """A `LogKeeper` with a journal: a file of the store with the entries that follow the newest head, and notices.

    An entry stands in the journal before its page is stored and before a head over it is signed. So a keeper that was
    killed goes on with the same entries, and each of its heads extends those before. ``notices`` are entries that
    aren't in the log yet. One that has raised is started again; one beside which another was started raises at its next
    write, or at the end of one that was under way, before anybody hears of it.
    """

    def __init__(self, store: Store, plan: bytes, key: WorkerKey) -> None:
        self._log = LogKeeper(store, plan, key)
        self._store, self._name = store, require_keeper_journal(store, plan, key.name)
        self._first = len(self._log)
        """Where the journal's entries begin in the log."""
        self._entries: list[tuple[int, bytes]] = []
        """Those behind, with the round in which each was appended."""
        self._starts = 0
        """How often a keeper was started on this journal."""
        self.notices: list[LogEntry] = []
        """Those that were kept last before a restart."""
        self._file = OwnedFile(store, self._name, "coordinator")
        if self._file.content:
            self._recover()
        self._starts += 1
        self.keep(self.notices)

    def __len__(self) -> int:
        return len(self._log) + len(self._entries)

    @property
    def unpublished(self) -> int:
        """How many entries follow the newest head."""
        return len(self._entries)

    def entries(self) -> Iterator[LogEntry]:
        """All entries, published or not, in order."""
        for data in self._published():
            yield decode_entry(data)
        for _, data in self._entries:
            yield decode_entry(data)

    def last_roster(self) -> RosterEntry | None:
        """The newest roster that was signed."""
        rosters = deque((entry for entry in self.entries() if isinstance(entry, RosterEntry)), 1)
        return rosters[0] if rosters else None

    def append(self, entry: LogEntry, round_: int) -> None:
        """Add an entry of a round; nobody may hear of it before `keep` or `publish` has returned."""
        self._entries.append((round_, encode_entry(entry)))

    def keep(self, notices: Sequence[LogEntry]) -> None:
        """Write the journal: what was appended, and these notices instead of those before, are on disk."""
        document = {
            "kind": KIND,
            "version": VERSION,
            "starts": self._starts,
            "first": self._first,
            "entries": [{"round": round_, "entry": data.decode()} for round_, data in self._entries],
            "notices": [encode_entry(notice).decode() for notice in notices],
        }
        self._file.write(canonical_json.encode(document))
        if len(self._entries) >= PAGE:  # keeps the journal short
            self._sign_head()

    def publish(self, notices: Sequence[LogEntry]) -> None:
        """As `keep`; then store what was appended, and the signed head."""
        self.keep(notices)
        self._sign_head()

    def _sign_head(self) -> None:
        for round_, data in self._entries:
            self._log.append(decode_entry(data), round_)
        self._log.publish()
        self._first, self._entries = len(self._log), []

    def _published(self) -> Iterator[bytes]:
        if len(self._log):
            yield from read_pages(self._store, LogHead.decode(self._store.read(HEAD)))

    def _recover(self) -> None:
        """Take up the journal: its first entries may stand in the log already."""
        given, entries = _decode(self._file.content, self._name)
        self._starts, self._first = given.integer("starts"), given.integer("first")
        done = len(self._log) - self._first
        logged = list(islice(self._published(), self._first, None))
        if done < 0 or logged != [data for _, data in entries[:done]]:
            raise ProtocolError(
                f"the log in {self._store.url} has {len(self._log)} entries that don't fit {self._name}: put back the "
                "newest state of both, or begin a new training in an empty store"
            )
        self._first, self._entries = len(self._log), entries[done:]
        self.notices = [decode_entry(str(item).encode()) for item in given.items("notices")]


def _decode(content: bytes, name: str) -> tuple[canonical_json.Fields, list[tuple[int, bytes]]]:
    names = ["starts", "first", "entries", "notices"]
    given = canonical_json.Fields.of_document(content, f"the journal {name}", KIND, VERSION, names)
    items = [canonical_json.Fields(item, "an entry", ["round", "entry"]) for item in given.items("entries")]
    return given, [(item.integer("round"), item.text("entry").encode()) for item in items]
