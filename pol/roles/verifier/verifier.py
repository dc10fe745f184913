"""The verifier: profiles a task's threshold, replays drawn segments, posts distances and defends them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pol.chain.account.wallet import Reverted
from pol.chain.desks.seats import NO_COMMITMENT
from pol.claims.distance import INFINITE
from pol.claims.segment_claim import SegmentClaim
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.tensor import state_root
from pol.dispute.play.receipt_evidence import trace_receipt
from pol.errors import OperationalError, ProtocolError
from pol.execution.executor import Executor
from pol.incentives.forced_errors import commitment
from pol.incentives.sortition import DrawnDuty, TicketDraw
from pol.roles.party.data_availability import demand_missing, demanded_entries, unreadable_states
from pol.roles.party.replaying_party import ReplayingParty
from pol.roles.process.defence import require_seat
from pol.roles.verifier.forced_error_duty import NO_REPLAY, ErringParty
from pol.training.task.learning_proof import TaskCheckpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile, require_thresholds
from pol.verification.verdict.second_look import SecondLooker
from pol.verification.verdict.segment_verification import verify_segment
from pol.verification.verdict.verdict import Outcome, Verdict


class Verifier(ErringParty, ReplayingParty):
    """Replays what solvers claim, and answers for its verdicts."""

    @cached_property
    def _profiles(self) -> dict[bytes, Profile]:
        return {}

    def enrol(self, tickets: int) -> None:
        """Lock the bond of tickets, by which seats and watches are drawn."""
        self.market.sortition.enrol(self.wallet, tickets)

    def claim_seat(self, task_id: bytes) -> int:
        """Claim the empty seat of a task with the best ticket, and lock the stake. Returns the ticket.

        Raises:
            ProtocolError: the task differs from its terms, the terms break this party's policy, this party has no
                ticket that counts, or somebody has claimed with a better one.
            UnsupportedError: the seat is a profiler's, and no threshold could be posted.
        """
        self.task(task_id)
        terms = self.market.registry.terms(task_id)
        self.policy.require_game(self.market.game, terms.clock)
        self.require_acceptable(task_id)
        seating = self.market.seats.seating(task_id)
        require_seat(self, task_id, terms, seating.verifies)
        self.require_kept()
        if not seating.verifies:
            # A profiler that can't post a profile loses its stake, so the profile is measured first.
            require_thresholds(self.measure(task_id))
        if not seating.until:
            self.beacon.bring(self.wallet, seating.round, self.rounds)
            self.market.seats.open_claims(self.wallet, task_id)
            seating = self.market.seats.seating(task_id)
        tickets = self.market.sortition.tickets(self.wallet.address, seating.fixed_at)
        if not tickets:
            raise ProtocolError("this party had no ticket when the seat was opened: enrol, and claim a later one")
        draw = TicketDraw(DrawnDuty.SEAT, task_id, seating.number, seating.fixed_at, seating.seed)
        account = bytes.fromhex(self.wallet.address[2:])
        ticket = min(range(tickets), key=lambda number: draw.rank(account, number))
        hidden = commitment(account, task_id, self._secret(task_id)) if seating.verifies else NO_COMMITMENT
        self.market.seats.claim(self.wallet, task_id, ticket, hidden)
        return ticket

    def take_seat(self, task_id: bytes) -> bool:
        """Wait until claims are over and have the seat decided. Returns whether this party holds it."""
        seating = self.market.seats.seating(task_id)
        if not seating.is_held:
            self.connection.wait_until(seating.until)
            self.market.seats.decide(self.wallet, task_id)
        return self.market.registry.task(task_id).holder == self.wallet.address

    def profile(self, task_id: bytes) -> Profile:
        """Measure how much honest runs diverge, publish the profile and post its claim.

        Anybody may challenge it until its window is over (`sessions`), and nobody bids for the task before.

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
        """The profile on the task's terms, measured once."""
        if task_id not in self._profiles:
            task, terms = self.task(task_id), self.market.registry.terms(task_id)
            self._profiles[task_id] = measure_profile(
                task, self.executors, terms.profiled, terms.rerun_count, terms.margin
            )
        return self._profiles[task_id]

    def has_measured(self, task_id: bytes) -> bool:
        """Whether `measure` has its answer."""
        return task_id in self._profiles

    def forget(self, task_id: bytes) -> None:
        """As `ReplayingParty.forget`, with the profile."""
        super().forget(task_id)
        self._profiles.pop(task_id, None)

    def verify(self, task_id: bytes) -> list[Verdict]:
        """Replay the drawn segments and post the verdict. Missing or unreadable states are demanded on chain, once.

        No verdict accepts what trains a model that nobody gets: the last state is read, too.

        Raises:
            ProtocolError: the evidence for a segment is bad, and no claim about it could be defended.
            OperationalError: a segment couldn't be read; nothing is posted, try again.
        """
        try:
            verdicts = self.replay(task_id)
            accepts = all(verdict.outcome is Outcome.ACCEPTED for verdict in verdicts)
            if accepts and unreadable_states(self, task_id, [self.task(task_id).document.segments]):
                raise OperationalError(f"the trained state can't be read from {self.store.url}: nobody gets the model")
            self.post(task_id, verdicts)
        except (OperationalError, ProtocolError) as error:
            # A solver that answers leaf by leaf and keeps the states to itself earns no more bonds.
            task = self.market.registry.task(task_id)
            if not isinstance(error, Reverted) and not demanded_entries(self, task_id, task):
                demand_missing(self, task_id)
            raise
        return verdicts

    def replay(self, task_id: bytes) -> list[Verdict]:
        """Replay the drawn segments, with second looks at those that the thresholds reject."""
        task, proof, terms = self.task(task_id), self.proof(task_id), self.market.registry.terms(task_id)
        self.bring(self.market.proofs.proof(task_id).round)
        thresholds = self.thresholds(task_id)
        again = SecondLooker(task, self.executors, thresholds, terms.looks, terms.look_margin) if terms.looks else None
        return [
            verify_segment(
                self.store,
                task,
                proof,
                self.executor(task_id, task, segment),
                segment,
                thresholds,
                second_look=again,
                receipt_seed=self.receipt_seed(task_id, segment),
            )
            for segment in self.market.proofs.drawn_segments(task_id)
        ]

    def executor(self, task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        """The executor that replays a segment: the canonical kernels."""
        return self.executors(task.program, task.constants)

    def post(self, task_id: bytes, verdicts: Sequence[Verdict]) -> None:
        """Answer on chain for every drawn segment, with the forced error if the duty asks for one.

        Raises:
            ProtocolError: the evidence for a segment is bad, and no claim about it could be defended.
            OperationalError: a segment couldn't be read; nothing is posted, try again.
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
            self._sealed_roots.keep(task_id, duty.seating, claims[index].hidden)
            claims[index] = duty.plant(claims[index])
        self.keep()
        self.market.verdicts.post(self.wallet, task_id, claims, paths, looks, sealed)

    def unserved(self, task_id: bytes) -> None:
        """Say, instead of a verdict, that the solver doesn't serve the states; bonds answer for it.

        Raises:
            Reverted: the window is over, the duty isn't known, or this party has said so before.
        """
        self.duty(task_id)
        self.market.settlement.unserved(self.wallet, task_id)

    def open_watch(self, task_id: bytes) -> None:
        """Have the watchers drawn, once the beacon has given their round."""
        self.beacon.bring(self.wallet, self.market.verdicts.verdict(task_id).watch_round, self.rounds)
        self.market.verdicts.open_watch(self.wallet, task_id)

    def hidden_root(self, task_id: bytes, segment: int) -> bytes:
        """As `ErringParty.hidden_root`; executed once."""
        task, trace = self.task(task_id), self.trace(task_id, segment)
        seed = self.receipt_seed(task_id, segment)
        if seed is not None:
            return trace_receipt(trace, trace.first_step + trace.steps - 1, seed)
        return state_root(task.slot_types, trace.state((segment + 1) * task.document.interval))

    def _claim(self, task_id: bytes, verdict: Verdict, checkpoints: Sequence[TaskCheckpoint]) -> SegmentClaim:
        if verdict.claim is not None:
            return verdict.claim
        start, end = (checkpoints[verdict.segment + i].state_root for i in range(2))
        if not any(start) or not any(end):
            is_exact = self.market.registry.terms(task_id).is_exact
            return reject_zero_state(verdict.segment, start, end, is_exact)
        if verdict.outcome is not Outcome.REJECTED:
            raise OperationalError(f"segment {verdict.segment} can't be replayed: {verdict.detail}")
        raise ProtocolError(
            f"segment {verdict.segment} has bad evidence: {verdict.detail}; no claim about it can be defended. Post "
            "nothing, and demand the states from the solver (`demand_missing`) before second "
            f"{self.market.registry.task(task_id).deadline}: a solver that can't show them loses its stake"
        )


def reject_zero_state(segment: int, start: bytes, end: bytes, exact: bool = False) -> SegmentClaim:
    """The claim about a segment that begins or ends with a zero root, which is no state.

    The contract rejects the segment whatever the claim says, and admits no challenge of it.
    """
    worst = (INFINITE, INFINITE, INFINITE)
    receipt = NO_REPLAY if exact else bytes(32)
    roots = (segment, start, end, NO_REPLAY)
    return SegmentClaim(*roots, distances=worst, references=worst, before=receipt, receipt=receipt)
