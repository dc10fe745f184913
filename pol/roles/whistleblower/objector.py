"""Objections: a screen of a whole log, replays of what it suspects and of what the objector's own dice choose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pol.chain.desks.task_registry import Status
from pol.claims.acceptance_rule import EXACT
from pol.claims.segment_claim import SecondLook, SegmentClaim
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.data_availability import lost_states
from pol.roles.party.dispute_session import GAME
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.replaying_party import LogDisputant
from pol.roles.process.defence import require_defensible
from pol.roles.whistleblower.join_strategy import JoinStrategy
from pol.roles.whistleblower.second_opinion import FLAKY, SecondOpinion
from pol.training.storage.store import Store
from pol.verification.examination.screening import screen
from pol.verification.verdict.second_look import decide_with_second_look
from pol.verification.verdict.verdict import Outcome, decide


@dataclass(frozen=True)
class FalseSegment:
    """A segment of a committed log that the rule of the task rejects, by this party's replay."""

    segment: int
    claim: SegmentClaim
    look: SecondLook | None = None


@dataclass(frozen=True)
class UnseenSegment:
    """A segment of a committed log that couldn't be replayed, which says nothing about it."""

    segment: int
    lost: tuple[int, ...]
    """Log entries at its ends whose states can't be read; empty if the replay itself failed."""


Examined = FalseSegment | UnseenSegment | None
"""What a look at a segment finds; None if it is true."""


class Objector(LogDisputant, SecondOpinion):
    """Looks at whole logs, and objects to what no verifier has to see."""

    strategy = JoinStrategy()
    """Decides whether work pays."""

    @cached_property
    def _suspects(self) -> dict[tuple[bytes, int], tuple[int, ...]]:
        return {}

    @cached_property
    def _looks(self) -> dict[tuple[bytes, int], dict[int, Examined]]:
        """By log, what was found in the segments that this party has looked at."""
        return {}

    def suspects(self, task_id: bytes) -> tuple[int, ...]:
        """The segments to replay: those that a screen names, the oddest first, and those of this party's own dice.

        Nobody else can foresee the dice. Segments that no state can be read of are named, too. What is only screened is
        no evidence, and isn't kept.
        """
        key = self._log_of(task_id)
        if key not in self._suspects:
            task, proof = self.task(task_id), self.proof(task_id)
            store = Store(self.store.url) if isinstance(self.store, KeptStore) else self.store
            named = [s.segment for s in screen(store, task, proof) if s.is_named]
            self._suspects[key] = tuple(dict.fromkeys((*named, *self._dice(task_id))))
        return self._suspects[key]

    def has_screened(self, task_id: bytes) -> bool:
        """Whether `suspects` has its answer."""
        return self._log_of(task_id) in self._suspects

    def open_suspects(self, task_id: bytes) -> list[int]:
        """The suspects that may be objected to now: what is drawn is left to the verdict until it is disclosed."""
        drawn = self._left_to_verdict(task_id)
        return [segment for segment in self.suspects(task_id) if segment not in drawn]

    def looks(self, task_id: bytes) -> dict[int, Examined]:
        """What was found in the open suspects that this party has looked at, the oddest first."""
        looks = self._looks.get(self._log_of(task_id), {})
        return {segment: looks[segment] for segment in self.open_suspects(task_id) if segment in looks}

    def waiting_suspects(self, task_id: bytes) -> list[int]:
        """The open suspects that this party hasn't looked at yet, the oddest first."""
        looks = self._looks.get(self._log_of(task_id), {})
        return [segment for segment in self.open_suspects(task_id) if segment not in looks]

    def look(self, task_id: bytes, segment: int) -> Examined:
        """As `examine_segment`; the result is remembered."""
        found = self.examine_segment(task_id, segment)
        self._looks.setdefault(self._log_of(task_id), {})[segment] = found
        return found

    def look_again(self, task_id: bytes) -> None:
        """Forget the looks at segments whose states couldn't be read, and can be now."""
        for segment, found in self.looks(task_id).items():
            if isinstance(found, UnseenSegment) and self.is_shown(task_id, found):
                del self._looks[self._log_of(task_id)][segment]

    def is_shown(self, task_id: bytes, unseen: UnseenSegment) -> bool:
        """Whether states of a segment couldn't be read, and can be now."""
        return bool(unseen.lost) and next(lost_states(self, task_id, unseen.lost), None) is None

    def known_false(self, task_id: bytes) -> FalseSegment | None:
        """The oddest open suspect that was found to be false; None if none was so far."""
        return next((found for found in self.looks(task_id).values() if isinstance(found, FalseSegment)), None)

    def false_segment(self, task_id: bytes) -> FalseSegment | None:
        """Look at the open suspects until one is false; None if none is. Those that can't be seen are in `looks`."""
        for segment in self.waiting_suspects(task_id):
            if self.known_false(task_id) is not None:
                break
            self.look(task_id, segment)
        return self.known_false(task_id)

    def examine_segment(self, task_id: bytes, segment: int) -> Examined:
        """Replay a segment, and once more where it seems false."""
        found = self._examined_once(task_id, segment, 0)
        if not isinstance(found, FalseSegment) or not _is_state(found.claim):
            return found
        self.forget(task_id)
        again = self._examined_once(task_id, segment, 1)
        if again != found and not isinstance(again, UnseenSegment):
            self.forget(task_id)
            raise OperationalError(FLAKY)
        return again

    def require_open(self, task_id: bytes, segment: int) -> None:
        """Check that this party may object to a segment now, before it is replayed."""
        task, desk = self.market.registry.task(task_id), self.market.objections
        committed = self.committed_segment(task_id, segment)
        if not desk.is_open(task, self.connection.now()):
            raise ProtocolError(
                f"the task takes no objections now, as its status is {task.status.name.lower()}: they are taken from "
                "the commitment of a proof until the window for challenges of the verdict ends"
            )
        if task.solver == self.wallet.address:
            raise ProtocolError("a solver can't object to its own log: use another key")
        if desk.objected(task_id).fell:
            raise ProtocolError("the proof has fallen to another objection already: there is nothing left to object to")
        is_zero = not any(committed.start) or not any(committed.end)
        if segment in self._left_to_verdict(task_id) and not is_zero:
            raise ProtocolError(
                f"segment {segment} is drawn, and left to the verdict until its verifier discloses: challenge the "
                "verdict if it is wrong, or object after the disclosure"
            )

    def require_money(self, task_id: bytes) -> None:
        """Check that this party can lock the bond of an objection and play its dispute."""
        terms, bond = self.market.registry.terms(task_id), self.market.objections.bond_of(task_id)
        free = self.market.vault.free(self.wallet.address)
        if free < bond:
            raise ProtocolError(
                f"an objection locks {bond} wei, and {self.wallet.address} has {free} wei free in the vault: add some "
                "with `pol stake deposit`"
            )
        self.policy.require_clock(terms)
        # The clock of the terms, however many objections are open: each of them adds one.
        game = self.market.objection_game if terms.is_exact else self.market.counterclaim_game
        require_defensible(self, task_id, terms, game)
        self.wallet.require(GAME)

    def object(self, task_id: bytes, found: FalseSegment) -> int:
        """Put up the bond, and open this party's own version of a segment or say what the rule makes of it.

        Returns the number of the dispute, of the counterclaim where thresholds decide, or zero where a zero root has
        decided at once.
        """
        market, terms = self.market, self.market.registry.terms(task_id)
        self.policy.require_clock(terms)
        segment = self.committed_segment(task_id, found.segment)
        self.require_kept()
        if not _is_state(found.claim):
            entry = found.segment + any(segment.start)
            path = segment.log_proof[entry - found.segment]
            market.objections.object_to_zero(self.wallet, task_id, entry, path)
            return 0
        if terms.is_exact:
            require_defensible(self, task_id, terms, market.objection_game)
            self.require_proofs(task_id)
            opening = self.opening(task_id, segment)
            return market.objections.object(self.wallet, task_id, segment, *opening)
        require_defensible(self, task_id, terms, market.counterclaim_game)
        most = 8 * market.objections.bond_of(task_id)
        return market.counterclaims.counterclaim(self.wallet, task_id, found.claim, segment.log_proof, found.look, most)

    def seen_claim(
        self, task_id: bytes, segment: int, opinion: int, receipt_seed: bytes | None = None
    ) -> SegmentClaim | UnseenSegment:
        """As `own_claim`, or what keeps this party from it."""
        for _ in range(2):
            own = self.own_claim(task_id, segment, opinion, receipt_seed)
            if own is not None:
                return own
            lost = tuple(lost_states(self, task_id, (segment, segment + 1)))
            if lost:
                break
            # Whatever was late is here now; a second failure is this machine's.
        return UnseenSegment(segment, lost)

    def _examined_once(self, task_id: bytes, segment: int, opinion: int) -> Examined:
        committed = self.committed_segment(task_id, segment)
        if not any(committed.start) or not any(committed.end):
            nothing = (0, 0, 0)
            return FalseSegment(
                segment, SegmentClaim(segment, committed.start, committed.end, bytes(32), nothing, nothing)
            )
        own = self.seen_claim(task_id, segment, opinion)
        if isinstance(own, UnseenSegment):
            return own
        if own.replay == own.end:
            # What every replay repeats is rejected where it is drawn, and pays nobody.
            return None
        thresholds = self.thresholds(task_id)
        if thresholds == EXACT:
            return FalseSegment(segment, own)
        look, terms = self.own_look(task_id, own), self.market.registry.terms(task_id)
        verdict = decide(own, thresholds)
        if look is not None:
            verdict = decide_with_second_look(own, thresholds, look, terms.looks, terms.look_margin)
        return FalseSegment(segment, own, look) if verdict.outcome is Outcome.REJECTED else None

    def _dice(self, task_id: bytes) -> list[int]:
        """Segments that this party's own secret draws."""
        count = self.task(task_id).document.segments
        drawn = (self.secret("look", task_id, number.to_bytes(4, "big")) for number in range(self.strategy.dice))
        return [int.from_bytes(each, "big") % count for each in drawn]

    def _left_to_verdict(self, task_id: bytes) -> frozenset[int]:
        if self.market.registry.task(task_id).status is Status.CONTESTED:
            return frozenset()
        if not self.market.proofs.is_drawn(task_id):
            return frozenset()
        return frozenset(self.market.proofs.drawn_segments(task_id))

    def _log_of(self, task_id: bytes) -> tuple[bytes, int]:
        return task_id, self.market.registry.task(task_id).began


def _is_state(claim: SegmentClaim) -> bool:
    return any(claim.start) and any(claim.end)
