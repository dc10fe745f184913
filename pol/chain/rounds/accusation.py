"""From what an audit finds to what a contract decides: evidence by roots, and disputes of executions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product

from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.round_contracts import RoundContracts
from pol.chain.rounds.round_evidence import AccusedSource
from pol.commitments.program_hash import program_header
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.round_evidence import replay_claim_of, trace_of
from pol.errors import UnsupportedError
from pol.execution.executor import ExecutorFactory
from pol.rounds.auditing.round_audit import Finding, Lie
from pol.rounds.log.log_entries import ClaimEntry, RosterEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.roster import Roster
from pol.rounds.round_claim import INITIAL

_REFUSED = frozenset({"NothingWrong", "NotAtPlace", "OtherText", "IndexOutOfRange"})
"""What the contract says of evidence for another lie than the one that there is."""


@dataclass(frozen=True)
class Accuser:
    """A party that brings what it has found in a log before the contracts of a plan."""

    contracts: RoundContracts
    wallet: Wallet
    plan_id: bytes
    commitment: PlanCommitment

    def accuse(self, rounds: LoggedRounds, finding: Finding) -> TxReceipt:
        """Show a lie that roots reveal; its author is slashed.

        Raises:
            UnsupportedError: no contract decides this lie by roots: demand what is missing, or dispute the execution.
            Reverted: the author can't be accused (any more).
            OperationalError: store or node failed.
        """
        for show in self._evidence(rounds, finding):
            try:
                return show()
            except Reverted as error:
                if error.error not in _REFUSED:
                    raise
        raise UnsupportedError(
            f"no contract decides by roots that {finding.worker} {finding.detail}: demand what is missing, or dispute "
            "the execution"
        )

    def dispute(self, rounds: LoggedRounds, entry: ClaimEntry, executors: ExecutorFactory) -> int:
        """Dispute the execution of a claim by one's own; returns the number of the dispute.

        Raises:
            ProtocolError: the claim is false by its roots, or true.
            OperationalError: something is withheld, or the node failed.
        """
        trace = trace_of(rounds, entry, executors)
        header = program_header(trace.program)
        payload = ReplayPlayer(trace).open(replay_claim_of(entry).first(header, self.contracts.game.bits))
        return self.contracts.disputes.dispute(self.wallet, self.plan_id, entry, header, payload)

    def _evidence(self, rounds: LoggedRounds, finding: Finding) -> Iterator[Callable[[], TxReceipt]]:
        """What may show a lie, in the order in which to try it."""
        evidence, about = self.contracts.evidence, (self.wallet, self.plan_id)
        entry = rounds.claims.get(finding.claim)
        if finding.lie is Lie.EQUIVOCATION and entry is None:
            yield lambda: self._two_rosters(rounds, finding.round)
        elif entry is None:
            if finding.lie is Lie.ROSTER:
                yield from self._shared_seats(rounds, finding.round)
                yield from self._late_members(rounds, finding.round)
            return
        elif finding.lie is Lie.EQUIVOCATION:
            other = rounds.claims[finding.against]
            yield lambda: evidence.show_two_claims(*about, entry, other)
        elif finding.lie is Lie.PHASE:
            yield lambda: evidence.show_other_phase(*about, entry, self.commitment)
            if (roster := rounds.roster_of(entry)) and any(m.worker == entry.worker for m in roster.members):
                yield lambda: evidence.show_other_seat(*about, entry, self.commitment, roster)
                yield lambda: evidence.show_other_author(*about, entry, self.commitment, roster)
        elif finding.lie is Lie.ROSTER and (provisional := rounds.roster_of(entry)):
            yield lambda: evidence.show_other_author(*about, entry, self.commitment, provisional)
        elif finding.lie is Lie.START:
            yield lambda: evidence.show_other_start(*about, entry, self.commitment, rounds.sources(entry))
        elif finding.lie is Lie.SOURCE:
            for slot in range(len(self.commitment.plan.phases[entry.claim.phase].sources)):
                yield from self._wrong_source(rounds, entry, slot)

    def _wrong_source(self, rounds: LoggedRounds, entry: ClaimEntry, slot: int) -> Iterator[Callable[[], TxReceipt]]:
        evidence, sources = self.contracts.evidence, rounds.sources(entry)
        if slot >= len(sources):
            return
        about = (self.wallet, self.plan_id, AccusedSource(entry, self.commitment, sources, slot))
        source = sources[slot]
        if source.claim == INITIAL:
            yield lambda: evidence.show_other_initial(*about)
            yield lambda: evidence.show_other_rule(*about)
            return
        named = rounds.claims.get(source.claim)
        if named is None:
            return
        claim, end = named.claim, [each.root for each in rounds.end(named)]
        yield lambda: evidence.show_other_source(*about, claim, end)
        yield lambda: evidence.show_other_rule(*about, claim)
        if roster := rounds.roster_of(entry):
            yield lambda: evidence.show_other_member(*about, claim, roster)

    def _two_rosters(self, rounds: LoggedRounds, round_: int) -> TxReceipt:
        pairs = combinations(_signed(rounds, round_), 2)
        pair = next((a, b) for a, b in pairs if a[0].provisional == b[0].provisional)
        return self.contracts.evidence.show_two_rosters(self.wallet, self.plan_id, *pair)

    def _shared_seats(self, rounds: LoggedRounds, round_: int) -> Iterator[Callable[[], TxReceipt]]:
        """Seats that rosters of a round give to two members."""
        holders: dict[int, dict[str, tuple[str, bytes, bytes]]] = {}
        for roster, signature in _signed(rounds, round_):
            for member in roster.members:
                shown = (member.worker, roster.encode(), signature)
                holders.setdefault(member.seat, {}).setdefault(member.worker, shown)
        for one, other, *_ in (list(shown.values()) for shown in holders.values() if len(shown) > 1):
            yield partial(self.contracts.evidence.show_shared_seat, self.wallet, self.plan_id, round_, one, other)

    def _late_members(self, rounds: LoggedRounds, round_: int) -> Iterator[Callable[[], TxReceipt]]:
        """Members of a final roster that its provisional one hasn't."""
        signed = _signed(rounds, round_)
        for begun, last in product(signed, signed):
            if not begun[0].provisional or last[0].provisional:
                continue
            known = {member.worker for member in begun[0].members}
            for member in last[0].members:
                if member.worker not in known:
                    about = (self.wallet, self.plan_id, begun, last, member.worker)
                    yield partial(self.contracts.evidence.show_late_member, *about)


def _signed(rounds: LoggedRounds, round_: int) -> list[tuple[Roster, bytes]]:
    """The rosters of a round, each with its coordinator's signature."""
    signatures = {entry.document: entry.signature for entry in rounds.entries if isinstance(entry, RosterEntry)}
    return [(roster, signatures[roster.document.hex()]) for roster in rounds.rosters[round_]]
