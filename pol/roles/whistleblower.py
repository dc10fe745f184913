"""The whistleblower: repeats what verifiers claim, and challenges what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pol.commitments.program import program_header
from pol.dispute.claim import ReplayClaim, SumClaim
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Player, ReplayPlayer, SumPlayer
from pol.dispute.position import Kind
from pol.dispute.sums import SumEvidence
from pol.execution.cpu import CpuExecutor
from pol.roles.duel import Duel
from pol.roles.role import Role
from pol.training.learning_proof import load_checkpoint
from pol.verification.verdict import Claim, verify_segment


@dataclass(frozen=True)
class Finding:
    """A claim that is wrong, and how to say so on chain."""

    index: int
    claim: Claim
    kind: Kind
    component: int


class Whistleblower(Role):
    """Lives on bounties."""

    @cached_property
    def _traces(self) -> dict[tuple[bytes, int], SegmentTrace]:
        return {}

    def check(self, task_id: bytes) -> list[Finding]:
        """What is wrong in the current verdict, most basic first: a wrong replay makes all distances meaningless."""
        task, proof, state = self.task(task_id), self.proof(task_id), self.market.task(task_id)
        executor = CpuExecutor(task.program, task.constants)
        findings = []
        for index, claim in enumerate(self.market.claims(task_id, state.verdicts)):
            own = verify_segment(self.store, task, proof, executor, claim.segment, state.thresholds).claim
            if own is None or own == claim:
                continue
            if own.replay != claim.replay:
                findings.append(Finding(index, claim, Kind.REPLAY, 0))
                continue
            for kind, mine, theirs in (
                (Kind.DISTANCE, own.distances, claim.distances),
                (Kind.REFERENCE, own.references, claim.references),
            ):
                wrong = [c for c in range(3) if mine[c] != theirs[c]]
                findings += [Finding(index, claim, kind, c + 1) for c in wrong]
        return findings

    def challenge(self, task_id: bytes, finding: Finding) -> int:
        """Put up the bond and open this party's own version of a claim; returns the number of the dispute.

        Other challenges don't matter, but for the bond (``market.bond_of``). Who is right gets it back, and so does
        whoever is still in dispute when the verdict falls (`reclaim`).

        Raises:
            ProtocolError: the policy doesn't admit the clock, or the contract refuses the challenge.
        """
        terms = self.market.terms(task_id)
        self.policy.require_clock(terms)
        self.policy.require_game(self.game, terms.clock)
        header = program_header(self.task(task_id).program)
        first = self._claim(task_id, finding).first(header, self.game.bits)
        payload = self.player(task_id, finding).open(first)
        arguments = (finding.index, finding.claim, finding.kind, finding.component, header, payload)
        return self.market.challenge(self.wallet, task_id, *arguments)

    def attack(self, task_id: bytes, finding: Finding, dispute: int) -> Duel:
        """The attack on a wrong claim."""
        player = self.player(task_id, finding)
        return Duel(self.game, self.wallet, self.task(task_id).program, dispute, player)

    def reclaim(self, task_id: bytes) -> list[int]:
        """Get the bonds of this party's moot disputes credited; returns the numbers of those disputes."""
        numbers = self.market.moot(task_id, self.wallet.address)
        for number in numbers:
            self.market.release_bond(self.wallet, number)
        return numbers

    def player(self, task_id: bytes, finding: Finding) -> Player:
        """Who plays: compares what is opened with this party's own execution."""
        trace, claim = self.trace(task_id, finding.claim.segment), finding.claim
        if finding.kind is Kind.REPLAY:
            return ReplayPlayer(trace)
        task, proof = self.task(task_id), self.proof(task_id)
        end = trace.state(trace.first_step + trace.steps)
        entry = proof.checkpoints[claim.segment + (finding.kind is Kind.DISTANCE)]
        return SumPlayer(SumEvidence(task.program, finding.component, end, load_checkpoint(self.store, task, entry)))

    def trace(self, task_id: bytes, segment: int) -> SegmentTrace:
        """This party's execution of a segment, replayed once."""
        if (task_id, segment) not in self._traces:
            task, proof, interval = self.task(task_id), self.proof(task_id), self.task(task_id).document.interval
            start = load_checkpoint(self.store, task, proof.checkpoints[segment])
            executor = CpuExecutor(task.program, task.constants)
            trace = SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)
            self._traces[task_id, segment] = trace
        return self._traces[task_id, segment]

    def _claim(self, task_id: bytes, finding: Finding) -> ReplayClaim | SumClaim:
        # The dispute's id isn't known yet, and no opening depends on it.
        claim, document, identity = finding.claim, self.task(task_id).document, bytes(32)
        if finding.kind is Kind.REPLAY:
            steps = (claim.segment * document.interval, document.interval)
            program = (document.program_hash, document.constants_root)
            return ReplayClaim(identity, *program, *steps, claim.start, claim.replay)
        other, sums = (claim.end, claim.distances)
        if finding.kind is Kind.REFERENCE:
            other, sums = claim.start, claim.references
        states = (claim.replay, other)
        return SumClaim(identity, document.program_hash, finding.component, *states, sums[finding.component - 1])
