"""The verifier: profiles a task's threshold, replays drawn segments, posts distances and defends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf

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
from pol.roles.party.data_availability import demand_state, demanded_entries, lost_states, missing_states
from pol.roles.party.replaying_party import ReplayingParty
from pol.roles.process.defence import require_seat
from pol.roles.verifier.forced_error_duty import NO_REPLAY, ErringParty
from pol.training.storage.http_files import within
from pol.training.task.learning_proof import TaskCheckpoint, load_checkpoint
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile, require_thresholds
from pol.verification.verdict.second_look import SecondLooker
from pol.verification.verdict.segment_verification import load_evidence, verify_segment
from pol.verification.verdict.verdict import Outcome, Verdict

PROBES = 4
"""Log entries that are read before a seat is claimed, while no segment is drawn yet."""
LOOKS = 3
"""Looks in vain at the states of a task, until a verifier says that it isn't served."""


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
                task, self.attentive, terms.profiled, terms.rerun_count, terms.margin
            )
        return self._profiles[task_id]

    def has_measured(self, task_id: bytes) -> bool:
        """Whether `measure` has its answer."""
        return task_id in self._profiles

    def forget(self, task_id: bytes) -> None:
        """As `ReplayingParty.forget`, with the profile."""
        super().forget(task_id)
        self._profiles.pop(task_id, None)
        for key in [key for key in self._replayed if key[0] == task_id]:
            del self._replayed[key]

    @cached_property
    def vain_looks(self) -> Counter[tuple[bytes, int]]:
        """By task and seating: how often a state that the verdict needs couldn't be read."""
        return Counter()

    @cached_property
    def replayed(self) -> set[tuple[bytes, int]]:
        """Tasks and seatings whose drawn segments are all replayed: the verdict is ready, but for the model."""
        return set()

    @cached_property
    def _replayed(self) -> dict[tuple[bytes, bytes, int, bytes | None], Verdict]:
        """By task, log, segment and seed of its receipt: no replay is repeated."""
        return {}

    def unavailable_state(self, task_id: bytes) -> int | None:
        """The first log entry whose state a verdict may need and that can't be read: a verifier without it defaults.

        It is one of the `missing_states`; before the draw, of PROBES entries that nobody can foresee.

        Raises:
            OperationalError: the node failed, or the task itself can't be read.
        """
        try:
            drawn, missing = True, missing_states(self, task_id)
        except Reverted:
            drawn, missing = False, lost_states(self, task_id, self._probes(task_id))
        # What could be read before the draw says nothing about what is drawn.
        training = (task_id, self.market.registry.task(task_id).began, drawn)
        if training in self._probed:
            return None
        lost = next(missing, None)
        if lost is None:
            self._probed.add(training)
        return lost

    def _probes(self, task_id: bytes) -> list[int]:
        segments = self.task(task_id).document.segments
        drawn = [self.secret("probe", task_id, number.to_bytes(4, "big")) for number in range(PROBES)]
        return sorted({int.from_bytes(secret, "big") % (segments + 1) for secret in drawn})

    @cached_property
    def _probed(self) -> set[tuple[bytes, int, bool]]:
        """Trainings whose states could be read, before the draw or after."""
        return set()

    def verify(self, task_id: bytes, until: Callable[[], float] = lambda: inf) -> list[Verdict]:
        """Replay the drawn segments and post the verdict. A missing or unreadable state is demanded on chain, once.

        No verdict accepts what trains a model that nobody gets: the last state is read, too, behind the replays. No
        read and no replay begins after the second that ``until`` gives before them.

        Raises:
            ProtocolError: the evidence for a segment is bad, and no claim about it could be defended.
            OperationalError: a segment couldn't be read; nothing is posted, try again.
        """
        verdicts = self.replay(task_id, until())
        if all(verdict.outcome is Outcome.ACCEPTED for verdict in verdicts):
            last = self.proof(task_id).checkpoints[-1]
            if self._unread(task_id, last, last.index - 1, until()) is not None:
                raise OperationalError(f"the trained state can't be read from {self.store.url}: nobody gets the model")
        self.post(task_id, verdicts)
        return verdicts

    def replay(self, task_id: bytes, until: float = inf) -> list[Verdict]:
        """Replay the drawn segments, with second looks at those that the thresholds reject.

        Nothing is replayed before all their states are read. If one can't be, it is demanded as `verify` says, and the
        only verdict is that about its segment. Raises as `verify`.
        """
        self.bring(self.market.proofs.proof(task_id).round)
        task, terms, committed = self.task(task_id), self.market.registry.terms(task_id), self.committed(task_id)
        try:
            with within(until - self.connection.now()):
                proof = self.published_proof(task_id, *committed)
        except (OperationalError, ProtocolError):
            self._miss(task_id, task.document.segments)
            raise
        thresholds, segments = self.thresholds(task_id), self.market.proofs.drawn_segments(task_id)
        keys = {each: (task_id, proof.log_root, each, self.receipt_seed(task_id, each)) for each in segments}
        for segment in (each for each in segments if keys[each] not in self._replayed):
            ends = proof.checkpoints[segment : segment + 2]
            for entry in ends if all(any(end.state_root) for end in ends) else ():
                unread = self._unread(task_id, entry, segment, until)
                if unread is not None:
                    return [unread]
        self._require_time(task_id, until)
        again = SecondLooker(task, self.attentive, thresholds, terms.looks, terms.look_margin) if terms.looks else None
        verdicts = list[Verdict]()
        for segment in segments:
            verdict = self._replayed.get(keys[segment]) or verify_segment(
                self.store,
                task,
                proof,
                self.executor(task_id, task, segment),
                segment,
                thresholds,
                second_look=again,
                receipt_seed=keys[segment][-1],
            )
            verdicts.append(verdict)
            if verdict.claim is not None:
                self._replayed[keys[segment]] = verdict
        seating = self.seating(task_id)
        if seating not in self.replayed and all(verdict.claim is not None for verdict in verdicts):
            self.replayed.add(seating)
            # From now on only looks at the model count.
            del self.vain_looks[seating]
        return verdicts

    def _unread(self, task_id: bytes, entry: TaskCheckpoint, segment: int, until: float) -> Verdict | None:
        """The verdict that follows where a state can't be read; None if it can."""
        self._require_time(task_id, until)
        task = self.task(task_id)
        # One large state from a slow server would outlast the window.
        with within(until - self.connection.now()):
            found = load_evidence(segment, lambda: load_checkpoint(self.store, task, entry))
        if not isinstance(found, Verdict):
            return None
        self._miss(task_id, entry.index)
        return found

    def _miss(self, task_id: bytes, entry: int) -> None:
        """A state can't be read: it is demanded, unless this party has demanded one.

        A solver that answers leaf by leaf and keeps the states to itself earns no more bonds.
        """
        self.vain_looks[self.seating(task_id)] += 1
        if not demanded_entries(self, task_id, self.market.registry.task(task_id)):
            demand_state(self, task_id, entry)

    def _require_time(self, task_id: bytes, until: float) -> None:
        if self.connection.now() > until:
            # A server that trickles has had all the time that there was.
            self.vain_looks[self.seating(task_id)] += LOOKS
            raise OperationalError(f"the states couldn't be read from {self.store.url} in the time for it")

    def seating(self, task_id: bytes) -> tuple[bytes, int]:
        """The task, and the number of its present seating."""
        return task_id, self.market.seats.seating(task_id).number

    def executor(self, task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        """The executor that replays a segment: the canonical kernels."""
        return self.attentive(task.program, task.constants)

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
        self.bring(self.market.proofs.proof(task_id).round)
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
            "nothing, and demand the states from the solver (`demand_state`) before second "
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
