"""The coordinator's loop: it waits for members as long as it has patience, and goes on with those that live."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.earlier_claims import published_claim
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, RosterEntry, encode_entry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head
from pol.rounds.message import decode_message, encode_message, slots_of

_PAUSE = 0.005


@dataclass(frozen=True)
class Patience:
    """Seconds that silent members are waited for in a round, seconds until a round without ``least`` members fails."""

    members: float = 30.0
    least: int = 1
    limit: float = 600.0


def coordinate(
    coordinator: RosterCoordinator,
    mailbox: Mailbox,
    shared: tuple[str, Sequence[str]],
    patience: Patience,
    between: Callable[[], None] = lambda: None,
) -> None:
    """All rounds of a plan that are left. ``shared`` are the phase whose messages end a round, and a message's slots.

    ``between`` is called whenever the loop has waited a little.
    """
    post = Reception(coordinator, mailbox, *shared)

    def wait(is_done: Callable[[float], bool], what: str) -> None:
        began = time.monotonic()
        while not is_done(time.monotonic() - began):
            if time.monotonic() - began > patience.limit:
                raise OperationalError(f"{what} in {patience.limit:.0f} s: start more workers, or allow more time")
            between()
            time.sleep(_PAUSE)
            post.read()

    def may_begin(waited: float) -> bool:
        is_settled = not coordinator.silent or waited > patience.members
        enough = coordinator.ready >= patience.least or not coordinator.admits
        return is_settled and enough and coordinator.ready > 0

    def may_end(waited: float) -> bool:
        return coordinator.delivered > 0 and (not coordinator.owing or waited > patience.members)

    post.restore()
    while coordinator.is_begun or coordinator.round + 1 < coordinator.plan.rounds:
        if not coordinator.is_begun:
            wait(may_begin, f"round {coordinator.round + 1} has too few members")
            mailbox.announce(coordinator.round + 1, encode_entry(coordinator.begin_round()), final=False)
            post.begin()
        wait(may_end, f"no message has come in round {coordinator.round}")
        mailbox.announce(coordinator.round, encode_entry(coordinator.end_round()), final=True)
    wait(lambda waited: waited > patience.members or not coordinator.silent, "members are silent")
    coordinator.publish()
    mailbox.close()


class Reception:
    """What comes to a coordinator: what is handed in, and the messages of ``phase`` with these slots."""

    def __init__(self, coordinator: RosterCoordinator, mailbox: Mailbox, phase: str, slots: Sequence[str]) -> None:
        self._coordinator, self._mailbox, self._phase = coordinator, mailbox, phase
        plan = coordinator.plan
        self._index = next(at for at, one in enumerate(plan.phases) if one.name == phase)
        self._slots = slots_of(load_phase(coordinator.store, plan.phases[self._index]).names, slots)

    def begin(self) -> None:
        """A new round."""
        coordinator = self._coordinator
        self._mailbox.expect(coordinator.round, self._phase, coordinator.owing)

    def restore(self) -> None:
        """Show what workers need of the last two rounds: a mailbox is empty when its coordinator was started again."""
        coordinator, mailbox = self._coordinator, self._mailbox
        if coordinator.roster is None:
            mailbox.open()
            return
        plan, head = load_head(coordinator.store)
        rounds = read_rounds(coordinator.store, plan, head, max(0, coordinator.round - 1))
        receipts = (entry for entry in rounds.entries if isinstance(entry, DeliveryEntry))
        for receipt in receipts:
            if receipt.receiver == coordinator.key.name and receipt.round >= coordinator.round - 1:
                mailbox.acknowledge(receipt.claim, encode_entry(receipt), receipt.round)
                self._send_again(rounds, rounds.claims[receipt.claim])
        rosters = {roster.document.hex(): roster for rosters in rounds.rosters.values() for roster in rosters}
        for entry in rounds.entries:
            if isinstance(entry, RosterEntry) and entry.document in rosters:
                roster = rosters[entry.document]
                mailbox.show(roster.round, encode_entry(entry), final=not roster.provisional)
        mailbox.open(coordinator.round)  # last: who asks for the newest round takes no older one for it

    def _send_again(self, rounds: LoggedRounds, entry: ClaimEntry) -> None:
        """Show the message of an acknowledged claim: who has sent it may be gone."""
        with suppress(OperationalError):  # its author doesn't publish: only the author can show it again
            made = published_claim(rounds, entry)
            if all(slot in made.words for slot in self._slots):
                message = encode_message(rounds.store, rounds.plan, made, self._slots)
                self._mailbox.send(entry.claim.round, self._phase, entry.worker, message)

    def read(self) -> None:
        """Take in all that has come; what isn't its sender's message is taken away."""
        coordinator, mailbox = self._coordinator, self._mailbox
        about, owing = (coordinator.round, self._phase), sorted(coordinator.owing)
        # Looked for first: what a message follows from is handed in before it is sent.
        senders = [worker for worker in owing if mailbox.has_message(*about, worker)]
        if handed_in := mailbox.handed_in():
            for data in handed_in:
                coordinator.take(data)
            coordinator.keep()
        receipts = []
        for worker in senders:
            try:
                data = mailbox.message(*about, worker)
                message = decode_message(coordinator.store, coordinator.plan, data, self._slots)
            except ProtocolError:
                mailbox.refuse(*about, worker)
                continue
            claim = message.entry.claim
            is_own = message.entry.worker == worker and claim.place == (coordinator.round, self._index, 0)
            receipt = coordinator.deliver(message) if is_own else None
            if receipt is None:
                mailbox.refuse(*about, worker)
            else:
                receipts.append(receipt)
        if receipts:
            coordinator.keep()  # once for all: it writes the notices of all members
        for receipt in receipts:
            mailbox.acknowledge(receipt.claim, encode_entry(receipt), receipt.round)
