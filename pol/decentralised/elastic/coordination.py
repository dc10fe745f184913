"""The coordinator's loop: it waits for members as long as it has patience, and goes on with those that live."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pol.decentralised.elastic.mailbox import Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.log.log_entries import encode_entry
from pol.rounds.message import decode_message, slots_of

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
    """All rounds of a plan. ``shared`` are the phase whose messages end a round, and the slots that a message brings.

    ``between`` is called whenever the loop has waited a little.

    Raises:
        ProtocolError: nobody takes part.
        OperationalError: a round hasn't enough members, or the store failed.
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
        return post.delivered > 0 and (not coordinator.owing or waited > patience.members)

    for _ in range(coordinator.round + 1, coordinator.plan.rounds):
        wait(may_begin, f"round {coordinator.round + 1} has too few members")
        mailbox.announce(coordinator.round + 1, encode_entry(coordinator.begin_round()), final=False)
        post.begin()
        wait(may_end, f"no message has come in round {coordinator.round}")
        mailbox.announce(coordinator.round, encode_entry(coordinator.end_round()), final=True)
    wait(lambda waited: waited > patience.members or not coordinator.silent, "members are silent")
    coordinator.publish()


class Reception:
    """What comes to a coordinator: what is handed in, and the messages of ``phase`` with these slots."""

    def __init__(self, coordinator: RosterCoordinator, mailbox: Mailbox, phase: str, slots: Sequence[str]) -> None:
        self._coordinator, self._mailbox, self._phase = coordinator, mailbox, phase
        plan = coordinator.plan
        self._index = next(at for at, one in enumerate(plan.phases) if one.name == phase)
        self._slots = slots_of(load_phase(coordinator.store, plan.phases[self._index]).names, slots)
        self._refused: set[str] = set()
        self.delivered = 0

    def begin(self) -> None:
        """A new round."""
        self._refused, self.delivered = set(), 0

    def read(self) -> None:
        """Take in all that has come; a message that isn't what its sender has signed counts as none."""
        coordinator, mailbox = self._coordinator, self._mailbox
        for data in mailbox.handed_in():
            coordinator.take(data)
        for worker in set(coordinator.owing) - self._refused:
            if not mailbox.has_message(coordinator.round, self._phase, worker):
                continue
            try:
                data = mailbox.message(coordinator.round, self._phase, worker)
                message = decode_message(coordinator.store, coordinator.plan, data, self._slots)
            except ProtocolError:
                self._refused.add(worker)
                continue
            claim = message.entry.claim
            is_own = message.entry.worker == worker and claim.place == (coordinator.round, self._index, 0)
            receipt = coordinator.deliver(message) if is_own else None
            if receipt is None:
                self._refused.add(worker)
            else:
                self.delivered += 1
                mailbox.acknowledge(claim.digest, encode_entry(receipt))
