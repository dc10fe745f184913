"""A server that merges messages in the order in which they arrive, and the workers that send them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.decentralised.processes.exchange import Exchange
from pol.errors import OperationalError, ProtocolError
from pol.rounds.admission import Admission, HasStake, anybody, require_showable, sign_roster
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.earlier_claims import EarlierClaims
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, decode_entry, encode_entry
from pol.rounds.log.worker_journal import WorkerJournal
from pol.rounds.message import decode_message, encode_message, slots_of
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import ROSTER_LIMIT, Arrival, Member, Roster
from pol.rounds.worker_key import require_signed


@dataclass(frozen=True)
class Sent:
    """A phase, and the slots of its end that a message brings."""

    phase: str
    slots: tuple[str, ...]

    def encode(self, author: ClaimAuthor, made: MadeClaim) -> bytes:
        """The message of a claim."""
        return encode_message(author.store, author.plan, made, self._numbers(author))

    def decode(self, author: ClaimAuthor, data: bytes) -> MadeClaim:
        """The claim in a message, checked."""
        made = decode_message(author.store, author.plan, data, self._numbers(author))
        claim, phase = made.entry.claim, author.plan.phases[made.entry.claim.phase]
        if phase.name != self.phase or claim.part + 1 != phase.parts:
            raise ProtocolError(f"{claim.worker} has sent another message than the last one of phase {self.phase}")
        return made

    def _numbers(self, author: ClaimAuthor) -> list[int]:
        phase = next(phase for phase in author.plan.phases if phase.name == self.phase)
        return slots_of(load_phase(author.store, phase).names, self.slots)


END = b"end"
"""Stands for the receipt of what isn't taken, and for the round after the last one."""


class ArrivalServer:
    """The first process, which is the coordinator: it promises each arrival a round, and a round takes ``quorum``.

    What started more than ``staleness`` rounds before isn't taken. ``merge`` and ``message`` are the phases of server
    and workers with the slots of their ends that the others get. ``has_stake`` is as in `RosterCoordinator`.

    A promise stands in the journal before anybody sees it. A server that was killed goes on from its log, with the
    promises that it has given, when it is started again with its workers.
    """

    def __init__(
        self,
        author: ClaimAuthor,
        exchange: Exchange,
        members: Sequence[Member],
        merge: Sent,
        message: Sent,
        quorum: int,
        staleness: int,
        has_stake: HasStake = anybody,
    ) -> None:
        self.author, self._exchange, self._members = author, exchange, tuple(members)
        self._merge, self._message = merge, message
        self._quorum, self._staleness, self._has_stake = quorum, staleness, has_stake
        self._keeper = JournaledKeeper(author.store, author.plan.digest, author.key)
        self._admission = Admission(author.store, author.plan, self._keeper.entries(), max(1, staleness))
        self._working = exchange.size - 1
        self._round = 0
        self._promises: dict[tuple[str, int], DeliveryEntry] = {}
        """Receipts by a claim's worker and round: a worker that was started again sends what it has sent before."""

    def serve(self) -> None:
        """Train all rounds of the plan. Raises OperationalError: too few workers are left, or the store failed."""
        waiting = list(range(1, self._exchange.size))
        last = self._keeper.last_roster()
        version, queue = (self._merged(()), []) if last is None else self._taken_up(last)
        for round_ in range(self._round + 1, self.author.plan.rounds):
            self._round = round_
            for process in waiting:
                self._send(version, process)
            waiting = []
            while len(queue) < self._quorum:
                if self._working < self._quorum:
                    raise OperationalError(f"{self._working} workers are left for a quorum of {self._quorum}: stop")
                process, arrival = self._arrival(version)
                if arrival is not None:
                    waiting.append(process)
                    if arrival not in queue:
                        queue.append(arrival)
            self._exchange.settle()
            version, queue = self._merged(self.choose(queue)), []
        for process in waiting:
            self._exchange.post(END, process)
        for _ in range(self._working - len(waiting)):  # what they send comes too late
            process, _ = self._exchange.take_any()
            self._exchange.take(process)
            self._dismiss(process)
        self._exchange.settle()

    def choose(self, queue: Sequence[Arrival]) -> tuple[Arrival, ...]:
        """The arrivals that a round takes: those that it was promised to, in their order."""
        return tuple(queue)

    def _merged(self, arrivals: tuple[Arrival, ...]) -> list[bytes]:
        """The round's roster and merge, which go into the log; what a worker gets of them."""
        author = self.author
        roster = Roster(author.plan.digest, self._round, self._members, arrivals=arrivals)
        signature = sign_roster(roster, author.key, self._has_stake)
        author.rosters[self._round] = roster
        self._admission.begin(roster)
        author.forget(self._round - max(1, self._staleness))
        oldest = self._round - self._staleness
        self._promises = {place: receipt for place, receipt in self._promises.items() if place[1] >= oldest}
        self._enter(RosterEntry(author.store.put(roster.encode()), signature))
        made = author.make(self._round, self._merge.phase)
        self._enter(made.entry)
        self._keeper.publish([])
        return [roster.encode(), signature, self._merge.encode(author, made)]

    def _taken_up(self, last: RosterEntry) -> tuple[list[bytes], list[Arrival]]:
        """After a restart: the newest merge, as a worker gets it, and the arrivals that the next round has promised."""
        author, keeper = self.author, self._keeper
        if keeper.unpublished:
            keeper.publish([])
        roster = Roster.decode(author.store.get(last.document, limit=ROSTER_LIMIT))
        self._round = roster.round
        before = EarlierClaims(author.store, roster.round + 1, max(1, self._staleness))
        author.rosters |= before.rosters
        author.recall = before.claim
        made = before.claim(
            ClaimPlace(author.name, roster.round, author.plan.phase_index(self._merge.phase, len(roster.members)), 0)
        )
        if made is None:
            raise ProtocolError(f"the log in {author.store.url} has a roster of round {roster.round} without its merge")
        queue = []
        for receipt in before.rounds.entries:
            if isinstance(receipt, DeliveryEntry) and receipt.receiver == author.name:
                claim = before.rounds.claims[receipt.claim].claim
                self._promises[claim.worker, claim.round] = receipt
                if receipt.round > roster.round:
                    queue.append(Arrival(roster.place(claim.worker), claim.round))
        return [roster.encode(), last.signature, self._merge.encode(author, made)], queue

    def _arrival(self, version: Sequence[bytes]) -> tuple[int, Arrival | None]:
        """The next arrival with its process, also one that this round has; or None for one that it doesn't take."""
        process, entry = self._exchange.take_any()
        message = self._exchange.take(process)
        author = self.author
        try:
            earlier, made = decode_entry(entry), self._message.decode(author, message)
            place = author.rosters[self._round - 1].place(made.entry.worker)
            if not isinstance(earlier, ClaimEntry) or earlier.worker != made.entry.worker:
                raise ProtocolError("a worker sends the claim of its steps with its message: leave it out")
        except ProtocolError:
            self._leave_out(process)
            return process, None
        claim = made.entry.claim
        receipt = self._promises.get((claim.worker, claim.round))
        if receipt is not None and receipt.claim != claim.digest:
            if self._admission.may_take(made.entry):
                self._enter(made.entry)  # two claims for one place: the log shows the lie
            self._leave_out(process)
            return process, None
        if not 1 <= self._round - claim.round <= self._staleness:
            self._exchange.post(END, process)
            self._send(version, process)
            return process, None
        if receipt is None and not self._have_entered(earlier, made.entry):
            self._leave_out(process)
            return process, None
        if receipt is None:
            author.learn(made)
            receipt = DeliveryEntry.signed(author.key, author.plan.digest, self._round, claim.digest)
            self._enter(receipt)
            self._keeper.keep([])
            self._promises[claim.worker, claim.round] = receipt
        self._exchange.post(encode_entry(receipt), process)
        if receipt.round < self._round:  # a round takes a claim once
            self._send(version, process)
            return process, None
        return process, Arrival(place, claim.round)

    def _have_entered(self, earlier: ClaimEntry, message: ClaimEntry) -> bool:
        """Enter a message and the steps that it follows from, if they have a place: its receipt promises both."""
        if not all(map(self._admission.may_take, (earlier, message))):
            return False
        for entry in (earlier, message):
            self._enter(entry)
        return self._admission.holds(message) and self._admission.covers(message)

    def _enter(self, entry: LogEntry) -> None:
        if self._admission.take(entry):
            self._keeper.append(entry, self._round)

    def _send(self, version: Sequence[bytes], process: int) -> None:
        for data in version:
            self._exchange.post(data, process)

    def _leave_out(self, process: int) -> None:
        self._working -= 1
        self._dismiss(process)

    def _dismiss(self, process: int) -> None:
        self._exchange.post(END, process)
        self._exchange.post(END, process)


class ArrivalWorker:
    """A worker: it runs ``steps`` from the newest weights and sends ``message`` as soon as it is ready."""

    def __init__(self, author: ClaimAuthor, exchange: Exchange, merge: Sent, steps: str, message: Sent) -> None:
        self.author, self._exchange = author, exchange
        self._merge, self._steps, self._message = merge, steps, message
        self.journal = WorkerJournal(author.store, author.plan.digest, author.name)
        """With the server's receipts, which show what it has left out."""

    def work(self) -> None:
        """Take part until the server has no more rounds."""
        author, exchange = self.author, self._exchange
        while (roster := exchange.take(0)) != END:
            round_ = self._begin(roster, exchange.take(0), exchange.take(0))
            steps = author.make(round_, self._steps)
            message = author.make(round_, self._message.phase)
            for made in (steps, message):
                self.journal.add(made.entry, author.named(made))
            exchange.post(encode_entry(steps.entry), 0)
            exchange.post(self._message.encode(author, message), 0)
            exchange.settle()
            if (receipt := exchange.take(0)) != END:
                self.journal.add(self._checked(decode_entry(receipt), message))

    def _begin(self, document: bytes, signature: bytes, merge: bytes) -> int:
        author = self.author
        roster = Roster.decode(document)
        require_signed(roster.digest, signature, author.plan.coordinator, f"the roster of round {roster.round}")
        require_showable(roster)
        self.journal.see(roster, signature)
        made = self._merge.decode(author, merge)
        if made.entry.worker != author.plan.coordinator or made.entry.claim.roster != roster.document:
            raise ProtocolError("the server has sent another merge than that of its roster: keep both, and stop")
        author.forget(roster.round)
        author.rosters[roster.round] = roster
        author.learn(made)
        return roster.round

    def _checked(self, receipt: LogEntry, message: MadeClaim) -> DeliveryEntry:
        if not isinstance(receipt, DeliveryEntry) or receipt.claim != message.entry.claim.digest:
            raise ProtocolError("the server has sent no receipt of the message: send it again")
        require_signed(receipt.digest, receipt.signature, self.author.plan.coordinator, "the receipt")
        return receipt
