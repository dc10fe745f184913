"""The whistleblower: repeats what verifiers claim, and challenges what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from pol.commitments.program import program_header
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Challenger, ReplayChallenger, SumChallenger
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
        """Put up the bond and dispute a claim; returns the id of the dispute.

        Every failed challenge of the verdict has doubled the bond (``market.bond_of``); who is right gets it back.

        Raises:
            ProtocolError: the policy doesn't admit the clock, or the contract refuses the challenge.
        """
        self.policy.require_clock(self.market.terms(task_id))
        header = program_header(self.task(task_id).program)
        arguments = (finding.index, finding.claim, finding.kind, finding.component, header)
        return self.market.challenge(self.wallet, task_id, *arguments)

    def attack(self, task_id: bytes, finding: Finding, dispute: int) -> Duel:
        """The attack on a wrong claim."""
        player = self.challenger(task_id, finding)
        return Duel(self.game, self.wallet, self.task(task_id).program, dispute, player)

    def challenger(self, task_id: bytes, finding: Finding) -> Challenger:
        """Who picks: compares what is opened with this party's own execution."""
        task, proof, claim = self.task(task_id), self.proof(task_id), finding.claim
        interval, first = task.document.interval, finding.claim.segment * task.document.interval
        start = load_checkpoint(self.store, task, proof.checkpoints[claim.segment])
        executor = CpuExecutor(task.program, task.constants)
        trace = SegmentTrace(task.program, task.constants, executor, start, first, interval)
        if finding.kind is Kind.REPLAY:
            return ReplayChallenger(trace)
        other = load_checkpoint(self.store, task, proof.checkpoints[claim.segment + 1])
        y = other if finding.kind is Kind.DISTANCE else start
        return SumChallenger(SumEvidence(task.program, finding.component, trace.state(first + interval), y))
