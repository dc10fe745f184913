"""Objections: a screen of a whole log, replays of what it suspects and of what the objector's own dice choose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pol.chain.desks.task_registry import Status
from pol.claims.acceptance_rule import EXACT
from pol.claims.segment_claim import SecondLook, SegmentClaim
from pol.errors import OperationalError
from pol.roles.party.log_disputant import LogDisputant
from pol.roles.whistleblower.join_strategy import JoinStrategy
from pol.roles.whistleblower.second_opinion import FLAKY, SecondOpinion
from pol.verification.examination.screening import screen
from pol.verification.verdict.second_look import decide_with_second_look
from pol.verification.verdict.verdict import Outcome, decide


@dataclass(frozen=True)
class FalseSegment:
    """A segment of a committed log that the rule of the task rejects, by this party's replay."""

    segment: int
    claim: SegmentClaim
    look: SecondLook | None = None


class Objector(LogDisputant, SecondOpinion):
    """Looks at whole logs, and objects to what no verifier has to see."""

    strategy = JoinStrategy()
    """Decides whether work pays."""

    @cached_property
    def _suspects(self) -> dict[tuple[bytes, int], tuple[int, ...]]:
        return {}

    @cached_property
    def _seen(self) -> dict[tuple[bytes, int], dict[int, FalseSegment | None]]:
        return {}

    def suspects(self, task_id: bytes) -> tuple[int, ...]:
        """The segments to replay: those that a screen names, the oddest first, and those of this party's own dice.

        Nobody else can foresee the dice. Segments that no state can be read of are named, too.

        Raises:
            ProtocolError: the published proof isn't the committed one.
            OperationalError: the node or the store failed.
        """
        key = self._log_of(task_id)
        if key not in self._suspects:
            named = [s.segment for s in screen(self.store, self.task(task_id), self.proof(task_id)) if s.is_named]
            self._suspects[key] = tuple(dict.fromkeys((*named, *self._dice(task_id))))
        return self._suspects[key]

    def has_screened(self, task_id: bytes) -> bool:
        """Whether `suspects` has its answer."""
        return self._log_of(task_id) in self._suspects

    def open_suspects(self, task_id: bytes) -> list[int]:
        """The suspects that may be objected to now: what is drawn is left to the verdict until it is disclosed."""
        drawn = self._left_to_verdict(task_id)
        return [segment for segment in self.suspects(task_id) if segment not in drawn]

    def unseen_suspects(self, task_id: bytes) -> list[int]:
        """The open suspects that aren't replayed yet."""
        seen = self._seen.get(self._log_of(task_id), {})
        return [segment for segment in self.open_suspects(task_id) if segment not in seen]

    def false_segment(self, task_id: bytes) -> FalseSegment | None:
        """The first open suspect that the rule of the task rejects, by two replays; None if it rejects none.

        Raises:
            OperationalError: the second result differs, or node or store failed.
        """
        seen = self._seen.setdefault(self._log_of(task_id), {})
        for segment in self.open_suspects(task_id):
            if segment not in seen:
                seen[segment] = self.examine_segment(task_id, segment)
            found = seen[segment]
            if found is not None:
                return found
        return None

    def examine_segment(self, task_id: bytes, segment: int) -> FalseSegment | None:
        """A segment that is false by two replays; None if it is true, or if its states can't be read.

        Raises:
            OperationalError: the second result differs, or node or store failed.
        """
        found = self._examined_once(task_id, segment, 0)
        if found is None or not _is_state(found.claim):
            return found
        self.forget(task_id)
        if self._examined_once(task_id, segment, 1) != found:
            self.forget(task_id)
            raise OperationalError(FLAKY)
        return found

    def object(self, task_id: bytes, found: FalseSegment) -> int:
        """Put up the bond, and open this party's own version of a segment or say what the rule makes of it.

        Returns the number of the dispute, of the counterclaim where thresholds decide, or zero where a zero root has
        decided at once.

        Raises:
            ProtocolError: the policy doesn't admit the clock, or the contract refuses the objection.
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
            self.policy.require_game(market.objection_game, market.objections.clock_of(task_id))
            self.require_proofs(task_id)
            opening = self.opening(task_id, segment)
            return market.objections.object(self.wallet, task_id, segment, *opening)
        self.policy.require_game(market.counterclaim_game, terms.clock)
        most = 8 * market.objections.bond_of(task_id)
        return market.counterclaims.counterclaim(self.wallet, task_id, found.claim, segment.log_proof, found.look, most)

    def _examined_once(self, task_id: bytes, segment: int, opinion: int) -> FalseSegment | None:
        committed = self.committed_segment(task_id, segment)
        if not any(committed.start) or not any(committed.end):
            nothing = (0, 0, 0)
            return FalseSegment(
                segment, SegmentClaim(segment, committed.start, committed.end, bytes(32), nothing, nothing)
            )
        own = self.own_claim(task_id, segment, opinion)
        if own is None or own.replay == own.end:
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
