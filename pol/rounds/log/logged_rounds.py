"""Rounds as their log has them: entries with rosters and claims, and what the authors of claims have published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.roster_rules import final_of
from pol.rounds.log.log_entries import ClaimEntry, LogEntry, RosterEntry, require_author
from pol.rounds.log.rounds_log import LogHead, SignedText, read_entries, rosters_of
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Roster
from pol.rounds.round_claim import BoundSlot, EndSlot, decode_end, decode_sources, sources_root
from pol.rounds.worker_key import is_signed_by
from pol.training.storage.store import Store

ROOTS_LIMIT = 1 << 26
_T = TypeVar("_T")


@dataclass(frozen=True)
class LoggedRounds:
    """Entries of some rounds with the rosters, as `read_rounds` gives them."""

    plan: RoundsPlan
    store: Store
    entries: Sequence[LogEntry]
    rosters: Mapping[int, Sequence[Roster]]
    """By round: a provisional one and a final one, or one; two of a kind are an equivocation of the coordinator."""
    claims: Mapping[bytes, ClaimEntry]
    places: Mapping[ClaimPlace, ClaimEntry]
    is_whole: bool = True
    """Whether all rounds were read: only then is an entry missing that isn't there."""
    copies: Mapping[bytes, Sequence[ClaimEntry]] = field(default_factory=dict)
    """Entries of one claim that name different objects: no signature covers these, and anybody may enter others."""
    texts: Sequence[SignedText] = ()
    """What the coordinator has signed as rosters of these rounds, and are none."""

    def shown(self, entry: ClaimEntry, read: Callable[[ClaimEntry], _T]) -> _T:
        """What is read from the first copy of an entry whose objects are those of its claim.

        Raises:
            OperationalError: no copy's are.
        """
        first, *others = self.copies.get(entry.claim.digest) or [entry]
        try:
            return read(first)
        except OperationalError:
            for other in others:
                with suppress(OperationalError):
                    return read(other)
            raise

    def end(self, entry: ClaimEntry) -> list[EndSlot]:
        """The slots of the end of a claim."""
        return self.shown(entry, partial(end_of_copy, self.store))

    def sources(self, entry: ClaimEntry) -> list[BoundSlot]:
        """The sources of a claim."""
        return self.shown(entry, partial(sources_of_copy, self.store))

    def roster_of(self, entry: ClaimEntry) -> Roster | None:
        """The roster that a claim names, if the log has it."""
        named = (roster for roster in self.rosters.get(entry.claim.round, ()) if roster.document == entry.claim.roster)
        return next(named, None)

    def signature_of(self, roster: Roster) -> bytes:
        """The coordinator's signature of one of these rosters; other entries that name its document are nobody's."""
        entries = (entry for entry in self.entries if isinstance(entry, RosterEntry))
        named = (entry.signature for entry in entries if entry.document == roster.document.hex())
        return next(each for each in named if is_signed_by(roster.digest, each, self.plan.coordinator))

    def before(self, round_: int) -> list[Roster]:
        """The final roster of the round before; more than one, if the coordinator has equivocated."""
        return final_of(self.rosters.get(round_ - 1, ()))


def end_of_copy(store: Store, entry: ClaimEntry) -> list[EndSlot]:
    """The end of a claim by this copy of its entry: no signature covers which slots its file holds."""
    try:
        return decode_end(store.get(entry.roots, limit=ROOTS_LIMIT), entry.claim.end)
    except ProtocolError as error:
        raise OperationalError(f"{entry.worker} has published no roots of its claim's end: {error}") from error


def sources_of_copy(store: Store, entry: ClaimEntry) -> list[BoundSlot]:
    """The sources of a claim by this copy of its entry. Raises OperationalError: as `LoggedRounds.sources`."""
    try:
        sources = decode_sources(store.get(entry.sources, limit=ROOTS_LIMIT))
    except ProtocolError as error:  # also of the store: an object that is damaged, or too long
        raise OperationalError(f"{entry.worker} has published no sources of its claim: {error}") from error
    if sources_root(sources) != entry.claim.sources:
        raise OperationalError(f"the sources that {entry.worker} has published aren't those of its claim")
    return sources


def read_rounds(store: Store, plan: RoundsPlan, head: LogHead, first: int = 0, last: int | None = None) -> LoggedRounds:
    """The entries of the rounds ``first`` .. ``last`` and of the one before."""
    entries = list(read_entries(store, head, max(0, first - 1), last))
    return rounds_of(store, plan, entries, first == 0 and last is None)


def rounds_of(
    store: Store, plan: RoundsPlan, entries: Sequence[LogEntry], is_whole: bool, known: LoggedRounds | None = None
) -> LoggedRounds:
    """Entries with the rosters among them. Of those with which they begin, which are ``known``, nothing is read."""
    before = known or LoggedRounds(plan, store, (), {}, {}, {})
    entries, new = [*entries], entries[len(before.entries) :]
    rosters = {round_: [*of_round] for round_, of_round in before.rosters.items()}
    documents = {roster.document.hex() for of_round in rosters.values() for roster in of_round}
    found, texts = rosters_of(
        store, plan, [e for e in new if not isinstance(e, RosterEntry) or e.document not in documents]
    )
    for roster in found:
        rosters.setdefault(roster.round, []).append(roster)
    claims, places = dict(before.claims), dict(before.places)
    copies = {digest: [*of_claim] for digest, of_claim in before.copies.items()}
    for entry in new:
        # What nobody has signed is nobody's claim.
        if isinstance(entry, ClaimEntry) and entry.claim.plan == plan.digest and is_signed(entry):
            claims.setdefault(entry.claim.digest, entry)
            copies.setdefault(entry.claim.digest, []).append(entry)
            places.setdefault(ClaimPlace(entry.worker, *entry.claim.place), entry)
    texts = [*before.texts, *(text for text in texts if text not in before.texts)]
    return LoggedRounds(plan, store, entries, rosters, claims, places, is_whole, copies, texts)


@lru_cache(maxsize=1 << 16)
def is_signed(entry: LogEntry) -> bool:
    """Whether an entry other than a roster is its author's."""
    try:
        require_author(entry)
    except ProtocolError:
        return False
    return True
