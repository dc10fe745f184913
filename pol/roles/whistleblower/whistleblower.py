"""The whistleblower: repeats what verifiers claim, and challenges what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pol.chain.desks.challenges import NO_PROGRAM, ClaimCharge, ClaimChargeKind
from pol.chain.desks.task_registry import Status
from pol.chain.desks.verdicts import entry, evidence, look_hash
from pol.claims.segment_claim import SecondLook, SegmentClaim, Three
from pol.commitments.program_hash import program_header
from pol.dispute.disputed_claim import ReplayClaim, SumClaim
from pol.dispute.play.distance_evidence import SumEvidence
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumPlayer
from pol.errors import OperationalError, ProtocolError
from pol.graph.step_program import StepProgram
from pol.incentives.jackpot import watch_commitment
from pol.incentives.sortition import Draw, Duty, watch_limit
from pol.roles.party.dispute_session import Duel
from pol.roles.party.second_look_evidence import Looks
from pol.roles.process.join_strategy import Strategy
from pol.roles.whistleblower.profile_challenger import FLAKY, ProfileChallenger
from pol.training.task.learning_proof import load_checkpoint
from pol.verification.verdict.second_look import compare_second_looks as compare_looks
from pol.verification.verdict.second_look import needs_second_look
from pol.verification.verdict.segment_verification import verify_segment


@dataclass(frozen=True)
class Finding:
    """A claim that is wrong, and how to say so on chain."""

    index: int
    claim: SegmentClaim
    kind: ClaimChargeKind
    component: int
    rerun: int = 0
    """Of a second look."""
    own: bytes = b""
    """The end of this party's replay."""
    entry: bytes = b""
    """What should stand there, by this party's replay (`pol.chain.desks.verdicts.entry`)."""

    @property
    def is_about_look(self) -> bool:
        """Whether the claim is right, and what is wrong is in the second look at its segment."""
        return self.kind in {ClaimChargeKind.LOOK_RERUN, ClaimChargeKind.LOOK_DISTANCE}

    @property
    def charge(self) -> ClaimCharge:
        """What is said to be wrong."""
        return ClaimCharge(self.index, self.kind, self.component, self.rerun)


@dataclass(frozen=True)
class Checked:
    """What one look at a verdict has found, most basic first, and the segments that couldn't be replayed."""

    findings: tuple[Finding, ...]
    unseen: tuple[int, ...]


class Whistleblower(ProfileChallenger):
    """Lives on bounties."""

    strategy = Strategy()
    """When it thinks that its work pays."""

    @cached_property
    def _examined(self) -> dict[tuple[bytes, int, tuple[SegmentClaim, ...]], Checked]:
        return {}

    @cached_property
    def _looks(self) -> dict[bytes, Looks]:
        return {}

    @cached_property
    def _traces(self) -> dict[tuple[bytes, int], SegmentTrace]:
        return {}

    def check(self, task_id: bytes) -> list[Finding]:
        """What is wrong in the current verdict, most basic first: a wrong replay makes all distances meaningless."""
        return list(self.examine(task_id).findings)

    def examine(self, task_id: bytes, opinion: int = 0) -> Checked:
        """Replay what the current verdict is about; ``opinion`` 1 replays anew, in another way if there is one."""
        task, proof, seating = self.task(task_id), self.proof(task_id), self.market.registry.task(task_id).seating
        executor, thresholds = self.replayer(task, opinion)(task.program, task.constants), self.thresholds(task_id)
        looks = self.market.verdicts.looks(task_id, seating)
        findings, unseen = list[Finding](), list[int]()
        for index, claim in enumerate(self.market.verdicts.claims(task_id, seating)):
            own = verify_segment(self.store, task, proof, executor, claim.segment, thresholds).claim
            if own is None:
                unseen.append(claim.segment)
                continue
            found = self._compare(task_id, index, claim, own, looks.get(index))
            if found:
                entry = self._entry(task_id, own, thresholds)
                findings += [replace(finding, own=own.replay, entry=entry) for finding in found]
        return Checked(tuple(findings), tuple(unseen))

    def _compare(
        self, task_id: bytes, index: int, claim: SegmentClaim, own: SegmentClaim, posted: SecondLook | None
    ) -> list[Finding]:
        if own.replay != claim.replay:
            return [Finding(index, claim, ClaimChargeKind.REPLAY, 0)]
        rows = (
            (ClaimChargeKind.DISTANCE, own.distances, claim.distances),
            (ClaimChargeKind.REFERENCE, own.references, claim.references),
        )
        found = [
            Finding(index, claim, kind, c + 1) for kind, mine, theirs in rows for c in range(3) if mine[c] != theirs[c]
        ]
        if posted is None:
            return found
        wrong = compare_looks(self.looks(task_id).look(self.trace(task_id, claim.segment)), posted)
        return found + [Finding(index, claim, ClaimChargeKind(kind), c or 0, rerun) for kind, rerun, c in wrong]

    def _entry(self, task_id: bytes, own: SegmentClaim, thresholds: Three) -> bytes:
        """The whole truth about a segment: this party's claim, and its second look where one is due."""
        due = self.market.registry.terms(task_id).looks and needs_second_look(own, thresholds)
        look = self.looks(task_id).look(self.trace(task_id, own.segment)) if due else None
        return entry(own, look_hash(look))

    def forget(self, task_id: bytes) -> None:
        """As `Role.forget`; also where two opinions were not the same."""
        super().forget(task_id)
        self._looks.pop(task_id, None)
        for key in [key for key in self._traces if key[0] == task_id]:
            del self._traces[key]

    def examined_twice(self, task_id: bytes) -> Checked:
        """As `examine`; where something seems to be wrong all is replayed again before anything is said.

        Raises:
            OperationalError: the second time it came out otherwise, or node or store failed.
        """
        key = self._verdict_of(task_id)
        if key not in self._examined:
            self._examined[key] = self._twice(task_id)
        return self._examined[key]

    def has_examined(self, task_id: bytes) -> bool:
        """Whether `examined_twice` has its answer."""
        return self._verdict_of(task_id) in self._examined

    def _verdict_of(self, task_id: bytes) -> tuple[bytes, int, tuple[SegmentClaim, ...]]:
        seating = self.market.registry.task(task_id).seating
        return task_id, seating, tuple(self.market.verdicts.claims(task_id, seating))

    def _twice(self, task_id: bytes) -> Checked:
        first = self.examine(task_id)
        if first.findings:
            self.forget(task_id)
            if self.examine(task_id, 1) != first:
                self.forget(task_id)
                raise OperationalError(FLAKY)
        return first

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

    def meant(self, task_id: bytes) -> int | None:
        """As `Role.meant`: for the commitment to an error that it has found in a verdict that is watched."""
        if self.market.registry.task(task_id).status is not Status.WATCHED or not self.has_examined(task_id):
            return None
        found = self._examined[self._verdict_of(task_id)].findings and self.watched(task_id)
        return self.market.verdicts.verdict(task_id).watch_until if found else None

    def watch(self, task_id: bytes) -> list[Finding]:
        """Look for wrong entries, and commit every drawn ticket to the first, in the last seconds of the watch.

        Raises:
            Reverted: the watch is over.
        """
        tickets = self.watched(task_id)
        findings = self.check(task_id)
        if tickets and findings:
            verdict = self.market.verdicts.verdict(task_id)
            self.connection.wait_until(verdict.watch_until - self.market.jackpot.commit_window())
            self.commit(task_id, findings[0], tickets)
        return findings

    def commit(self, task_id: bytes, finding: Finding, tickets: Sequence[int]) -> None:
        """Commit drawn tickets to a wrong entry.

        Raises:
            Reverted: it isn't the end of the watch.
        """
        seating = self.market.verdicts.verdict(task_id).seating
        hidden = self.commitment(task_id, seating, finding.index, finding.entry)
        for ticket in tickets:
            self.market.jackpot.watch(self.wallet, task_id, ticket, hidden)

    def collect(self, task_id: bytes, seating: int, index: int) -> int:
        """Have the catches of an error that aren't yet paid, once the task is closed; how many there were."""
        verdicts, paid = self.market.verdicts, 0
        last = self.market.registry.task(task_id).seating
        said = verdicts.placed(task_id, seating, index, as_posted=True)
        shown = evidence(said, verdicts.placed(task_id, last, index))
        salt, address = self._watch_salt(task_id, seating), self.wallet.address
        committed = self.market.jackpot.events("Watched", taskId=task_id, seating=seating, account=address)
        for ticket in sorted({int(event["ticket"]) for event in committed}):
            if not any(self.market.jackpot.commitment(task_id, seating, address, ticket)):
                continue
            self.market.jackpot.claim(self.wallet, task_id, seating, address, ticket, index, salt, shown)
            paid += 1
        return paid

    def commitment(self, task_id: bytes, seating: int, index: int, truth: bytes) -> bytes:
        """What a watcher commits to the true entry of a wrong claim with: it shows nothing of it."""
        account = bytes.fromhex(self.wallet.address[2:])
        return watch_commitment(account, task_id, seating, index, truth, self._watch_salt(task_id, seating))

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
        self.require_proofs(task_id)
        verdicts, seating = self.market.verdicts, self.market.registry.task(task_id).seating
        header = program_header(self.program(task_id, finding))
        placed = verdicts.placed(task_id, seating, finding.index)
        if placed.claim != finding.claim:
            raise ProtocolError("another claim stands there now: check the verdict again")
        look = verdicts.looks(task_id, seating)[finding.index] if finding.is_about_look else None
        self._require_same(task_id, finding)
        first = self._claim(task_id, finding, look).first(header, self.market.game.bits)
        payload = self.player(task_id, finding).open(first)
        self.require_kept()
        if look is None:
            return self.market.challenges.challenge(self.wallet, task_id, finding.charge, placed, header, payload)
        rerun = finding.kind is ClaimChargeKind.LOOK_RERUN
        program = self.looks(task_id).proved(finding.rerun) if rerun else NO_PROGRAM
        told = (finding.charge, placed, look, header, payload, program)
        return self.market.challenges.challenge_second_look(self.wallet, task_id, *told)

    def _require_same(self, task_id: bytes, finding: Finding) -> None:
        """The execution that this party would play with is the one that it has found the error by."""
        trace = self.trace(task_id, finding.claim.segment)
        if finding.own and trace.state_root(trace.first_step + trace.steps) != finding.own:
            self.forget(task_id)
            raise OperationalError(FLAKY)

    def program(self, task_id: bytes, finding: Finding) -> StepProgram:
        """The program that a dispute about a finding is about."""
        if finding.kind is ClaimChargeKind.LOOK_RERUN:
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

    def player(self, task_id: bytes, finding: Finding) -> Player:
        """Who plays: compares what is opened with this party's own execution."""
        trace, claim = self.trace(task_id, finding.claim.segment), finding.claim
        if finding.kind is ClaimChargeKind.REPLAY:
            return ReplayPlayer(trace)
        if finding.is_about_look:
            return self.looks(task_id).player(trace, finding.charge)
        task, proof = self.task(task_id), self.proof(task_id)
        end = trace.state(trace.first_step + trace.steps)
        entry = proof.checkpoints[claim.segment + (finding.kind is ClaimChargeKind.DISTANCE)]
        return SumPlayer(SumEvidence(task.program, finding.component, end, load_checkpoint(self.store, task, entry)))

    def trace(self, task_id: bytes, segment: int) -> SegmentTrace:
        """This party's execution of a segment, replayed once."""
        if (task_id, segment) not in self._traces:
            task, proof, interval = self.task(task_id), self.proof(task_id), self.task(task_id).document.interval
            start = load_checkpoint(self.store, task, proof.checkpoints[segment])
            executor = self.replayer(task, 0)(task.program, task.constants)
            trace = SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)
            self._traces[task_id, segment] = trace
        return self._traces[task_id, segment]

    def _claim(self, task_id: bytes, finding: Finding, look: SecondLook | None) -> ReplayClaim | SumClaim:
        if look is not None:
            return self.looks(task_id).disputed(finding.claim, look.reruns[finding.rerun], finding.charge)
        # The dispute's id isn't known yet, and no opening depends on it.
        claim, document, identity = finding.claim, self.task(task_id).document, bytes(32)
        if finding.kind is ClaimChargeKind.REPLAY:
            steps = (claim.segment * document.interval, document.interval)
            program = (document.program_hash, document.constants_root)
            return ReplayClaim(identity, *program, *steps, claim.start, claim.replay)
        other, sums = (claim.end, claim.distances)
        if finding.kind is ClaimChargeKind.REFERENCE:
            other, sums = claim.start, claim.references
        states = (claim.replay, other)
        return SumClaim(identity, document.program_hash, finding.component, *states, sums[finding.component - 1])
