"""The verifier: profiles a task's threshold, replays drawn segments, posts distances and defends them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pol.chain.account.wallet import Reverted
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.seats import NO_COMMITMENT
from pol.claims.distance import INFINITE
from pol.claims.segment_claim import SegmentClaim
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.tensor import state_root
from pol.dispute.play.distance_evidence import SumEvidence
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumPlayer
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import Executor
from pol.graph.step_program import Component, StepProgram
from pol.incentives.forced_errors import commitment
from pol.incentives.sortition import Draw, Duty
from pol.roles.party.data_availability import demand_missing
from pol.roles.party.dispute_session import Duel
from pol.roles.party.profile_evidence import Measurement
from pol.roles.party.second_look_evidence import Looks
from pol.roles.process.work_time import require_time
from pol.roles.verifier.forced_error_duty import NO_REPLAY, Erring
from pol.training.task.learning_proof import Checkpoint, LearningProof, load_checkpoint
from pol.training.task.task import LoadedTask
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile
from pol.verification.verdict.second_look import SecondLooker
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome, Verdict


class Verifier(Erring):
    """Replays what solvers claim, and answers for it."""

    @cached_property
    def _traces(self) -> dict[tuple[bytes, int], SegmentTrace]:
        return {}

    @cached_property
    def _profiles(self) -> dict[bytes, Profile]:
        return {}

    @cached_property
    def _measurements(self) -> dict[bytes, Measurement]:
        return {}

    def enrol(self, tickets: int) -> None:
        """Lock the bond of tickets, by which seats and watches are drawn."""
        self.market.sortition.enrol(self.wallet, tickets)

    def claim_seat(self, task_id: bytes) -> int:
        """Claim the empty seat of a task with the best ticket; the stake is locked. Returns the ticket.

        Raises:
            ProtocolError: the task isn't what it says, its terms break this party's policy, this party has no ticket
                that counts, or somebody has claimed with a better one.
            UnsupportedError: the seat is a profiler's, and no threshold could be posted.
        """
        self.task(task_id)
        terms = self.market.registry.terms(task_id)
        self.policy.require(terms)
        self.policy.require_game(self.market.game, terms.clock)
        self.require_proofs(task_id)
        self.policy.require_answer_window(self.market.demands.window())
        seating = self.market.seats.seating(task_id)
        require_time(self, task_id, terms, seating.verifies)
        self.require_kept()
        if not seating.verifies:
            # Whoever can't post a profile loses its stake, so what the terms ask for is measured before.
            _ = self._profile(task_id).thresholds
        if not seating.until:
            self.beacon.bring(self.wallet, seating.round, self.rounds)
            self.market.seats.open_claims(self.wallet, task_id)
            seating = self.market.seats.seating(task_id)
        tickets = self.market.sortition.tickets(self.wallet.address, seating.fixed_at)
        if not tickets:
            raise ProtocolError("this party had no ticket when the seat was opened: enrol, and claim a later one")
        draw = Draw(Duty.SEAT, task_id, seating.number, seating.fixed_at, seating.seed)
        account = bytes.fromhex(self.wallet.address[2:])
        ticket = min(range(tickets), key=lambda number: draw.rank(account, number))
        hidden = commitment(account, task_id, self._secret(task_id)) if seating.verifies else NO_COMMITMENT
        self.market.seats.claim(self.wallet, task_id, ticket, hidden)
        return ticket

    def take_seat(self, task_id: bytes) -> bool:
        """Wait until claims are over and have the seat decided; whether it is this party's."""
        seating = self.market.seats.seating(task_id)
        if not seating.is_held:
            self.connection.wait_until(seating.until)
            self.market.seats.decide(self.wallet, task_id)
        return self.market.registry.task(task_id).holder == self.wallet.address

    def profile(self, task_id: bytes) -> Profile:
        """Measure how far honest executions part, publish the profile and post what it claims.

        Anybody may challenge it until its window is over (`profile_defences`), and nobody bids for the task before.

        Raises:
            ProtocolError: the training is exact, so there is nothing to measure.
            UnsupportedError: no threshold can tell honest work from cheating here; leave the seat.
        """
        if self.market.registry.terms(task_id).is_exact:
            raise ProtocolError("the training of this task is exact: it needs no profile, solvers bid for it at once")
        result = self.measure(task_id)
        self.store.put(result.encode())
        self.keep()
        self.market.profiles.post(self.wallet, task_id, result.claim, result.digest)
        return result

    def measure(self, task_id: bytes) -> Profile:
        """What the terms ask a profile to measure."""
        return self._profile(task_id)

    def has_measured(self, task_id: bytes) -> bool:
        """Whether `measure` has its answer."""
        return task_id in self._profiles

    def _profile(self, task_id: bytes) -> Profile:
        if task_id not in self._profiles:
            task, terms = self.task(task_id), self.market.registry.terms(task_id)
            self._profiles[task_id] = measure_profile(
                task, CpuExecutor, terms.profiled, terms.rerun_count, terms.margin
            )
        return self._profiles[task_id]

    def forget(self, task_id: bytes) -> None:
        """As `Role.forget`."""
        super().forget(task_id)
        self._profiles.pop(task_id, None)
        self._measurements.pop(task_id, None)
        for key in [key for key in self._traces if key[0] == task_id]:
            del self._traces[key]

    def profile_defences(self, task_id: bytes) -> list[Duel]:
        """The defences in all disputes that the posted profile waits for; ask again after every round of moves."""
        measured, duels = self.measurement(task_id), []
        for number in self.market.profiles.disputes(task_id):
            charge = self.market.profiles.charge(number)
            duel = (self.market.profile_game, self.wallet, measured.program(charge), number, measured.player(charge))
            duels.append(Duel(*duel, self.market.profiles))
        return duels

    def measurement(self, task_id: bytes) -> Measurement:
        """This verifier's executions behind its profile: however many challenge it, each is made once."""
        if task_id not in self._measurements:
            task, reruns = self.task(task_id), self.market.registry.terms(task_id).rerun_count
            self._measurements[task_id] = Measurement(task, reruns)
        return self._measurements[task_id]

    def verify(self, task_id: bytes) -> list[Verdict]:
        """Replay the drawn segments and post the verdict; what can't be had or read is demanded on chain.

        Raises:
            ProtocolError: the evidence for a segment is bad, and nothing that could be defended can be said about it.
            OperationalError: a segment couldn't be looked at; nothing is posted, and it can be tried again.
        """
        try:
            verdicts = self.replay(task_id)
            self.post(task_id, verdicts)
        except (OperationalError, ProtocolError) as error:
            if not isinstance(error, Reverted):
                demand_missing(self, task_id)
            raise
        return verdicts

    def replay(self, task_id: bytes) -> list[Verdict]:
        """Replay the drawn segments, and look again at what the thresholds reject."""
        task, proof, terms = self.task(task_id), self.proof(task_id), self.market.registry.terms(task_id)
        self.bring(self.market.proofs.proof(task_id).round)
        thresholds = self.thresholds(task_id)
        again = SecondLooker(task, CpuExecutor, thresholds, terms.looks, terms.look_margin) if terms.looks else None
        return [
            verify_segment(
                self.store, task, proof, self.executor(task, proof, segment), segment, thresholds, second_look=again
            )
            for segment in self.market.proofs.drawn_segments(task_id)
        ]

    def post(self, task_id: bytes, verdicts: Sequence[Verdict]) -> None:
        """Answer on chain for every drawn segment, with the error that the duty asks for if it does.

        Raises:
            ProtocolError: the evidence for a segment is bad, and nothing that could be defended can be said about it.
            OperationalError: a segment couldn't be looked at; nothing is posted, and it can be tried again.
        """
        checkpoints = self.proof(task_id).checkpoints
        log = CheckpointLog([entry.state_root for entry in checkpoints])
        claims = [self._claim(task_id, verdict, checkpoints) for verdict in verdicts]
        paths = [(log.inclusion(claim.segment), log.inclusion(claim.segment + 1)) for claim in claims]
        looks = [verdict.second_look for verdict in verdicts if verdict.second_look is not None]
        duty, salt = self.duty(task_id), self._salt(task_id)
        sealed = self.secret("nothing", task_id, salt)
        if duty.is_forced(self.rate):
            index = duty.index(len(claims))
            sealed = duty.sealed(salt, claims[index])
            self._sealed_roots.keep(task_id, duty.seating, claims[index].replay)
            claims[index] = duty.plant(claims[index])
        self.keep()
        self.market.verdicts.post(self.wallet, task_id, claims, paths, looks, sealed)

    def open_watch(self, task_id: bytes) -> None:
        """Have the watchers drawn, once the beacon has given their round."""
        self.beacon.bring(self.wallet, self.market.verdicts.verdict(task_id).watch_round, self.rounds)
        self.market.verdicts.open_watch(self.wallet, task_id)

    def _claim(self, task_id: bytes, verdict: Verdict, checkpoints: Sequence[Checkpoint]) -> SegmentClaim:
        if verdict.claim is not None:
            return verdict.claim
        start, end = (checkpoints[verdict.segment + i].state_root for i in range(2))
        if not any(start) or not any(end):
            return reject_zero_state(verdict.segment, start, end)
        if verdict.outcome is not Outcome.REJECTED:
            raise OperationalError(f"segment {verdict.segment} can't be replayed: {verdict.detail}")
        raise ProtocolError(
            f"segment {verdict.segment} has bad evidence: {verdict.detail}; no claim about it can be defended, so "
            "post nothing, and have the solver show what it committed to (roles.availability.demand_missing, before "
            f"second {self.market.registry.task(task_id).deadline}): if it can't, it loses its stake, and you leave"
        )

    def executor(self, task: LoadedTask, proof: LearningProof, segment: int) -> Executor:
        """What replays a segment: the canonical kernels."""
        return CpuExecutor(task.program, task.constants)

    def trace(self, task: LoadedTask, proof: LearningProof, segment: int) -> SegmentTrace:
        """This verifier's execution of a segment, for a dispute."""
        interval = task.document.interval
        start = load_checkpoint(self.store, task, proof.checkpoints[segment])
        executor = self.executor(task, proof, segment)
        return SegmentTrace(task.program, task.constants, executor, start, segment * interval, interval)

    def defences(self, task_id: bytes) -> list[Duel]:
        """The defences in all disputes that the current verdict waits for; ask again after every round of moves."""
        return [self.defend(task_id, number) for number in self.market.challenges.disputes(task_id)]

    def defend(self, task_id: bytes, dispute: int | None = None) -> Duel:
        """The defence of one of this verifier's claims, rebuilt from chain and store.

        ``dispute`` is the oldest that the verdict waits for, if it isn't given.

        Raises:
            OperationalError: nobody disputes the task now.
        """
        if dispute is None:
            disputes = self.market.challenges.disputes(task_id)
            if not disputes:
                raise OperationalError("nobody disputes this task now; there is nothing to defend")
            dispute = disputes[0]
        program, player = self._side(task_id, self.market.challenges.charge(dispute), dispute)
        return Duel(self.market.game, self.wallet, program, dispute, player, self.market.challenges)

    def _side(self, task_id: bytes, charge: ClaimCharge, dispute: int) -> tuple[StepProgram, Player]:
        """What is disputed, by this verifier's own executions."""
        task, seating = self.task(task_id), self.market.registry.task(task_id).seating
        claim = self.market.verdicts.claims(task_id, seating)[charge.index]
        trace, params = self._executed(task_id, claim.segment), self.market.game.params(dispute)
        if charge.kind is ClaimChargeKind.REPLAY:
            return task.program, ReplayPlayer(trace)
        if charge.kind in {ClaimChargeKind.LOOK_RERUN, ClaimChargeKind.LOOK_DISTANCE}:
            looks = Looks(task, self.market.registry.terms(task_id))
            posted = self.market.verdicts.looks(task_id, seating)
            charge = looks.charged(charge, params, posted.get(charge.index))
            is_rerun = charge.kind is ClaimChargeKind.LOOK_RERUN
            return looks.program(charge.rerun) if is_rerun else task.program, looks.player(trace, charge)
        checkpoints = self.proof(task_id).checkpoints
        entry = checkpoints[claim.segment + (charge.kind is ClaimChargeKind.DISTANCE)]
        states = trace.state((claim.segment + 1) * task.document.interval), load_checkpoint(self.store, task, entry)
        return task.program, SumPlayer(SumEvidence(task.program, Component(charge.component), *states))

    def replayed(self, task_id: bytes, segment: int) -> bytes:
        """As `Erring.replayed`; executed once."""
        task = self.task(task_id)
        end = self._executed(task_id, segment).state((segment + 1) * task.document.interval)
        return state_root(task.slot_types, end)

    def _executed(self, task_id: bytes, segment: int) -> SegmentTrace:
        """However many challenge a segment, it is executed once."""
        if (task_id, segment) not in self._traces:
            self._traces[task_id, segment] = self.trace(self.task(task_id), self.proof(task_id), segment)
        return self._traces[task_id, segment]


def reject_zero_state(segment: int, start: bytes, end: bytes) -> SegmentClaim:
    """The claim about a segment that begins or ends in a zero root: that is no state, so nothing else can be said.

    The contract rejects the segment whatever the claim says, and lets nobody challenge it.
    """
    worst = (INFINITE, INFINITE, INFINITE)
    return SegmentClaim(segment, start, end, replay=NO_REPLAY, distances=worst, references=worst)
