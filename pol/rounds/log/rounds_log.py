"""The append-only log of a training in rounds, in a store (docs/spec/rounds.md, "Log")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pol.commitments import canonical_json
from pol.commitments.checkpoint_log import LogEdge
from pol.commitments.keccak import keccak256
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.rounds.log.log_entries import (
    ENTRY_LIMIT,
    PAGE,
    LogEntry,
    RosterEntry,
    encode_entry,
    join_entries,
    split_entries,
)
from pol.rounds.log.log_entries import decode_entry as decode
from pol.rounds.plan.rounds_plan import DOCUMENT_LIMIT, RoundsPlan
from pol.rounds.roster import ROSTER_LIMIT, Roster, signed_round
from pol.rounds.typed_message import WORD, message_digest
from pol.rounds.worker_key import SIGNATURE_SIZE, WorkerKey, require_signed
from pol.training.storage.store import Store

HEAD = "rounds.json"
"""The only file that ever changes."""
KIND, VERSION = "pol/rounds-log", 1
HEAD_TYPE = "LogHead(bytes32 plan,uint64 size,bytes32 root)"
CHAPTER = 256
"""Pages of a chapter."""
_PIECE = 40
"""Bytes of a piece in a chapter: a digest and its first round."""


@dataclass(frozen=True)
class LogPiece:
    """A page, or a chapter of pages: its object, and the round of its first entry."""

    object: str
    round: int

    def encode(self) -> bytes:
        """40 bytes."""
        return bytes.fromhex(self.object) + self.round.to_bytes(8, "big")


@dataclass(frozen=True)
class LogHead:
    """The file of a log: size and root, signed by its keeper, and where its entries stand."""

    plan: bytes
    size: int
    root: bytes
    signature: bytes
    chapters: tuple[LogPiece, ...]
    pages: tuple[LogPiece, ...]

    @property
    def digest(self) -> bytes:
        """The digest that the keeper signs."""
        return message_digest(HEAD_TYPE, [self.plan, self.size, self.root])

    def encode(self) -> bytes:
        """The canonical bytes of the file."""
        pieces = {
            name: [{"object": piece.object, "round": piece.round} for piece in getattr(self, name)]
            for name in ("chapters", "pages")
        }
        head = {"plan": self.plan.hex(), "size": self.size, "root": self.root.hex(), "signature": self.signature.hex()}
        return canonical_json.encode({"kind": KIND, "version": VERSION, **head, **pieces})

    @classmethod
    def decode(cls, data: bytes) -> LogHead:
        """The head in a file. Raises ProtocolError: not the canonical bytes of a head."""
        given = canonical_json.Fields.of_document(data, "the log's head", KIND, VERSION, list(cls.__dataclass_fields__))
        chapters, pages = (
            tuple(
                LogPiece(piece.digest("object"), piece.integer("round"))
                for piece in (canonical_json.Fields(item, name, ["object", "round"]) for item in given.items(name))
            )
            for name in ("chapters", "pages")
        )
        size, signature = given.integer("size", 1), given.octets("signature", SIGNATURE_SIZE)
        if len(chapters) * CHAPTER + len(pages) != -(-size // PAGE):
            raise ProtocolError(
                f"the log's head names {len(pages)} pages, which can't hold {size} entries: ask its keeper"
            )
        if len({piece.object for piece in (*chapters, *pages)}) != len(chapters) + len(pages):
            raise ProtocolError("the log's head names a page twice: ask its keeper")
        return cls(given.hash("plan"), size, given.hash("root"), signature, chapters, pages)


def load_plan(store: Store, name: str) -> RoundsPlan:
    """The plan of this name (`RoundsPlan.digest`, in hexadecimal digits)."""
    data = store.get(name, limit=DOCUMENT_LIMIT)
    if data.startswith(b"{"):
        return RoundsPlan.decode(data)
    # Behind the chain, the contract and the submitter.
    document = store.get(data[3 * WORD : 4 * WORD].hex(), limit=DOCUMENT_LIMIT)
    return replace(RoundsPlan.decode(document), registration=data)


def load_head(store: Store) -> tuple[RoundsPlan, LogHead]:
    """The newest head in a store and its plan; the keeper's signature is checked."""
    head = LogHead.decode(store.read(HEAD))
    plan = load_plan(store, head.plan.hex())
    require_signed(head.digest, head.signature, plan.coordinator, "the log's head")
    return plan, head


def read_entries(store: Store, head: LogHead, first: int = 0, last: int | None = None) -> Iterator[LogEntry]:
    """The entries of all pages that may have one of the rounds ``first`` .. ``last``; by default of all."""
    for data in read_pages(store, head, first, last):
        yield decode(data)


def read_pages(store: Store, head: LogHead, first: int = 0, last: int | None = None) -> Iterator[bytes]:
    """As `read_entries`, the bytes of each entry."""
    for page in pages_of(store, head, first, last):
        yield from read_page(store, page)


def pages_of(store: Store, head: LogHead, first: int = 0, last: int | None = None) -> list[str]:
    """As `read_entries`, the objects of the pages."""
    chapters = [piece for _, piece in _between(head.chapters, first, last, after=head.pages)]
    pages = [page for chapter in chapters for page in _split_chapter(store.get(chapter.object, limit=_PIECE * CHAPTER))]
    return [page.object for _, page in _between([*pages, *head.pages], first, last)]


def read_page(store: Store, page: str) -> list[bytes]:
    """The bytes of each entry of a page."""
    return split_entries(store.get(page, limit=PAGE * (ENTRY_LIMIT + 4)))


def require_whole(store: Store, head: LogHead) -> None:
    """Check that the pages of a log are those of its root; reads all of them. Raises EvidenceError: they aren't."""
    edge = LogEdge()
    for data in read_pages(store, head):
        edge = edge.append(keccak256(data))
    if edge.size != head.size or edge.root() != head.root:
        problem = f"the log's pages hold {edge.size} entries that don't lead to its root over {head.size}"
        raise EvidenceError(Fault.MISSING_ENTRY, problem)


class LogKeeper:
    """Appends entries to the log of a plan and signs its heads; opens the log that the store has, if any."""

    def __init__(self, store: Store, plan: bytes, key: WorkerKey) -> None:
        self._store, self._plan, self._key = store, plan, key
        self._edge = LogEdge()
        self._page: list[bytes] = []
        self._page_round = 0
        self._chapters: list[LogPiece] = []
        self._pages: list[LogPiece] = []
        self._tails: list[str] = []
        """Pages that newer ones have replaced, and the newest."""
        if store.holds(HEAD):
            head = LogHead.decode(store.read(HEAD))
            if head.plan != plan:
                raise ProtocolError(f"{store.url} holds the log of another plan: give an empty store")
            self._open(head)

    def __len__(self) -> int:
        return self._edge.size

    def append(self, entry: LogEntry, round_: int) -> None:
        """Add an entry of a round; `publish` shows it to others."""
        self._append(encode_entry(entry), round_)

    def publish(self) -> LogHead:
        """Store what was added, and the signed head. Raises ProtocolError: the log is empty."""
        pages = list(self._pages)
        if self._page:
            pages.append(LogPiece(self._store.put(join_entries(self._page)), self._page_round))
            self._tails = [*(tail for tail in self._tails if tail != pages[-1].object), pages[-1].object]
        head = LogHead(self._plan, self._edge.size, self._edge.root(), b"", tuple(self._chapters), tuple(pages))
        signed = replace(head, signature=self._key.sign(head.digest))
        self._store.replace(HEAD, signed.encode())
        # Who has read the head before can still read its last page.
        while len(self._tails) > 2:
            self._store.remove(self._tails.pop(0))
        return signed

    def _append(self, data: bytes, round_: int) -> None:
        if len(data) > ENTRY_LIMIT:
            raise ProtocolError(f"an entry of {len(data)} bytes: the log takes {ENTRY_LIMIT} at most")
        if not self._page:
            self._page_round = round_
        self._edge = self._edge.append(keccak256(data))
        self._page.append(data)
        if len(self._page) == PAGE:
            self._pages.append(LogPiece(self._store.put(join_entries(self._page)), self._page_round))
            self._page = []
        if len(self._pages) == CHAPTER:
            joined = b"".join(page.encode() for page in self._pages)
            self._chapters.append(LogPiece(self._store.put(joined), self._pages[0].round))
            self._pages = []

    def _open(self, head: LogHead) -> None:
        for data in read_pages(self._store, head):
            self._edge = self._edge.append(keccak256(data))
        if self._edge.size != head.size or self._edge.root() != head.root:
            raise ProtocolError(f"the log in {self._store.url} is damaged: its pages don't lead to its root")
        self._chapters, self._pages = list(head.chapters), list(head.pages)
        if head.size % PAGE:
            last = self._pages.pop()
            self._page, self._page_round = split_entries(self._store.get(last.object)), last.round
            self._tails = [last.object]


class SignedText(NamedTuple):
    """What the coordinator has signed as the roster of a round, and isn't one: one bad text ends nobody's reading."""

    round: int
    text: bytes
    signature: bytes


def rosters_of(store: Store, plan: RoundsPlan, entries: Sequence[LogEntry]) -> tuple[list[Roster], list[SignedText]]:
    """The rosters among entries, in their order, each signed by the coordinator, and what it has signed besides."""
    found: dict[str, Roster] = {}
    texts: dict[str, SignedText] = {}
    for entry in entries:
        if not isinstance(entry, RosterEntry) or entry.document in found.keys() | texts.keys():
            continue
        try:
            data = store.get(entry.document, limit=ROSTER_LIMIT)
        except ProtocolError:  # longer than a roster, and nobody shows it on a chain
            continue
        try:
            roster = Roster.decode_signed(data, plan.digest, plan.coordinator, entry.signature)
        except ProtocolError:
            round_ = signed_round(data, plan.digest, plan.coordinator, entry.signature)
            texts[entry.document] = SignedText(round_ or 0, data, entry.signature)
            continue
        if roster is not None:
            found[entry.document] = roster
    return list(found.values()), list(texts.values())


def _between(
    pieces: Sequence[LogPiece], first: int, last: int | None, after: Sequence[LogPiece] = ()
) -> Iterator[tuple[int, LogPiece]]:
    """The pieces that may hold entries of these rounds: rounds of first entries ascend."""
    following = [*(piece.round for piece in pieces[1:]), after[0].round if after else 1 << 64]
    for number, (piece, until) in enumerate(zip(pieces, following, strict=bool(pieces))):
        if until >= first and (last is None or piece.round <= last):
            yield number, piece


def _split_chapter(data: bytes) -> list[LogPiece]:
    pieces = (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    return [LogPiece(piece[:32].hex(), int.from_bytes(piece[32:], "big")) for piece in pieces]
