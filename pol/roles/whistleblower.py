"""The whistleblower: repeats what verifiers claim, and challenges what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pol.chain.challenges import NO_PROGRAM, ClaimCharge
from pol.chain.challenges import ChargeKind as ChallengeKind
from pol.chain.profiles import PostedProfile, Proved, Witness, witness_of
from pol.chain.verdicts import evidence
from pol.commitments.log import CheckpointLog
from pol.commitments.program import program_hash, program_header
from pol.dispute.claim import ReplayClaim, SumClaim
from pol.dispute.evidence import SegmentTrace
from pol.dispute.players import Player, ReplayPlayer, SumPlayer
from pol.dispute.sums import SumEvidence
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import StepProgram
from pol.incentives.abi import abi_hash
from pol.incentives.sortition import Draw, Duty, watch_limit
from pol.roles.duel import Duel
from pol.roles.looks import Looks
from pol.roles.measurement import Measurement, disputed
from pol.roles.reports import convict
from pol.roles.role import Role
from pol.training.learning_proof import load_checkpoint
from pol.verification import profile
from pol.verification.profile_challenge import Charge, ChargeKind, compare
from pol.verification.profile_claim import ProfileClaim
from pol.verification.profiling import profile as measure_profile
from pol.verification.profiling import rerun_programs
from pol.verification.second_look import SecondLook
from pol.verification.second_look import compare as compare_looks
from pol.verification.verdict import Claim, verify_segment


@dataclass(frozen=True)
class Finding:
    """A claim that is wrong, and how to say so on chain."""

    index: int
    claim: Claim
    kind: ChallengeKind
    component: int
    rerun: int = 0
    """Of a second look."""

    @property
    def is_about_look(self) -> bool:
        """Whether the claim is right, and what is wrong is in the second look at its segment."""
        return self.kind in {ChallengeKind.LOOK_RERUN, ChallengeKind.LOOK_DISTANCE}

    @property
    def charge(self) -> ClaimCharge:
        """What is said to be wrong."""
        return ClaimCharge(self.index, self.kind, self.component, self.rerun)


class Whistleblower(Role):
    """Lives on bounties."""

    @cached_property
    def _measured(self) -> dict[bytes, tuple[ProfileClaim, Measurement]]:
        return {}

    @cached_property
    def _looks(self) -> dict[bytes, Looks]:
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
        posted = self.market.profiles.posted(task_id)
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
        terms = self.market.registry.terms(task_id)
        self.policy.require_clock(terms)
        self.policy.require_game(self.market.profile_game, terms.clock)
        task, posted, witness = self.task(task_id), self.market.profiles.posted(task_id), None
        if charge.kind in {ChargeKind.RERUN, ChargeKind.DISTANCE}:
            witness = self._witness(task_id, posted, charge.index)
        _, measured = self.measured(task_id)
        program, proved = measured.program(charge), None
        if charge.kind is ChargeKind.RERUN:
            proved = self._proved(task_id, charge.index % terms.rerun_count)
        rerun = None if witness is None else witness.rerun
        claim = disputed(task, posted.portions, terms.rerun_count, charge, program_hash(program), rerun)
        header = program_header(program)
        payload = measured.player(charge).open(claim.first(header, self.market.profile_game.bits))
        arguments = (posted.portions, charge, header, payload, witness, proved)
        return self.market.profiles.challenge(self.wallet, task_id, *arguments)

    def attack_profile(self, task_id: bytes, charge: Charge, dispute: int) -> Duel:
        """The attack on a false part of a profile."""
        _, measured = self.measured(task_id)
        program, player = measured.program(charge), measured.player(charge)
        return Duel(self.market.profile_game, self.wallet, program, dispute, player, self.market.profiles)

    def convict_profile(self, task_id: bytes, charge: Charge) -> None:
        """Show the rerun from which a higher threshold follows than the posted one: the profile is void at once.

        Raises:
            ProtocolError: the charge is another, or the contract doesn't see it.
        """
        if charge.kind is not ChargeKind.UNDERSTATED or charge.component is None:
            raise ProtocolError(f"{charge.kind.name} needs a dispute")
        posted = self.market.profiles.posted(task_id)
        witness = self._witness(task_id, posted, charge.index)
        convict(self, task_id, posted, witness, charge.component)

    def measured(self, task_id: bytes) -> tuple[ProfileClaim, Measurement]:
        """What this party measured on the task's terms, once, and its executions for disputes."""
        if task_id not in self._measured:
            task, terms = self.task(task_id), self.market.registry.terms(task_id)
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
        terms = self.market.registry.terms(task_id)
        programs = rerun_programs(self.task(task_id).program, terms.rerun_count, terms.looks)
        return programs[rerun], CheckpointLog(programs).inclusion(rerun)

    def check(self, task_id: bytes) -> list[Finding]:
        """What is wrong in the current verdict, most basic first: a wrong replay makes all distances meaningless."""
        task, proof, seating = self.task(task_id), self.proof(task_id), self.market.registry.task(task_id).seating
        executor, thresholds = CpuExecutor(task.program, task.constants), self.thresholds(task_id)
        findings, looks = [], self.market.verdicts.looks(task_id, seating)
        for index, claim in enumerate(self.market.verdicts.claims(task_id, seating)):
            own = verify_segment(self.store, task, proof, executor, claim.segment, thresholds).claim
            if own is None:
                continue
            if own.replay != claim.replay:
                findings.append(Finding(index, claim, ChallengeKind.REPLAY, 0))
                continue
            for kind, mine, theirs in (
                (ChallengeKind.DISTANCE, own.distances, claim.distances),
                (ChallengeKind.REFERENCE, own.references, claim.references),
            ):
                wrong = [c for c in range(3) if mine[c] != theirs[c]]
                findings += [Finding(index, claim, kind, c + 1) for c in wrong]
            if index in looks:
                found = compare_looks(self.looks(task_id).look(self.trace(task_id, claim.segment)), looks[index])
                findings += [Finding(index, claim, ChallengeKind(k), c or 0, rerun) for k, rerun, c in found]
        return findings

    def looks(self, task_id: bytes) -> Looks:
        """This party's own second looks at segments of a task."""
        if task_id not in self._looks:
            self._looks[task_id] = Looks(self.task(task_id), self.market.registry.terms(task_id))
        return self._looks[task_id]

    def watched(self, task_id: bytes) -> list[int]:
        """This party's tickets that are drawn to watch the verdict; empty while there is none, or none is drawn."""
        number, since, seed, until = self.market.verdicts.read("seating", task_id)
        if not until:
            return []
        tickets = self.market.sortition.tickets(self.wallet.address, since)
        draw = Draw(Duty.WATCH, task_id, number, since, bytes(seed))
        most = watch_limit(self.market.sortition.total(since), self.market.sortition.watchers())
        account = bytes.fromhex(self.wallet.address[2:])
        return [ticket for ticket in range(tickets) if draw.rank(account, ticket) < most]

    def watch(self, task_id: bytes) -> list[Finding]:
        """Look for wrong replays, and commit every drawn ticket to the first, in the last seconds of the watch.

        Raises:
            Reverted: the watch is over.
        """
        tickets = self.watched(task_id)
        findings = [finding for finding in self.check(task_id) if finding.kind is ChallengeKind.REPLAY]
        if tickets and findings:
            verdict = self.market.verdicts.verdict(task_id)
            self.connection.wait_until(verdict.watch_until - self.market.jackpot.commit_window())
            for ticket in tickets:
                hidden = self._commitment(task_id, verdict.seating, findings[0])
                self.market.jackpot.watch(self.wallet, task_id, ticket, hidden)
        return findings

    def collect(self, task_id: bytes, seating: int, finding: Finding) -> int:
        """Have the catches of a finding paid, once the task is closed; how many there were."""
        verdicts, paid = self.market.verdicts, 0
        last = self.market.registry.task(task_id).seating
        said = verdicts.placed(task_id, seating, finding.index, as_posted=True)
        shown = evidence(said, verdicts.placed(task_id, last, finding.index))
        salt, address = self._watch_salt(task_id, seating), self.wallet.address
        committed = self.market.jackpot.events("Watched", taskId=task_id, seating=seating, account=address)
        for ticket in sorted({int(event["ticket"]) for event in committed}):
            self.market.jackpot.claim(self.wallet, task_id, seating, address, ticket, finding.index, salt, shown)
            paid += 1
        return paid

    def _commitment(self, task_id: bytes, seating: int, finding: Finding) -> bytes:
        account, trace = bytes.fromhex(self.wallet.address[2:]), self.trace(task_id, finding.claim.segment)
        root = trace.state_root(trace.first_step + trace.steps)
        return abi_hash(account, task_id, seating, finding.index, root, self._watch_salt(task_id, seating))

    def _watch_salt(self, task_id: bytes, seating: int) -> bytes:
        return self.secret("watch", task_id, seating.to_bytes(4, "big"))

    def challenge(self, task_id: bytes, finding: Finding) -> int:
        """Put up the bond and open this party's own version of a claim; returns the number of the dispute.

        Other challenges don't matter, but for the bond (`Challenges.bond_of`). Who is right gets it back, and so does
        whoever is still in dispute when the verdict falls (`reclaim`).

        Raises:
            ProtocolError: the policy doesn't admit the clock, or the contract refuses the challenge.
        """
        terms = self.market.registry.terms(task_id)
        self.policy.require_clock(terms)
        self.policy.require_game(self.market.game, terms.clock)
        verdicts, seating = self.market.verdicts, self.market.registry.task(task_id).seating
        header = program_header(self.program(task_id, finding))
        placed = verdicts.placed(task_id, seating, finding.index)
        if placed.claim != finding.claim:
            raise ProtocolError("another claim stands there now: check the verdict again")
        look = verdicts.looks(task_id, seating)[finding.index] if finding.is_about_look else None
        first = self._claim(task_id, finding, look).first(header, self.market.game.bits)
        payload = self.player(task_id, finding).open(first)
        if look is None:
            return self.market.challenges.challenge(self.wallet, task_id, finding.charge, placed, header, payload)
        rerun = finding.kind is ChallengeKind.LOOK_RERUN
        program = self.looks(task_id).proved(finding.rerun) if rerun else NO_PROGRAM
        told = (finding.charge, placed, look, header, payload, program)
        return self.market.challenges.challenge_look(self.wallet, task_id, *told)

    def program(self, task_id: bytes, finding: Finding) -> StepProgram:
        """The program that a dispute about a finding is about."""
        if finding.kind is ChallengeKind.LOOK_RERUN:
            return self.looks(task_id).program(finding.rerun)
        return self.task(task_id).program

    def attack(self, task_id: bytes, finding: Finding, dispute: int) -> Duel:
        """The attack on a wrong claim."""
        player, program = self.player(task_id, finding), self.program(task_id, finding)
        return Duel(self.market.game, self.wallet, program, dispute, player, self.market.challenges)

    def reclaim(self, task_id: bytes) -> list[int]:
        """Settle this party's disputes that are over or moot; returns their numbers."""
        numbers = self.market.challenges.settleable(task_id, self.wallet.address)
        for number in numbers:
            self.market.challenges.settle(self.wallet, number)
        return numbers

    def reclaim_profile(self, task_id: bytes) -> list[int]:
        """The same for disputes about profiles."""
        numbers = self.market.profiles.settleable(task_id, self.wallet.address)
        for number in numbers:
            self.market.profiles.settle(self.wallet, number)
        return numbers

    def player(self, task_id: bytes, finding: Finding) -> Player:
        """Who plays: compares what is opened with this party's own execution."""
        trace, claim = self.trace(task_id, finding.claim.segment), finding.claim
        if finding.kind is ChallengeKind.REPLAY:
            return ReplayPlayer(trace)
        if finding.is_about_look:
            return self.looks(task_id).player(trace, finding.charge)
        task, proof = self.task(task_id), self.proof(task_id)
        end = trace.state(trace.first_step + trace.steps)
        entry = proof.checkpoints[claim.segment + (finding.kind is ChallengeKind.DISTANCE)]
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

    def _claim(self, task_id: bytes, finding: Finding, look: SecondLook | None) -> ReplayClaim | SumClaim:
        if look is not None:
            return self.looks(task_id).disputed(finding.claim, look.reruns[finding.rerun], finding.charge)
        # The dispute's id isn't known yet, and no opening depends on it.
        claim, document, identity = finding.claim, self.task(task_id).document, bytes(32)
        if finding.kind is ChallengeKind.REPLAY:
            steps = (claim.segment * document.interval, document.interval)
            program = (document.program_hash, document.constants_root)
            return ReplayClaim(identity, *program, *steps, claim.start, claim.replay)
        other, sums = (claim.end, claim.distances)
        if finding.kind is ChallengeKind.REFERENCE:
            other, sums = claim.start, claim.references
        states = (claim.replay, other)
        return SumClaim(identity, document.program_hash, finding.component, *states, sums[finding.component - 1])
