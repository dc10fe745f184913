"""The duty to err: whether a verifier's secret forces an error into its verdict, and how that is disclosed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cached_property

from pol.chain.desks.verdicts import PlacedClaim
from pol.claims.segment_claim import SegmentClaim
from pol.errors import OperationalError, ProtocolError
from pol.incentives.forced_errors import Assignment
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.role import Role
from pol.training.storage.party_database import PartyDatabase

NO_REPLAY = b"\xff" * 32
"""Stands in for an impossible replay: the contract takes any root but zero."""


class SealedRoots:
    """True replay roots behind forced errors, in the table ``sealed_roots``, until disclosure: a replay is long.

    Only the root is kept: the rest of the claim is on chain, and the seal there shows whether the disk has damaged it.
    A disk that fails holds no verdict back: a root that isn't kept is replayed.
    """

    def __init__(self, database: PartyDatabase | None) -> None:
        self._database = database
        self._known: dict[tuple[bytes, int], bytes] = {}
        if database is not None:
            with suppress(OperationalError):
                database.create("sealed_roots (task BLOB, seating INTEGER, root BLOB, PRIMARY KEY (task, seating))")
                for task_id, seating, root in database.rows("SELECT * FROM sealed_roots WHERE length(root) = 32"):
                    self._known[task_id, seating] = root

    def keep(self, task_id: bytes, seating: int, root: bytes) -> None:
        """Keep a root, before the verdict that hides it is sent."""
        self._known[task_id, seating] = root
        self._write("INSERT OR REPLACE INTO sealed_roots VALUES (?, ?, ?)", task_id, seating, root)

    def root(self, task_id: bytes, seating: int) -> bytes | None:
        """The kept root, if any."""
        return self._known.get((task_id, seating))

    def forget(self, task_id: bytes) -> None:
        """Drop all roots of a task."""
        self._known = {key: root for key, root in self._known.items() if key[0] != task_id}
        self._write("DELETE FROM sealed_roots WHERE task = ?", task_id)

    def _write(self, statement: str, *values: bytes | int) -> None:
        if self._database is not None:
            with suppress(OperationalError):
                self._database.write((statement, values))


class ErringParty(Role, ABC):
    """A party whose verdicts are sometimes forced to be wrong."""

    @cached_property
    def _sealed_roots(self) -> SealedRoots:
        return SealedRoots(self.store.database if isinstance(self.store, KeptStore) else None)

    @cached_property
    def _prepared(self) -> set[tuple[bytes, int]]:
        return set()

    def duty(self, task_id: bytes) -> Assignment:
        """The assignment of this verifier, once the beacon has given its round.

        Raises:
            OperationalError: the round isn't available.
        """
        seating = self.market.seats.seating(task_id)
        if not seating.is_held or seating.holder != self.wallet.address:
            raise ProtocolError("this party holds no seat of the task, so it has no duty: claim one that is empty")
        if self.market.seats.duty_seed(task_id) is None:
            self.bring(seating.duty_round)
        seed = self.market.seats.duty_seed(task_id)
        if seed is None:
            raise OperationalError(f"round {seating.duty_round} of the beacon isn't on chain yet; try again later")
        return Assignment(seed, task_id, seating.number, self._secret(task_id))

    @cached_property
    def rate(self) -> int:
        """Share of verdicts with a forced error, times 2^32."""
        return int(self.market.verdicts.read("rate"))

    def disclose(self, task_id: bytes) -> bool:
        """Disclose whether the verdict had to err, with the true claim if it had. Returns whether it had.

        Raises:
            Reverted: the watch isn't over, or the time to disclose is.
            OperationalError: the claims as posted can't be read from the chain, or the segment can't be replayed again.
        """
        duty, draws = self.duty(task_id), self.market.registry.terms(task_id).draws
        if not duty.is_forced(self.rate):
            self.market.verdicts.disclose(self.wallet, task_id, duty.secret)
            return False
        posted = self.market.verdicts.placed(task_id, duty.seating, duty.index(draws), as_posted=True)
        claim = self._kept_truth(task_id, duty, posted.claim) or self._replayed_truth(task_id, posted.claim)
        truth = PlacedClaim(claim, posted.look, posted.entries)
        self.market.verdicts.disclose_planted(self.wallet, task_id, duty.secret, self._salt(task_id), truth)
        return True

    def can_disclose(self, task_id: bytes) -> bool:
        """Whether disclosing the posted verdict takes no replay."""
        key = (task_id, self.market.verdicts.verdict(task_id).seating)
        if key not in self._prepared:
            duty, draws = self.duty(task_id), self.market.registry.terms(task_id).draws
            if duty.is_forced(self.rate):
                posted = self.market.verdicts.placed(task_id, duty.seating, duty.index(draws), as_posted=True)
                if self._kept_truth(task_id, duty, posted.claim) is None:
                    return False
            self._prepared.add(key)
        return True

    def prepare_disclosure(self, task_id: bytes) -> None:
        """Replay the hidden segment during the watch, if its root wasn't kept.

        Raises:
            OperationalError: the claims as posted can't be read from the chain, or the segment can't be replayed again.
        """
        if self.can_disclose(task_id):
            return
        duty, draws = self.duty(task_id), self.market.registry.terms(task_id).draws
        posted = self.market.verdicts.placed(task_id, duty.seating, duty.index(draws), as_posted=True)
        self._sealed_roots.keep(task_id, duty.seating, self._replayed_truth(task_id, posted.claim).hidden)
        # A second replay would find nothing better, whatever was sealed.
        self._prepared.add((task_id, duty.seating))

    def _kept_truth(self, task_id: bytes, duty: Assignment, posted: SegmentClaim) -> SegmentClaim | None:
        root = self._sealed_roots.root(task_id, duty.seating)
        if root is None:
            return None
        truth = posted.with_hidden(root)
        seal = self.market.verdicts.verdict(task_id).sealed_claim
        return truth if duty.sealed(self._salt(task_id), truth) == seal else None

    def _replayed_truth(self, task_id: bytes, posted: SegmentClaim) -> SegmentClaim:
        root = NO_REPLAY
        if any(posted.start) and any(posted.end):
            root = self.hidden_root(task_id, posted.segment)
        return posted.with_hidden(root)

    @abstractmethod
    def hidden_root(self, task_id: bytes, segment: int) -> bytes:
        """The root of a segment that nobody knows without a replay: of its end, or in exact mode of its receipt."""

    def release(self, task_id: bytes) -> None:
        """As `Role.release`."""
        super().release(task_id)
        self._sealed_roots.forget(task_id)

    def _secret(self, task_id: bytes) -> bytes:
        number = self.market.seats.seating(task_id).number
        return self.secret("seat", task_id, number.to_bytes(4, "big"))

    def _salt(self, task_id: bytes) -> bytes:
        return self.secret("salt", task_id, self.market.seats.seating(task_id).number.to_bytes(4, "big"))
