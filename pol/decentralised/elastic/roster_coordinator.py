"""Who takes part in which round: rosters from joins, heartbeats and deliveries, and the log. It never waits itself."""

from __future__ import annotations

import logging
from collections.abc import Collection
from itertools import islice

from pol.errors import ProtocolError
from pol.rounds.admission import Admission, HasStake, anybody, require_seats, sign_roster
from pol.rounds.claim_author import MadeClaim
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.log.log_entries import (
    Change,
    ClaimEntry,
    DeliveryEntry,
    LogEntry,
    MembershipEntry,
    RosterEntry,
    decode_entry,
)
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import MAX_MEMBERS, ROSTER_LIMIT, Member, Roster
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

LOG = logging.getLogger(__name__)


class RosterCoordinator:
    """Begins a round with those who have answered, and ends it with those whose messages have come.

    All that it has signed or acknowledged stands in its journal before anybody sees it. One that was killed at any
    point goes on from the log and the journal of its store, and says so in one line. One that has raised is of no use
    any more, and one stops beside which another was started.

    ``seats`` is the number of seats with data; who joins while all are taken waits. Who falls out may join again.
    ``has_stake`` says whether a worker has joined the plan on its chain: a member that hasn't costs the coordinator its
    own stake. Without it anybody may join, so give it for every plan that is on a chain.

    Raises:
        ProtocolError: too many seats, or the log in the store isn't this key's, or doesn't fit its journal: what was
            signed for its rounds isn't known.
    """

    def __init__(
        self, store: Store, plan: RoundsPlan, key: WorkerKey, seats: int, has_stake: HasStake = anybody
    ) -> None:
        self.store, self.plan, self.key, self.seats = store, plan, key, seats
        require_seats(seats)
        self._has_stake = has_stake
        self._keeper = JournaledKeeper(store, plan.digest, key)
        self.roster: Roster | None = None
        """The newest roster."""
        self._joining: dict[str, MembershipEntry] = {}
        self._answers: dict[str, MembershipEntry] = {}
        self._delivered: set[str] = set()
        self._lost: set[str] = set()
        self._admission = Admission(store, plan)
        """It has the rosters of this round and the one before: what is of another one isn't taken in."""
        self._workers: set[str] = set()
        self._joins_from: dict[str, int] = {}
        """The first round that a worker may ask for: anybody can hand in again what it has asked for before."""
        self._expected: dict[str, int] = {}
        """The rounds from which workers will take part that haven't asked to yet."""
        if len(self._keeper) or self._keeper.notices:
            self._resume()

    @property
    def round(self) -> int:
        """The newest round, -1 before the first."""
        return -1 if self.roster is None else self.roster.round

    @property
    def is_begun(self) -> bool:
        """Whether the newest round has begun, and hasn't ended."""
        return self.roster is not None and self.roster.provisional

    @property
    def silent(self) -> list[str]:
        """The members that haven't said yet whether they stay, and who is expected and hasn't asked to join yet."""
        late = [worker for worker, first in self._expected.items() if first <= self.round + 1]
        return self._without(self._answers) + [worker for worker in late if worker not in self._joining]

    @property
    def delivered(self) -> int:
        """How many messages have come in this round."""
        return len(self._delivered)

    @property
    def owing(self) -> list[str]:
        """The members whose messages haven't come yet."""
        return self._without(self._delivered)

    @property
    def admits(self) -> bool:
        """Whether workers can join: they go on from the first member's merge, which it has made when it answers."""
        return self.roster is None or self.roster.members[0].worker in self._answers

    @property
    def ready(self) -> int:
        """How many members the next round would have."""
        return len(self._next_members())

    def expect(self, worker: str, round_: int) -> None:
        """Wait for a worker that is known to join from a round on, as for a silent member, before this begins."""
        if self.round < round_ < self.plan.rounds and worker not in self._workers:
            self._expected[worker] = round_

    def lose(self, worker: str) -> None:
        """Wait no longer for a worker that is known to be dead, until it joins again."""
        self._lost.add(worker)

    def take(self, data: bytes) -> None:
        """Take in what somebody has handed in; anything but a signed entry of this plan and round is left alone."""
        try:
            entry = decode_entry(data)
        except ProtocolError:
            return
        if not self._admission.may_take(entry):
            return
        if isinstance(entry, ClaimEntry):
            self._enter(entry)
        elif isinstance(entry, MembershipEntry):
            if entry.change is Change.JOIN:
                if entry.round >= self._joins_from.get(entry.worker, 0) and self._has_stake(entry.worker):
                    self._joining[entry.worker] = entry
                    self._lost.discard(entry.worker)
            elif entry.round == self.round + 1 and entry.worker in self._workers:
                self._answers[entry.worker] = entry

    def deliver(self, message: MadeClaim) -> DeliveryEntry | None:
        """The signed receipt of a member's checked message, shown after `keep`.

        Nothing if it comes too late, or before the claims that it follows from: the receipt promises that the log has
        them as well.
        """
        entry, roster = message.entry, self.roster
        if roster is None or not roster.provisional or entry.claim.roster != roster.document:
            return None
        if not self._admission.may_take(entry) or not self._admission.covers(entry):
            return None
        self._enter(entry)
        if not self._admission.holds(entry):
            return None
        self._delivered.add(entry.worker)
        receipt = DeliveryEntry.signed(self.key, self.plan.digest, roster.round, entry.claim.digest)
        self._enter(receipt)
        return receipt

    def begin_round(self) -> RosterEntry:
        """Sign the provisional roster of the next round."""
        members = tuple(member for member in self._next_members() if self._has_stake(member.worker))
        if not members:
            raise ProtocolError(f"nobody takes part in round {self.round + 1}: start workers, or be more patient")
        roster = Roster(self.plan.digest, self.round + 1, members, provisional=True)
        self._enter_memberships(roster)
        return self._sign(roster)

    def end_round(self) -> RosterEntry:
        """Sign the final roster of this round. Raises ProtocolError: no message has come."""
        if self.roster is None or not self._delivered:
            raise ProtocolError(f"nobody has sent a message in round {self.round}: be more patient, or begin again")
        return self._sign(self.roster.ended(self._final_members(self.roster)))

    def keep(self) -> None:
        """Write to disk what was taken in."""
        self._keeper.keep(self._notices)

    def publish(self) -> None:
        """Show the log as it is now."""
        self._keeper.publish(self._notices)

    @property
    def _notices(self) -> list[MembershipEntry]:
        """What is kept beside the log; of joins no more than may wait: anybody can send any number of them."""
        return [*islice(self._joining.values(), MAX_MEMBERS), *self._answers.values()]

    def _resume(self) -> None:
        """Take up what was signed and taken in before a restart, and publish what is in the journal alone."""
        authors: dict[bytes, str] = {}
        for entry in self._keeper.entries():
            self._admission.take(entry)
            match entry:
                case RosterEntry():
                    self._know(self._own_roster(entry))
                case ClaimEntry():
                    authors[entry.claim.digest] = entry.worker
                case DeliveryEntry() if entry.receiver == self.key.name and entry.round == self.round:
                    self._delivered.add(authors[entry.claim])
        for notice in self._keeper.notices:
            if isinstance(notice, MembershipEntry):
                (self._joining if notice.change is Change.JOIN else self._answers)[notice.worker] = notice
        state = "before its first round" if self.roster is None else f"in round {self.round}"
        LOG.warning(
            "the coordinator goes on %s%s; entries in its log: %d, of them from its journal alone: %d; notices: %d",
            state,
            f", which has begun (messages: {self.delivered})" if self.is_begun else "",
            len(self._keeper),
            self._keeper.unpublished,
            len(self._keeper.notices),
        )
        if self._keeper.unpublished:
            self.publish()

    def _own_roster(self, entry: RosterEntry) -> Roster:
        data = self.store.get(entry.document, limit=ROSTER_LIMIT)
        roster = Roster.decode_signed(data, self.plan.digest, self.key.name, entry.signature)
        if roster is None:
            raise ProtocolError(f"the log in {self.store.url} has a roster of another coordinator: give its key")
        return roster

    def _without(self, heard: Collection[str]) -> list[str]:
        members = () if self.roster is None else self.roster.members
        return [member.worker for member in members if member.worker not in heard and member.worker not in self._lost]

    def _final_members(self, begun: Roster) -> tuple[Member, ...]:
        return tuple(member for member in begun.members if member.worker in self._delivered)

    def _next_members(self) -> tuple[Member, ...]:
        """Who stays, in the order of before, then who joins, in the order of arrival, on the least free seats."""
        before = () if self.roster is None else self.roster.members
        said = {worker: entry.change for worker, entry in self._answers.items()}
        staying = [member for member in before if said.get(member.worker) is Change.HEARTBEAT]
        if not self.admits:
            return tuple(staying)
        taken, round_ = {member.seat for member in staying}, self.round + 1
        free = iter([seat for seat in range(self.seats) if seat not in taken])
        staying_names = {member.worker for member in staying}
        asked = [entry for entry in self._joining.values() if entry.round <= round_]
        joining = [entry.worker for entry in asked if entry.worker not in staying_names]
        joined = [Member(worker, seat, round_) for worker, seat in zip(joining, free, strict=False)]
        return (*staying, *joined)

    def _enter_memberships(self, roster: Roster) -> None:
        """Enter the answers and the joins that a roster rests on."""
        for answer in self._answers.values():
            self._enter(answer)
        for member in roster.members:
            join = self._joining.pop(member.worker, None)
            if join is not None and member.joined == roster.round:
                self._enter(join)
        self._answers = {}

    def _sign(self, roster: Roster) -> RosterEntry:
        entry = RosterEntry(self.store.put(roster.encode()), sign_roster(roster, self.key))  # stakes: `take` asks
        self._know(roster)
        self._enter(entry)
        self.publish()
        return entry

    def _know(self, roster: Roster) -> None:
        """Go on from a signed roster, the newest."""
        if roster.round > self.round:
            self._delivered = set()
        self._admission.begin(roster)
        self.roster = roster
        self._workers.update(member.worker for member in roster.members)
        self._joins_from |= {m.worker: m.joined + 1 for m in roster.members if m.joined == roster.round}
        self._expected = {worker: first for worker, first in self._expected.items() if first > roster.round}

    def _enter(self, entry: LogEntry) -> None:
        """Append an entry once: a worker that was killed hands in again what it has signed before."""
        if self._admission.take(entry):
            self._keeper.append(entry, max(0, self.round))
