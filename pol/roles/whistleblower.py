"""The whistleblower: repeats what verifiers claim, and challenges what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pol.chain.profiles import PostedProfile, Proved, Witness, witness_of
from pol.commitments.log import CheckpointLog
from pol.commitments.program import program_hash, program_header
from pol.dispute.claim import ReplayClaim, SumClaim
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Player, ReplayPlayer, SumPlayer
from pol.dispute.position import Kind
from pol.dispute.sums import SumEvidence
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.roles.duel import Duel
from pol.roles.measurement import Measurement, disputed
from pol.roles.role import Role
from pol.training.learning_proof import load_checkpoint
from pol.verification import profile
from pol.verification.profile_challenge import Charge, ChargeKind, compare
from pol.verification.profile_claim import ProfileClaim
from pol.verification.profiling import profile as measure_profile
from pol.verification.profiling import rerun_programs
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
    def _measured(self) -> dict[bytes, tuple[ProfileClaim, Measurement]]:
        return {}

    @cached_property
    def _traces(self) -> dict[tuple[bytes, int], SegmentTrace]:
        return {}

    def check_profile(self, task_id: bytes) -> list[Charge]:
        """What is false in the posted profile, most basic first: measures all of it again.

        Raises:
            OperationalError: there is no profile, or the node failed.
        """
        own, _ = self.measured(task_id)
        posted = self.profiles.posted(task_id)
        shown = self._shown(task_id, posted)
        if shown is not None:
            return compare(own, shown)
        # The document isn't to be had: of its reruns the chain has shown the witnesses, and nobody can prove others.
        reruns = list(own.reruns)
        for witness in posted.witnesses:
            reruns[witness.index] = witness.rerun
        first, second, third = (witness.index for witness in posted.witnesses)
        known = ProfileClaim(own.margin, posted.portions, tuple(reruns), (first, second, third))
        proved = {witness.index for witness in posted.witnesses}
        return [
            charge
            for charge in compare(own, known)
            if charge.kind in {ChargeKind.PORTION, ChargeKind.REFERENCE} or charge.index in proved
        ]

    def challenge_profile(self, task_id: bytes, charge: Charge) -> int:
        """Put up the bond and open this party's own version of a part of the profile; returns the dispute's number.

        Raises:
            ProtocolError: the policy doesn't admit the clock, the charge is no dispute, or the contract refuses it.
        """
        terms = self.market.terms(task_id)
        self.policy.require_clock(terms)
        self.policy.require_game(self.profile_game, terms.clock)
        task, posted, witness = self.task(task_id), self.profiles.posted(task_id), None
        if charge.kind in {ChargeKind.RERUN, ChargeKind.DISTANCE}:
            witness = self._witness(task_id, posted, charge.index)
        _, measured = self.measured(task_id)
        program, proved = measured.program(charge), None
        if charge.kind is ChargeKind.RERUN:
            proved = self._proved(task_id, charge.index % terms.rerun_count)
        rerun = None if witness is None else witness.rerun
        claim = disputed(task, posted.portions, terms.rerun_count, charge, program_hash(program), rerun)
        header = program_header(program)
        payload = measured.player(charge).open(claim.first(header, self.profile_game.bits))
        arguments = (posted.portions, charge, header, payload, witness, proved)
        return self.profiles.challenge(self.wallet, task_id, *arguments)

    def attack_profile(self, task_id: bytes, charge: Charge, dispute: int) -> Duel:
        """The attack on a false part of a profile."""
        _, measured = self.measured(task_id)
        program, player = measured.program(charge), measured.player(charge)
        return Duel(self.profile_game, self.wallet, program, dispute, player)

    def convict_profile(self, task_id: bytes, charge: Charge) -> None:
        """Show the rerun from which a higher threshold follows than the posted one: the profile is void at once.

        Raises:
            ProtocolError: the charge is another, or the contract doesn't see it.
        """
        if charge.kind is not ChargeKind.UNDERSTATED or charge.component is None:
            raise ProtocolError(f"{charge.kind.name} needs a dispute")
        posted = self.profiles.posted(task_id)
        witness = self._witness(task_id, posted, charge.index)
        self.profiles.convict(self.wallet, task_id, posted.portions, witness, charge.component)

    def measured(self, task_id: bytes) -> tuple[ProfileClaim, Measurement]:
        """What this party measured on the task's terms, once, and its executions for disputes."""
        if task_id not in self._measured:
            task, terms = self.task(task_id), self.market.terms(task_id)
            own = measure_profile(task, CpuExecutor, terms.profiled, terms.rerun_count, terms.margin)
            self._measured[task_id] = (own.claim, Measurement(task, terms.rerun_count))
        return self._measured[task_id]

    def _shown(self, task_id: bytes, posted: PostedProfile) -> ProfileClaim | None:
        """The claim of the document behind the posted digest; None if it can't be had or isn't what was posted."""
        try:
            claim = profile.load(self.store, posted.digest.hex(), self.task(task_id)).claim
        except (OperationalError, ProtocolError):
            return None
        told = (claim.portions, claim.root, claim.witnesses)
        stands = (posted.portions, posted.root, tuple(witness.index for witness in posted.witnesses))
        return claim if told == stands else None

    def _witness(self, task_id: bytes, posted: PostedProfile, index: int) -> Witness:
        for witness in posted.witnesses:
            if witness.index == index:
                return witness
        shown = self._shown(task_id, posted)
        if shown is None:
            raise OperationalError(f"the document behind the profile isn't to be had, so rerun {index} can't be proved")
        return witness_of(shown, shown.log, index)

    def _proved(self, task_id: bytes, rerun: int) -> Proved:
        programs = rerun_programs(self.task(task_id).program, self.market.terms(task_id).rerun_count)
        return programs[rerun], CheckpointLog(programs).inclusion(rerun)

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

    def reclaim_profile(self, task_id: bytes) -> list[int]:
        """The same for disputes about profiles."""
        numbers = self.profiles.moot(task_id, self.wallet.address)
        for number in numbers:
            self.profiles.release_bond(self.wallet, number)
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
