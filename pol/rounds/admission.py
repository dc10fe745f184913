"""Whom and what a coordinator admits: members with stakes into a roster, their own entries into the log.

A chain takes the coordinator's stake for any other member (docs/spec/rounds.md, "Evidence"). Members show the roster of
their claims there: one that is too long to be shown costs them their stakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pol.errors import PolError, ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, decode_entry, require_author
from pol.rounds.log.logged_rounds import end_of_copy, sources_of_copy
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace, require_place
from pol.rounds.roster import MAX_SEATS, ROSTER_LIMIT, SHOWN_LIMIT, Roster
from pol.rounds.round_claim import INITIAL
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

HasStake: TypeAlias = Callable[[str], bool]
"""Whether a worker, by its name, answers for what it signs: it has joined the plan on its chain, and hasn't left."""


def anybody(worker: str) -> bool:
    """Whoever asks: for plans that aren't on a chain."""
    del worker
    return True


def require_seats(seats: int) -> None:
    """Check that a roster with so many members can be shown on a chain. Raises ProtocolError: it can't."""
    if seats > MAX_SEATS:
        raise ProtocolError(f"{seats} seats: members couldn't show their roster on a chain; give {MAX_SEATS} at most")


def require_showable(roster: Roster) -> None:
    """Check that members can show a roster on a chain: nobody signs one that is longer, or a claim under it."""
    size = len(roster.encode())
    if size > SHOWN_LIMIT:
        raise ProtocolError(
            f"the roster of round {roster.round} has {size} bytes, and members can show {SHOWN_LIMIT} on a chain: give "
            "it fewer members, or shorter roles"
        )


def sign_roster(roster: Roster, key: WorkerKey, has_stake: HasStake = anybody) -> bytes:
    """The coordinator's signature of a roster, whose members are looked up when it begins its round.

    Raises:
        OperationalError: the chain can't say who has.
    """
    require_showable(roster)
    for member in roster.members:
        if not roster.begun and not has_stake(member.worker):
            raise ProtocolError(
                f"{member.worker} has no stake, and would cost the coordinator its own: leave it out of the roster of "
                f"round {roster.round}, or have it join the plan on its chain"
            )
    return key.sign(roster.digest)


class Admission:
    """What the log of a plan takes: each entry once, and of each place two claims, of which the second shows a lie.

    A claim has its author's signature, a place that its roster gives to its author, and objects that show its
    sources and the roots of its end; a second one for the place needs no objects. Claims and rosters of more than
    ``lag`` rounds before the newest are forgotten. ``entries`` are those that the log has already.
    """

    def __init__(self, store: Store, plan: RoundsPlan, entries: Iterable[LogEntry] = (), lag: int = 1) -> None:
        self._store, self._plan, self._lag = store, plan, lag
        self._round = 0
        self._rosters: dict[bytes, Roster] = {}
        self._taken: dict[object, int] = {}
        """What stands for entries, by the round in which they were taken."""
        for entry in entries:
            if isinstance(entry, RosterEntry):
                self.begin(Roster.decode(store.get(entry.document, limit=ROSTER_LIMIT)))
            self.take(entry)

    def begin(self, roster: Roster) -> None:
        """From now on claims may name this roster, which the coordinator has signed."""
        self._round, oldest = roster.round, roster.round - self._lag
        rosters = {document: known for document, known in self._rosters.items() if known.round >= oldest}
        self._rosters = rosters | {roster.document: roster}
        self._taken = {key: round_ for key, round_ in self._taken.items() if round_ >= oldest}

    def may_take(self, entry: LogEntry) -> bool:
        """Whether an entry may stand in the log: whoever reads that pays for each."""
        said = entry.claim if isinstance(entry, ClaimEntry) else entry
        if isinstance(said, RosterEntry) or said.plan != self._plan.digest:
            return False
        try:
            require_author(entry)
            if isinstance(entry, ClaimEntry):
                self._require_shown(entry)
        except PolError:
            return False
        return True

    def take(self, entry: LogEntry) -> bool:
        """Whether the log takes an entry now, which may stand in it: it isn't there yet."""
        keys: list[object] = [entry]
        if isinstance(entry, ClaimEntry):
            # One claim once, whatever objects a copy names; and two claims for a place show all that more would.
            place = ClaimPlace(entry.worker, *entry.claim.place)
            keys = [entry.claim.digest, (place, (place, 0) in self._taken)]
        if any(key in self._taken for key in keys):
            return False
        self._taken |= dict.fromkeys(keys, self._round)
        return True

    def holds(self, entry: ClaimEntry) -> bool:
        """Whether the log has this claim: a third one for a place has none, so its receipt would be a lie."""
        return entry.claim.digest in self._taken

    def covers(self, entry: ClaimEntry) -> bool:
        """Whether the log has all claims that this one names as its sources: its receipt promises them as well."""
        try:
            sources = sources_of_copy(self._store, entry)
        except PolError:
            return False
        return all(source.claim == INITIAL or source.claim in self._taken for source in sources)

    def admitted(self, sent: Iterable[tuple[str, bytes]]) -> list[LogEntry]:
        """What the log takes of the entries that members of the newest round, by their names, bring at its end.

        A claim is taken as its author sends it, if it does: nobody's signature covers which objects an entry names.
        """
        given = [(sender, entry) for sender, data in sent if (entry := self._of_member(data)) is not None]
        own = {e.claim.digest for sender, e in given if isinstance(e, ClaimEntry) and sender == e.worker}
        known = {entry.claim.digest for _, entry in given if isinstance(entry, ClaimEntry)} | self._taken.keys()
        found = []
        for sender, entry in given:
            is_copy = isinstance(entry, ClaimEntry) and sender != entry.worker and entry.claim.digest in own
            # Receipts of what isn't there say nothing, and anybody can sign any number of them.
            is_empty = isinstance(entry, DeliveryEntry) and entry.claim not in known
            if not is_copy and not is_empty and self.take(entry):
                found.append(entry)
        return found

    def _of_member(self, data: bytes) -> LogEntry | None:
        try:
            entry = decode_entry(data)
        except ProtocolError:
            return None
        if not isinstance(entry, (ClaimEntry, RosterEntry)):
            author = entry.receiver if isinstance(entry, DeliveryEntry) else getattr(entry, "worker", None)
            *_, roster = self._rosters.values()
            # A member leaves before the round to come, and says so in this one.
            if entry.round > roster.round + 1 or author not in (None, *(member.worker for member in roster.members)):
                return None
        return entry if self.may_take(entry) else None

    def _require_shown(self, entry: ClaimEntry) -> None:
        roster = self._rosters.get(entry.claim.roster)
        if roster is None or roster.round != entry.claim.round:
            raise ProtocolError(f"{entry.worker} names another roster than that of its round: leave its claim out")
        place = ClaimPlace(entry.worker, *entry.claim.place)
        require_place(self._plan, roster, place)
        if (place, False) in self._taken:
            return  # the second claim for a place is a lie, whatever it shows
        end_of_copy(self._store, entry)
        sources_of_copy(self._store, entry)
