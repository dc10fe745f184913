"""A worker of a synchronous training in rounds: claims, messages, receipts, and the log of the first process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from pol.decentralised.processes.exchange import Exchange
from pol.errors import ProtocolError
from pol.rounds.admission import Admission, HasStake, anybody, require_showable, sign_roster
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.earlier_claims import EarlierClaims, require_logged
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.log.log_entries import (
    ClaimEntry,
    DeliveryEntry,
    LogEntry,
    MembershipEntry,
    RosterEntry,
    encode_entry,
    join_entries,
    split_entries,
)
from pol.rounds.log.worker_journal import WorkerJournal
from pol.rounds.message import decode_message, encode_message, slots_of
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import ROSTER_LIMIT, Roster
from pol.rounds.worker_key import WorkerKey, require_signed
from pol.training.storage.store import Store


class PhaseWorker(Protocol):
    """What the function of a round asks of its worker, however that finds the others."""

    def make(self, phase: str, part: int = 0) -> MadeClaim:
        """Run a phase and sign its claim."""
        ...

    def share(self, made: MadeClaim, slots: Sequence[str]) -> list[MadeClaim]:
        """Exchange a claim and some slots of its end with all others."""
        ...


def first_round(store: Store, plan: RoundsPlan, coordinator: WorkerKey) -> int:
    """The round that a training begins with, or goes on with after its processes have ended: the first without claims.

    The coordinator's journal is published, for processes to read the rounds before: see `RoundWorker.go_on`.

    Raises:
        ProtocolError, OperationalError: as `JournaledKeeper`.
    """
    keeper = JournaledKeeper(store, plan.digest, coordinator)
    finished = max((entry.claim.round for entry in keeper.entries() if isinstance(entry, ClaimEntry)), default=-1)
    if keeper.unpublished:
        keeper.publish([])
    return finished + 1


class RoundWorker:
    """The claims of ``author`` in a group of processes, one a worker, all at the same round.

    The first process has the coordinator's key: it signs rosters and keeps the log, with a journal. ``has_stake`` is as
    in `RosterCoordinator`. If any process dies, start all again: from `first_round` on they `go_on`, and sign what they
    have signed before.

    Raises:
        ProtocolError, OperationalError: as `JournaledKeeper`.
    """

    def __init__(
        self,
        author: ClaimAuthor,
        exchange: Exchange,
        coordinator: WorkerKey | None = None,
        has_stake: HasStake = anybody,
    ) -> None:
        self.author, self.exchange = author, exchange
        self._coordinator, self._has_stake = coordinator, has_stake
        self._keeper = None if coordinator is None else JournaledKeeper(author.store, author.plan.digest, coordinator)
        entries = () if self._keeper is None else self._keeper.entries()
        self._admission = Admission(author.store, author.plan, entries)
        self._signed = None if self._keeper is None else self._keeper.last_roster()
        """The newest roster that the coordinator has signed."""
        self.journal = WorkerJournal(author.store, author.plan.digest, author.name)
        self._entries: list[LogEntry] = []
        self._received: list[LogEntry] = []
        self._made: set[bytes] = set()
        """Its claims of the round before."""
        self.round = 0
        """The current one."""

    def go_on(self, round_: int) -> None:
        """Know the rounds before this one from the log, as far as sources are asked for.

        Raises:
            ProtocolError, OperationalError: as `EarlierClaims`.
        """
        if round_:
            earlier = EarlierClaims(self.author.store, round_)
            self.author.rosters |= earlier.rosters
            self.author.recall = earlier.claim

    def begun(self, round_: int) -> Roster | None:
        """The roster of a round that the coordinator has signed before a restart: it must not sign another one."""
        newest = self._newest()
        return newest if newest is not None and newest.round == round_ else None

    def begin(self, roster: Roster) -> None:
        """Take part in a round; every process gives the same roster, and the coordinator signs it.

        Raises:
            ProtocolError: the coordinator has signed another one; members couldn't show it on a chain, or one of them
                has no stake; the log is without a claim of the round before.
            OperationalError: another coordinator was started, or the store failed.
        """
        author, self.round = self.author, roster.round
        require_showable(roster)
        own = b"" if self._coordinator is None else self._sign(roster, self._coordinator)
        signature = self.exchange.gather(own)[0]
        require_signed(roster.digest, signature, author.plan.coordinator, f"the roster of round {roster.round}")
        self.journal.see(roster, signature)
        require_logged(author.store, author.name, author.rosters.get(roster.round - 1), self._made)
        self._admission.begin(roster)
        author.rosters[roster.round] = roster
        author.forget(roster.round - 1)

    def enter(self, entry: LogEntry) -> None:
        """Bring an entry into the log when the round ends."""
        self._entries.append(entry)

    def admit(self, notice: MembershipEntry) -> None:
        """Bring the notice of a new member into the log, before the roster that has it; the coordinator does."""
        if self._keeper is not None and self._admission.take(notice):
            self._keeper.append(notice, notice.round)

    def make(self, phase: str, part: int = 0) -> MadeClaim:
        """Run a phase and sign its claim, which goes into the log."""
        made = self.author.make(self.round, phase, part)
        self.journal.add(made.entry, self.author.named(made))
        self._entries.append(made.entry)
        return made

    def share(self, made: MadeClaim, slots: Sequence[str]) -> list[MadeClaim]:
        """Exchange a claim and some slots of its end with all others, and sign a receipt of each that came.

        Raises:
            ProtocolError: a message isn't what its author has signed.
        """
        author = self.author
        store, plan, roster = author.store, author.plan, author.rosters[self.round]
        numbers = slots_of(load_phase(store, plan.phases[made.entry.claim.phase]).names, slots)
        data = encode_message(store, plan, made, numbers)
        found = [decode_message(store, plan, message, numbers) for message in self.exchange.gather(data)]
        for message, member in zip(found, roster.members, strict=True):
            where = ClaimPlace(member.worker, *made.entry.claim.place)
            self._require_place(message, where)
            if member.worker != author.name:
                author.learn(message)
                self._received.append(message.entry)
                digest = message.entry.claim.digest
                self._entries.append(DeliveryEntry.signed(author.key, plan.digest, self.round, digest))
        return found

    def deliver(self, made: MadeClaim, slots: Sequence[str], place: int) -> None:
        """Send a claim and some slots of its end to one member, by its place in the roster."""
        store, plan = self.author.store, self.author.plan
        numbers = slots_of(load_phase(store, plan.phases[made.entry.claim.phase]).names, slots)
        self.exchange.post(encode_message(store, plan, made, numbers), place)

    def accept(self, expected: ClaimPlace, slots: Sequence[str]) -> MadeClaim:
        """The claim that a member delivers next, which has to be this one; its receipt is signed.

        Raises:
            ProtocolError: the message isn't what its author has signed, or another claim.
        """
        author = self.author
        store, plan, roster = author.store, author.plan, author.rosters[self.round]
        numbers = slots_of(load_phase(store, plan.phases[expected.phase]).names, slots)
        message = decode_message(store, plan, self.exchange.take(roster.place(expected.worker)), numbers)
        self._require_place(message, expected)
        author.learn(message)
        if expected.round == self.round:  # one of the round before is in the log
            self._received.append(message.entry)
        self._entries.append(DeliveryEntry.signed(author.key, plan.digest, self.round, message.entry.claim.digest))
        return message

    def finish(self) -> None:
        """Bring what was signed in this round into the log, and what has come and its author leaves out.

        A claim is false if its sources aren't in the log: nobody's claim may depend on another's entry.
        """
        self.exchange.settle()
        roster = self.author.rosters[self.round]
        entered = self._brought([encode_entry(entry) for entry in self._entries], roster)
        known = {data for _, data in entered}
        left_out = [data for data in map(encode_entry, self._received) if data not in known]
        entered += self._brought(left_out, roster)
        own = (entry.claim for entry in self._entries if isinstance(entry, ClaimEntry))
        self._made = {claim.digest for claim in own if claim.worker == self.author.name}
        self._entries, self._received = [], []
        if self._keeper is not None:
            for entry in self._admission.admitted(entered):
                self._keeper.append(entry, self.round)
            self._keeper.publish([])

    def _brought(self, own: Sequence[bytes], roster: Roster) -> list[tuple[str, bytes]]:
        """What each member brings, with the member's name."""
        found = list[tuple[str, bytes]]()
        for member, message in zip(roster.members, self.exchange.gather(join_entries(own)), strict=True):
            with suppress(ProtocolError):  # whoever sends something else brings nothing
                found += [(member.worker, data) for data in split_entries(message, len(message))]
        return found

    def _require_place(self, message: MadeClaim, expected: ClaimPlace) -> None:
        """A claim under a roster of its author's own couldn't be shown on a chain."""
        claim = message.entry.claim
        given = (ClaimPlace(claim.worker, *claim.place), claim.roster)
        if given != (expected, self.author.rosters[expected.round].document):
            raise ProtocolError(f"{expected.worker} has sent a message of another worker, round, phase or roster")

    def _sign(self, roster: Roster, coordinator: WorkerKey) -> bytes:
        """The coordinator's signature, which stands in its journal before anybody sees it."""
        newest = self._newest()
        if self._signed is not None and newest is not None and newest.round >= roster.round:
            if newest.round > roster.round:
                raise ProtocolError(
                    f"round {roster.round} has begun before, and round {newest.round} as well: go on with the one that "
                    "`first_round` gives"
                )
            if newest != roster:
                raise ProtocolError(
                    f"the coordinator has signed another roster for round {roster.round} before it was started again: "
                    "begin the round with that one (`begun`)"
                )
            return self._signed.signature
        signature = sign_roster(roster, coordinator, self._has_stake)
        self._signed = RosterEntry(self.author.store.put(roster.encode()), signature)
        if self._keeper is not None:
            self._keeper.append(self._signed, roster.round)
            self._keeper.keep([])
        return signature

    def _newest(self) -> Roster | None:
        if self._signed is None:
            return None
        return Roster.decode(self.author.store.get(self._signed.document, limit=ROSTER_LIMIT))
