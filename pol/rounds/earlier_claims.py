"""Rounds before a restart, as the log and the store have them: for processes that go on from there."""

from __future__ import annotations

from collections.abc import Collection

from pol.arithmetic.primitives import Words
from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.claim_replay import PublishedTensors
from pol.rounds.auditing.roster_rules import final_of
from pol.rounds.claim_author import MadeClaim
from pol.rounds.log.log_entries import ClaimEntry, RosterEntry, require_author
from pol.rounds.log.logged_rounds import LoggedRounds, is_signed, read_rounds
from pol.rounds.log.rounds_log import load_head, read_entries
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Roster
from pol.rounds.round_claim import BoundSlot
from pol.training.storage.store import Store


def published_claim(rounds: LoggedRounds, entry: ClaimEntry) -> MadeClaim:
    """A claim with the slots of its end that can be read; ``rounds`` have its sources, which hold what it keeps.

    Raises:
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


def require_logged(store: Store, worker: str, roster: Roster | None, claims: Collection[bytes]) -> None:
    """Check that the log has the final ``roster`` of the round before, as a worker knows it, and its ``claims``."""
    if roster is None:
        return
    _, head = load_head(store)
    entries = list(read_entries(store, head, roster.round, roster.round))
    own = {e.claim.digest for e in entries if isinstance(e, ClaimEntry) and e.worker == worker and is_signed(e)}
    if missing := set(claims) - own:
        raise ProtocolError(
            f"the log is without {len(missing)} claims of round {roster.round} that {worker} has handed in: stop here, "
            "as nobody could count them"
        )
    if roster.document.hex() not in {entry.document for entry in entries if isinstance(entry, RosterEntry)}:
        raise ProtocolError(
            f"the log has another roster of round {roster.round} than the one that {worker} was shown: keep both, and "
            "stop here"
        )


class EarlierClaims:
    """Rosters and claims of the rounds before ``round_``, ``lag`` of them; of the claims those that are asked for."""

    def __init__(self, store: Store, round_: int, lag: int = 1) -> None:
        self.rounds = read_rounds(store, *load_head(store), max(0, round_ - lag))
        """What the log has of them, and of those that follow."""
        self.rosters: dict[int, Roster] = {}
        for before in range(max(0, round_ - lag), round_):
            rosters = final_of(self.rounds.rosters.get(before, ()))
            if len(rosters) != 1:
                raise ProtocolError(
                    f"the log in {store.url} has {len(rosters)} final rosters of round {before}: put back its newest "
                    "state, or begin a new training in an empty store"
                )
            self.rosters[before] = rosters[0]

    def claim(self, place: ClaimPlace) -> MadeClaim | None:
        """The claim at a place with its tensors, if the log has it.

        Raises:
            OperationalError: its tensors are withheld.
        """
        entry = self.rounds.places.get(place)
        return None if entry is None else published_claim(self.rounds, entry)
