"""A claim as its author has published it: for whoever goes on from it after a restart, or joins."""

from __future__ import annotations

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError
from pol.rounds.auditing.claim_replay import PublishedTensors
from pol.rounds.claim_author import MadeClaim
from pol.rounds.log.log_entries import ClaimEntry, require_author
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.round_claim import BoundSlot


def published_claim(rounds: LoggedRounds, entry: ClaimEntry) -> MadeClaim:
    """A claim with the slots of its end that can be read; ``rounds`` have its sources, which hold what it keeps.

    Raises:
        ProtocolError: it isn't signed by its author.
        OperationalError: its end is withheld.
    """
    require_author(entry)
    tensors, end = PublishedTensors(rounds), rounds.end(entry)
    words: dict[int, Words] = {}
    for slot, shown in enumerate(end):
        try:
            words[slot] = tensors.of(BoundSlot(entry.claim.digest, slot, shown.root))
        except OperationalError:
            if shown.is_held:
                raise
    return MadeClaim(entry, tuple(end), words)
