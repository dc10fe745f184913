"""Whom a coordinator may have in a roster: a chain takes its own stake for any other (docs/spec/rounds.md, "Evidence").

Members show the roster of their claims on a chain: one that is too long to be shown costs them their stakes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pol.errors import ProtocolError
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
