"""The whistleblower: replays verdicts, watches for rewards, and challenges false claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pol.chain.account.wallet import Reverted
from pol.chain.desks.challenges import NO_PROGRAM, ClaimCharge, ClaimChargeKind
from pol.chain.desks.market import Matter
from pol.chain.desks.task_registry import Status
from pol.chain.desks.verdicts import entry, evidence, look_hash
from pol.claims.segment_claim import SegmentClaim
from pol.dispute.play.receipt_evidence import trace_receipt
from pol.errors import OperationalError, ProtocolError
from pol.incentives.jackpot import watch_commitment
from pol.incentives.sortition import DrawnDuty, TicketDraw, watch_limit
from pol.roles.party.second_look_evidence import LOOK_CHARGES
from pol.roles.process.defence import require_defensible
from pol.roles.whistleblower.objector import FalseSegment, Objector, UnseenSegment
from pol.roles.whistleblower.profile_challenger import ProfileChallenger
from pol.roles.whistleblower.second_opinion import FLAKY


@dataclass(frozen=True)
class FalseClaim:
    """A false claim of a verdict, and the charge that says so on chain."""

    charge: ClaimCharge
    claim: SegmentClaim
    replay: bytes = b""
    """The end of this party's own replay; empty if unknown."""
    entry: bytes = b""
    """The true entry, by this party's replay (`pol.chain.desks.verdicts.entry`)."""


@dataclass(frozen=True)
class VerdictCheck:
    """Result of checking a verdict: its false claims, most basic first, and the segments that couldn't be replayed."""

    findings: tuple[FalseClaim, ...]
    unseen: tuple[UnseenSegment, ...]


class Whistleblower(ProfileChallenger, Objector):
    """Checks verdicts, profiles and whole logs for rewards."""

    @cached_property
    def _examined(self) -> dict[tuple[bytes, int, tuple[SegmentClaim, ...]], VerdictCheck]:
        return {}

    def check(self, task_id: bytes) -> list[FalseClaim]:
        """False claims of the current verdict, most basic first: a wrong replay makes all distances meaningless."""
        return list(self.examine(task_id).findings)

    def examine(self, task_id: bytes, opinion: int = 0) -> VerdictCheck:
        """Replay the segments of the current verdict; ``opinion`` 1 replays anew, in another way if there is one."""
        seating = self.market.registry.task(task_id).seating
        looks = self.market.verdicts.looks(task_id, seating)
        findings, unseen = list[FalseClaim](), list[UnseenSegment]()
        for index, claim in enumerate(self.market.verdicts.claims(task_id, seating)):
            own = self.seen_claim(task_id, claim.segment, opinion, self.receipt_seed(task_id, claim.segment))
            if isinstance(own, UnseenSegment):
                unseen.append(own)
                continue
            charges = self.charges(task_id, index, claim, own, looks.get(index))
            if charges:
                truth = self._entry(task_id, own)
                findings += [FalseClaim(charge, claim, own.replay, truth) for charge in charges]
        return VerdictCheck(tuple(findings), tuple(unseen))

    def _entry(self, task_id: bytes, own: SegmentClaim) -> bytes:
        """The true entry of a segment: this party's claim, and its second look where one is due."""
        look = self.own_look(task_id, own)
        return entry(own, look_hash(look))

    def examined_twice(self, task_id: bytes) -> VerdictCheck:
        """As `examine`; where something seems false, all is replayed a second time before anything is said.

        Raises:
            OperationalError: the second result differs, or node or store failed.
        """
        key = self._verdict_of(task_id)
        if key not in self._examined:
            first = self.examine(task_id)
            if first.findings:
                self.forget(task_id)
                # Servers show now this and now that: it says nothing about what is false.
                if self.examine(task_id, 1).findings != first.findings:
                    self.forget(task_id)
                    raise OperationalError(FLAKY)
            self._examined[key] = first
        return self._examined[key]

    def examine_again(self, task_id: bytes) -> None:
        """Forget an examination that has found nothing in what it saw, if more can be seen now."""
        checked = self._examined.get(self._verdict_of(task_id))
        if checked and not checked.findings and any(self.is_shown(task_id, unseen) for unseen in checked.unseen):
            del self._examined[self._verdict_of(task_id)]

    def has_examined(self, task_id: bytes) -> bool:
        """Whether `examined_twice` has its answer."""
        return self._verdict_of(task_id) in self._examined

    def _verdict_of(self, task_id: bytes) -> tuple[bytes, int, tuple[SegmentClaim, ...]]:
        seating = self.market.registry.task(task_id).seating
        return task_id, seating, tuple(self.market.verdicts.claims(task_id, seating))

    def watched(self, task_id: bytes) -> list[int]:
        """This party's tickets that are drawn to watch the verdict; empty while there is none, or none is drawn."""
        number, since, seed, until = self.market.verdicts.read("seating", task_id)
        if not until:
            return []
        tickets = self.market.sortition.tickets(self.wallet.address, since)
        draw = TicketDraw(DrawnDuty.WATCH, task_id, number, since, bytes(seed))
        most = watch_limit(self.market.sortition.total(since), self.market.sortition.watchers())
        account = bytes.fromhex(self.wallet.address[2:])
        return [ticket for ticket in range(tickets) if draw.rank(account, ticket) < most]

    def watches(self) -> Mapping[bytes, int]:
        """As `Role.watches`."""
        drawn = self.connection.once(("watches", self), self._drawn_watches)
        return {task_id: until for task_id, until in drawn.items() if not self.has_examined(task_id)}

    def _drawn_watches(self) -> dict[bytes, int]:
        now, drawn = self.connection.now(), dict[bytes, int]()
        for event in self.market.verdicts.events("WatchOpened"):
            task_id, until = bytes(event["taskId"]), int(event["until"])
            is_open = until >= now and self.market.registry.task(task_id).status is Status.WATCHED
            with suppress(Reverted):  # of a node whose clock is behind the draw
                if is_open and self.watched(task_id):
                    drawn[task_id] = until
        return drawn

    def examined(self) -> Iterable[bytes]:
        """As `Role.examined`."""
        profiles = {key[0] for key, false in self._checked.items() if false}
        verdicts = {key[0] for key, checked in self._examined.items() if checked.findings}
        logs = {
            key[0] for key, looks in self._looks.items() if any(isinstance(f, FalseSegment) for f in looks.values())
        }
        return profiles | verdicts | logs

    def has_found(self, task_id: bytes) -> bool:
        """Whether this party knows that the profile or the verdict is false."""
        if self.market.registry.task(task_id).status is Status.PROFILING:
            return self.has_checked(task_id) and bool(self.checked_twice(task_id))
        return self.has_examined(task_id) and bool(self.examined_twice(task_id).findings)

    def unsaid_until(self, task_id: bytes) -> int | None:
        """As `Role.unsaid_until`: the deadline of a commitment to an error in a watched verdict."""
        is_watched = self.market.registry.task(task_id).status is Status.WATCHED
        is_drawn = is_watched and self.has_found(task_id) and self.watched(task_id)
        return self.market.verdicts.verdict(task_id).watch_until if is_drawn else None

    def watch(self, task_id: bytes) -> list[FalseClaim]:
        """Look for false entries, and commit every drawn ticket to the first, in the last seconds of the watch.

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

    def commit(self, task_id: bytes, finding: FalseClaim, tickets: Sequence[int]) -> None:
        """Commit drawn tickets to a false entry.

        Raises:
            Reverted: commitments are taken only at the end of the watch.
        """
        seating = self.market.verdicts.verdict(task_id).seating
        hidden = self.commitment(task_id, seating, finding.charge.index, finding.entry)
        for ticket in tickets:
            self.market.jackpot.watch(self.wallet, task_id, ticket, hidden)

    def collect(self, task_id: bytes, seating: int, index: int) -> int:
        """Claim the unpaid watch rewards for an error, once the task is closed; returns their number."""
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
        """A watcher's commitment to the true entry of a false claim; it reveals nothing of it."""
        account = bytes.fromhex(self.wallet.address[2:])
        return watch_commitment(account, task_id, seating, index, truth, self._watch_salt(task_id, seating))

    def _watch_salt(self, task_id: bytes, seating: int) -> bytes:
        return self.secret("watch", task_id, seating.to_bytes(4, "big"))

    def challenge(self, task_id: bytes, finding: FalseClaim) -> int:
        """Put up the bond and open this party's own version of a claim; returns the number of the dispute.

        Other challenges only raise the bond (`Challenges.bond_of`). The bond comes back to a challenger that is right,
        or is still in dispute when the verdict falls (`reclaim`).

        Raises:
            ProtocolError: the policy doesn't admit the clock, or the contract refuses the challenge.
        """
        terms, charge = self.market.registry.terms(task_id), finding.charge
        self.policy.require_clock(terms)
        require_defensible(self, task_id, terms, self.market.game)
        self.require_proofs(task_id)
        verdicts, seating = self.market.verdicts, self.market.registry.task(task_id).seating
        placed = verdicts.placed(task_id, seating, charge.index)
        if placed.claim != finding.claim:
            raise ProtocolError("another claim stands there now: check the verdict again")
        look = verdicts.looks(task_id, seating)[charge.index] if charge.kind in LOOK_CHARGES else None
        self._require_same(task_id, finding)
        header, payload = self.opening_against(task_id, finding.claim, charge, look, self.market.game.bits)
        self.require_kept()
        if look is None:
            number = self.market.challenges.challenge(self.wallet, task_id, charge, placed, header, payload)
            if charge.kind is ClaimChargeKind.RECEIPT:
                # The opening is the trace of a whole step. Before the challenge somebody could have copied it.
                trace = self.trace(task_id, finding.claim.segment)
                self.published_traces.publish(trace, trace.first_step + trace.steps - 1)
            return number
        rerun = charge.kind is ClaimChargeKind.LOOK_RERUN
        program = self.second_looks(task_id).proved(charge.rerun) if rerun else NO_PROGRAM
        told = (charge, placed, look, header, payload, program)
        return self.market.challenges.challenge_second_look(self.wallet, task_id, *told)

    def _require_same(self, task_id: bytes, finding: FalseClaim) -> None:
        """Check that the execution for the dispute is the one that found the error."""
        trace, claim, kind = self.trace(task_id, finding.claim.segment), finding.claim, finding.charge.kind
        end, seed = trace.first_step + trace.steps, self.receipt_seed(task_id, claim.segment)
        is_same = not finding.replay or trace.state_root(end) == finding.replay
        if kind is ClaimChargeKind.BEFORE:
            is_same = is_same and trace.state_root(end - 1) != claim.before
        elif kind is ClaimChargeKind.RECEIPT and seed is not None:
            is_same = is_same and trace.state_root(end - 1) == claim.before
            is_same = is_same and trace_receipt(trace, end - 1, seed) != claim.receipt
        if not is_same:
            self.forget(task_id)
            raise OperationalError(FLAKY)

    def reclaim(self, task_id: bytes) -> list[int]:
        """Settle this party's disputes about the verdict and the log that are over or moot; returns their numbers."""
        settled = []
        for matter in (Matter.VERDICT, Matter.OBJECTION, Matter.COUNTERCLAIM):
            desk = self.market.courts[matter].desk
            for number in desk.settleable(task_id, self.wallet.address):
                desk.settle_once(self.wallet, number)
                settled.append(number)
        return settled
