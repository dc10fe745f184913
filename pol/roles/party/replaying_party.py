"""The base of parties that replay segments: their sides of disputes, by their own evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import Any

from pol.chain.desks.challenges import NO_PROGRAM, ClaimCharge, ClaimChargeKind
from pol.chain.desks.counterclaims import SaidClaim
from pol.chain.desks.market import Matter
from pol.chain.desks.objections import CommittedSegment
from pol.claims.segment_claim import SegmentClaim
from pol.commitments.program_hash import program_header
from pol.dispute.dispute_needs import RESTING_BYTES
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.play.honest_players import ReplayPlayer
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.dispute_session import DisputeSession, open_disputes
from pol.roles.party.evidence import Evidence
from pol.roles.party.execution_journal import forget_executions
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.role import Role
from pol.roles.party.second_look_evidence import LOOK_CHARGES
from pol.roles.party.trace_publications import TracePublications


class ReplayingParty(Role, Evidence):
    """A party that replays segments."""

    @cached_property
    def published_traces(self) -> TracePublications:
        """The traces of disputed steps, one's own and those of others."""
        return TracePublications(self.store)

    def _is_in_dispute(self, task_id: bytes) -> bool:
        return any(each.task_id == task_id for each in open_disputes(self))

    def rest(self) -> None:
        """Let go of large executions that the disk remembers."""
        self._traces.drop(lambda trace: trace.is_journaled and trace.most_bytes > RESTING_BYTES)

    def release(self, task_id: bytes) -> None:
        """As `Role.release`, with the journals of executions."""
        super().release(task_id)
        if isinstance(self.store, KeptStore):
            forget_executions(self.store.database, task_id)

    def session(self, task_id: bytes, number: int, matter: Matter = Matter.VERDICT) -> DisputeSession:
        """This party's side of a dispute, rebuilt from chain and store. Raises as `disputed`."""
        program, player = self.evidence_in(task_id, number, matter)
        if isinstance(player, ReplayPlayer):
            player = replace(player, published=self.published_traces)
        court = self.market.courts[matter]
        return DisputeSession(court.game, self.wallet, program, number, player, court.desk, self.published_traces)

    def sessions(self, task_id: bytes) -> list[DisputeSession]:
        """This party's sides of all open disputes about a task. Raises as `disputed`.

        Ask again after every round of moves.
        """
        own = self.wallet.address
        found = []
        for matter, court in self.market.courts.items():
            for number in court.desk.disputes(task_id):
                params = court.game.params(number)
                if own in {params.asserter, params.challenger}:
                    found.append(self.session(task_id, number, matter))
        return found

    def own_disputes(self, task_id: bytes) -> list[tuple[Matter, int]]:
        """The disputes of this party that no game has ended, and for which a task waits."""
        open_here = [(each.matter, each.number) for each in open_disputes(self) if each.task_id == task_id]
        waiting = {matter: self.market.courts[matter].desk.disputes(task_id) for matter, _ in open_here}
        return [(matter, number) for matter, number in open_here if number in waiting[matter]]


class LogDisputant(ReplayingParty):
    """Claims about single segments of a committed log: this party's own, and those of others."""

    @cached_property
    def _compared(self) -> dict[tuple[bytes, SaidClaim], list[ClaimCharge]]:
        return {}

    @cached_property
    def _own_claims(self) -> dict[tuple[bytes, int, bytes, bytes], SegmentClaim]:
        return {}

    @cached_property
    def begun_comparisons(self) -> Counter[tuple[bytes, int]]:
        """How often this party has begun to compare a counterclaim with its own replay, by task and number."""
        return Counter()

    def forget(self, task_id: bytes) -> None:
        """As `Role.forget`, with all that was found about counterclaims."""
        super().forget(task_id)
        known: tuple[dict[Any, Any], ...] = (self._compared, self._own_claims, self.begun_comparisons)
        for found in known:
            for key in [key for key in found if key[0] == task_id]:
                del found[key]

    def has_compared(self, task_id: bytes, said: SaidClaim) -> bool:
        """Whether `false_parts` has its answer."""
        return (task_id, said) in self._compared

    def false_parts(self, task_id: bytes, said: SaidClaim) -> list[ClaimCharge]:
        """The false parts of a counterclaim, most basic first; worked out once, and each segment replayed once."""
        if (task_id, said) not in self._compared:
            self.begun_comparisons[task_id, said.number] += 1
            own = self._compared_with(task_id, said.claim)
            self._compared[task_id, said] = self.charges(task_id, 0, said.claim, own, said.look)
        return self._compared[task_id, said]

    def _compared_with(self, task_id: bytes, claim: SegmentClaim) -> SegmentClaim:
        """This party's own claim about the segment of a counterclaim, whose ends the contract has checked."""
        key = (task_id, claim.segment, claim.start, claim.end)
        if key not in self._own_claims:
            own = self.own_claim(task_id, claim.segment)
            if own is None:
                raise OperationalError(f"segment {claim.segment} of the log can't be replayed here: try again later")
            self._own_claims[key] = own
        return self._own_claims[key]

    def contest(self, task_id: bytes, said: SaidClaim, charge: ClaimCharge) -> int:
        """Put up the bond and open this party's own version of a part of a counterclaim; the number of the dispute."""
        terms = self.market.registry.terms(task_id)
        self.policy.require_clock(terms)
        self.policy.require_game(self.market.counterclaim_game, terms.clock)
        look = said.look if charge.kind in LOOK_CHARGES else None
        bits = self.market.counterclaim_game.bits
        header, payload = self.opening_against(task_id, said.claim, charge, look, bits)
        rerun = charge.kind is ClaimChargeKind.LOOK_RERUN
        program = self.second_looks(task_id).proved(charge.rerun) if rerun else NO_PROGRAM
        self.require_kept()
        return self.market.counterclaims.contest(self.wallet, said, charge, header, payload, program)

    def opening(self, task_id: bytes, segment: CommittedSegment) -> tuple[bytes, bytes]:
        """The program's header, and the opening against a segment of an exact training: this party's own states."""
        task, trace = self.task(task_id), self.trace(task_id, segment.index)
        document, header = task.document, program_header(task.program)
        if trace.state_root(trace.first_step + trace.steps) == segment.end:
            raise ProtocolError(f"segment {segment.index} is right, by a replay on this machine: an objection loses")
        # The dispute's id isn't known yet, and no opening depends on it.
        program = (bytes(32), document.program_hash, document.constants_root)
        claim = ReplayClaim(*program, trace.first_step, trace.steps, segment.start, segment.end)
        return header, ReplayPlayer(trace).open(claim.first(header, self.market.objection_game.bits))
