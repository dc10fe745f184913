"""A worker that may join late, leave, die, and come back: it goes on from its journal, the log and the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pol.decentralised.elastic.mailbox import Mailbox
from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.earlier_claims import published_claim, require_logged
from pol.rounds.log.log_entries import (
    Change,
    ClaimEntry,
    DeliveryEntry,
    LogEntry,
    MembershipEntry,
    RosterEntry,
    decode_entry,
    encode_entry,
)
from pol.rounds.log.logged_rounds import LoggedRounds, is_signed, read_rounds, rounds_of
from pol.rounds.log.rounds_log import HEAD, load_head
from pol.rounds.log.worker_journal import WorkerJournal
from pol.rounds.message import decode_message, encode_message, slots_of
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import SHOWN_LIMIT, Roster


class LeftOutError(OperationalError):
    """A round goes on without this worker: it was too slow, or was dead; it may join again."""


class ElasticWorker:
    """The claims of ``author`` in rounds whose members change. A round's function calls `make` and `share`.

    All that it has signed stands in its journal before anybody sees it.
    """

    def __init__(self, author: ClaimAuthor, mailbox: Mailbox) -> None:
        self.author, self.mailbox = author, mailbox
        self.journal = WorkerJournal(author.store, author.plan.digest, author.name)
        self.round = 0

    def take_part(self, do_round: Callable[[ElasticWorker], None], joins: int = 0, leaves: int | None = None) -> None:
        """Take part from round ``joins`` on, or from where it was killed, until before round ``leaves`` or the end."""
        newest = self.mailbox.round
        has_asked = newest < 0 or not self._is_member(newest)
        self.round = max(joins, newest + 1) if has_asked else newest
        if has_asked:
            self.tell(self.round, Change.JOIN)
        while self.round < self.author.plan.rounds:
            roster = self._roster(self.round, final=False)
            if any(member.worker == self.author.name for member in roster.members):
                has_asked = False
                try:
                    self.begin(roster)
                    do_round(self)
                    change = Change.LEAVE if self.round + 1 == leaves else Change.HEARTBEAT
                    self.tell(self.round + 1, change)
                    if change is Change.LEAVE:
                        break
                except LeftOutError:
                    self.tell(self.round + 1, Change.JOIN)
                    has_asked = True
            elif not has_asked:
                self.tell(self.round + 1, Change.JOIN)
                has_asked = True
            self.round += 1
        following = self.round + 1
        self.mailbox.depart(self.author.name, following if following < self.author.plan.rounds else None)

    def begin(self, roster: Roster) -> None:
        """Know what a round's claims start from: one's own claims of the round before, or the first member's."""
        self.round = roster.round
        author, before = self.author, self.round - 1
        author.rosters[self.round] = roster
        author.forget(before)
        self.mailbox.forget(self.round)
        if before < 0:
            return
        author.rosters[before] = self._roster(before, final=True)
        first = author.rosters[before].members[0].worker
        is_joiner = roster.members[roster.place(author.name)].joined == self.round
        # Who stays has handed in all its claims before it has said so; who joins may have none.
        own = [] if is_joiner else [e.claim.digest for e in self.journal.claims if e.claim.round == before]
        require_logged(author.store, author.name, author.rosters[before], own)
        needed = first if is_joiner else author.name
        known = {place.phase for place in author.known if place.worker == needed and place.round == before}
        if known and not is_joiner:
            return
        rounds = self._rounds()
        for place, entry in rounds.places.items():
            if place.worker == needed and place.round == before and self._is_bound(place):
                author.learn(published_claim(rounds, entry))

    def make(self, phase: str, part: int = 0) -> MadeClaim:
        """Run a phase and sign its claim, or take up the one that was signed before a restart."""
        author, round_ = self.author, self.round
        index = author.plan.phase_index(phase, len(author.rosters[round_].members))
        signed = self.journal.claim(round_, index, part)
        if signed is None:
            made = author.make(round_, phase, part)
            self.journal.add(made.entry, author.named(made))
        else:
            made = published_claim(self._rounds(), signed)
            author.learn(made)
        self.hand_in(made.entry)
        return made

    def share(self, made: MadeClaim, slots: Sequence[str]) -> list[MadeClaim]:
        """Show a claim and some slots of its end to all, and take in those of the members of the final roster.

        Raises:
            LeftOutError, ProtocolError, OperationalError: as `gather`.
        """
        self.show(made, slots)
        return self.gather(made, slots)

    def show(self, made: MadeClaim, slots: Sequence[str]) -> None:
        """Show a claim and some slots of its end to all."""
        store, plan = self.author.store, self.author.plan
        phase = plan.phases[made.entry.claim.phase]
        message = encode_message(store, plan, made, slots_of(load_phase(store, phase).names, slots))
        self.mailbox.send(self.round, phase.name, self.author.name, message)

    def gather(self, made: MadeClaim, slots: Sequence[str]) -> list[MadeClaim]:
        """Take in what the members of the final roster show, when it is there.

        Raises:
            LeftOutError: the final roster is without this worker.
            OperationalError: a message or the final roster doesn't come.
        """
        author, claim = self.author, made.entry.claim
        phase = author.plan.phases[claim.phase]
        numbers = slots_of(load_phase(author.store, phase).names, slots)
        roster = self._roster(self.round, final=True)
        self._keep_receipt(claim.digest)
        if all(member.worker != author.name for member in roster.members):
            raise LeftOutError(f"round {self.round} goes on without {author.name}: join again")
        author.rosters[self.round] = roster
        found = []
        for member in roster.members:
            if member.worker == author.name:
                found.append(made)
                continue
            message = self._message(ClaimPlace(member.worker, *claim.place), numbers)
            author.learn(message)
            self.hand_in(message.entry)  # who binds to a claim enters it
            found.append(message)
        return found

    def _message(self, place: ClaimPlace, slots: Sequence[int]) -> MadeClaim:
        """What a member of the final roster shows, or has published: anybody can put anything over its message."""
        store, plan = self.author.store, self.author.plan
        data = self.mailbox.message(place.round, plan.phases[place.phase].name, place.worker)
        try:
            message = decode_message(store, plan, data, slots)
            if ClaimPlace(message.entry.worker, *message.entry.claim.place) == place:
                return message
            raise ProtocolError(f"{place.worker} has sent a message of another worker, round or phase")
        except ProtocolError:
            rounds = self._rounds()
            if place not in rounds.places:
                raise
            return published_claim(rounds, rounds.places[place])

    def hand_in(self, entry: LogEntry) -> None:
        """Bring an entry to the log's keeper."""
        self.mailbox.hand_in(encode_entry(entry))

    def _is_bound(self, place: ClaimPlace) -> bool:
        """Whether a phase of the plan goes on from this one in the next round."""
        name = self.author.plan.phases[place.phase].name
        return any(rule.phase == name and rule.lag for phase in self.author.plan.phases for rule in phase.sources)

    def _rounds(self) -> LoggedRounds:
        """What the log has of these rounds, and one's own journal."""
        author = self.author
        entries: list[LogEntry] = []
        if author.store.holds(HEAD):
            plan, head = load_head(author.store)
            entries += read_rounds(author.store, plan, head, max(0, self.round - 1)).entries
        known: list[LogEntry] = [made.entry for made in author.known.values()]
        journal: list[ClaimEntry] = self.journal.claims
        return rounds_of(author.store, author.plan, [*entries, *known, *journal], is_whole=False)

    def _is_member(self, round_: int) -> bool:
        final = self.mailbox.has_roster(round_, final=True)
        return any(member.worker == self.author.name for member in self._roster(round_, final).members)

    def _roster(self, round_: int, final: bool) -> Roster:
        entry = decode_entry(self.mailbox.roster(round_, final))
        if not isinstance(entry, RosterEntry):
            raise ProtocolError(f"the notice of round {round_} is no roster: leave this training alone")
        author = self.author
        data = author.store.get(entry.document, limit=SHOWN_LIMIT)  # a claim under a longer one can't be defended
        roster = Roster.decode_signed(data, author.plan.digest, author.plan.coordinator, entry.signature)
        if roster is None or roster.round != round_ or roster.provisional is final:
            raise ProtocolError(
                f"the coordinator hasn't signed this roster for round {round_}: leave this training alone"
            )
        self.journal.see(roster, entry.signature)
        return roster

    def _keep_receipt(self, claim: bytes) -> None:
        data = self.mailbox.receipt(claim)
        try:
            entry = None if data is None else decode_entry(data)
        except ProtocolError:  # anybody can put anything there
            return
        by = (self.author.plan.coordinator, self.author.plan.digest, claim)
        if isinstance(entry, DeliveryEntry) and (entry.receiver, entry.plan, entry.claim) == by and is_signed(entry):
            self.journal.add(entry)

    def tell(self, round_: int, change: Change) -> None:
        """Join, leave or stay: signed, and handed in."""
        author = self.author
        self.hand_in(MembershipEntry.signed(author.key, author.plan.digest, round_, change))
