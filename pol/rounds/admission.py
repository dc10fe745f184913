"""Whom and what a coordinator admits: members with stakes into a roster, their own entries into the log.

A chain takes the coordinator's stake for any other member (docs/spec/rounds.md, "Evidence"). Members show the roster of
their claims there: one that is too long to be shown costs them their stakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, LogEntry, RosterEntry, decode_entry
from pol.rounds.log.logged_rounds import is_signed
from pol.rounds.roster import MAX_SEATS, SHOWN_LIMIT, Roster
from pol.rounds.worker_key import WorkerKey

HasStake: TypeAlias = Callable[[str], bool]
"""Whether a worker, by its name, has joined the plan on its chain."""


def anybody(worker: str) -> bool:
    """Whoever asks: for plans that aren't on a chain."""
    del worker
    return True


def require_seats(seats: int) -> None:
    """Check that a roster with so many members can be shown on a chain.

    Raises:
        ProtocolError: it can't.
    """
    if seats > MAX_SEATS:
        raise ProtocolError(f"{seats} seats: members couldn't show their roster on a chain; give {MAX_SEATS} at most")


def require_showable(roster: Roster) -> None:
    """Check that members can show a roster on a chain: nobody signs one that is longer, or a claim under it.

    Raises:
        ProtocolError: they can't.
    """
    size = len(roster.encode())
    if size > SHOWN_LIMIT:
        raise ProtocolError(
            f"the roster of round {roster.round} has {size} bytes, and members can show {SHOWN_LIMIT} on a chain: give "
            "it fewer members, or shorter roles"
        )


def sign_roster(roster: Roster, key: WorkerKey, has_stake: HasStake = anybody) -> bytes:
    """The coordinator's signature of a roster, whose new members are looked up.

    Raises:
        ProtocolError: members couldn't show it on a chain, or one of them has no stake.
        OperationalError: the chain can't say who has.
    """
    require_showable(roster)
    for member in roster.members:
        if member.joined == roster.round and not has_stake(member.worker):
            raise ProtocolError(
                f"{member.worker} has no stake, and would cost the coordinator its own: leave it out of the roster of "
                f"round {roster.round}, or have it join the plan on its chain"
            )
    return key.sign(roster.digest)


def admitted(sent: Iterable[tuple[str, bytes]], roster: Roster) -> list[LogEntry]:
    """What a log takes of the entries that members, by their names, bring at the end of a round.

    Each claim is taken once, as its author sends it if it does: nobody's signature covers which objects an entry names.
    What is no entry, hasn't its author's signature, or is of a stranger, another plan or a round to come is left out.
    """
    taken = [(sender, entry) for sender, data in sent if (entry := _own_entry(data, roster)) is not None]
    claims = {e.claim.digest for sender, e in taken if isinstance(e, ClaimEntry) and sender == e.worker}
    found: dict[object, LogEntry] = {}
    for sender, entry in taken:
        if not isinstance(entry, ClaimEntry):
            found.setdefault(entry, entry)
        elif sender == entry.worker or entry.claim.digest not in claims:
            found.setdefault(entry.claim.digest, entry)
    return list(found.values())


def _own_entry(data: bytes, roster: Roster) -> LogEntry | None:
    try:
        entry = decode_entry(data)
    except ProtocolError:
        return None
    if isinstance(entry, RosterEntry):
        return None
    said = entry.claim if isinstance(entry, ClaimEntry) else entry
    # A member leaves before the round to come, and says so in this one.
    last = roster.round + (not isinstance(entry, ClaimEntry))
    author = entry.receiver if isinstance(entry, DeliveryEntry) else getattr(entry, "worker", None)
    is_member = author is None or any(member.worker == author for member in roster.members)
    is_own = said.plan == roster.plan and said.round <= last and is_member and is_signed(entry)
    return entry if is_own else None
