"""From what an audit finds to what a contract decides: evidence by roots, and disputes of executions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations

from web3 import Web3
from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.rounds.plan_terms import PlanCommitment
from pol.chain.rounds.round_contracts import RoundContracts
from pol.chain.rounds.round_demands import length_content
from pol.chain.rounds.round_evidence import AccusedSource, RosterWord
from pol.chain.rounds.signed_structs import first_member, logged_entry
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_header
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.round_evidence import replay_claim_of, trace_of
from pol.errors import UnsupportedError
from pol.execution.executor import ExecutorFactory
from pol.rounds.auditing.round_audit import Finding, Lie
from pol.rounds.log.log_entries import ClaimEntry, RosterEntry, encode_entry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.log.rounds_log import LogHead
from pol.rounds.roster import Roster
from pol.rounds.round_claim import INITIAL

_REFUSED = frozenset({"NothingWrong", "NotAtPlace", "OtherText", "IndexOutOfRange", "Panic"})
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

    def accuse_members(self, rounds: LoggedRounds, head: LogHead) -> bool:
        """Show a roster with a member that had no stake; False if the log, which was read whole, has none.

        A member of the newest roster that has left or was slashed may still be one by right: the keeper is asked how
        long its log is, and what it signs with that member from then on is shown.

        Raises:
            Reverted: the coordinator can't be accused (any more).
        """
        for is_shown, _, call in self.member_calls(rounds, head):
            call()
            if is_shown:
                return True
        return False

    def member_calls(self, rounds: LoggedRounds, head: LogHead) -> Iterator[tuple[bool, str, Callable[[], object]]]:
        """What `accuse_members` sends, each with whether it shows a lie, and why."""
        demands, about = self.contracts.demands, (self.wallet, self.plan_id)
        asked, bonds = {demand.content for demand in demands.demands(self.plan_id)}, self.contracts.bonds
        # Events say whose standing to ask for: nobody's, in a plan where all members have their stakes.
        staked = {event["worker"] for event in bonds.events("Joined", id=self.plan_id)}
        staked -= {event["worker"] for name in ("Departed", "Slashed") for event in bonds.events(name, id=self.plan_id)}
        for name, (index, entry, roster) in _last_rosters(rounds, {worker.lower() for worker in staked}).items():
            worker = Web3.to_checksum_address(name)
            bond, signature = bonds.bond(self.plan_id, worker), rounds.signature_of(roster)
            show = partial(self.contracts.evidence.show_unstaked_member, *about, roster, signature, worker)
            if bond.standing is Standing.NONE:
                yield True, f"the roster of round {roster.round} has {worker}, which has never put up a stake", show
            elif bond.standing not in (Standing.LEFT, Standing.SLASHED):
                continue
            elif 0 < bond.entries <= index:
                log = CheckpointLog([keccak256(encode_entry(each)) for each in rounds.entries])
                logged = logged_entry(entry, index, head, log.inclusion(index))
                why = f"the roster of round {roster.round} has {worker}, which has no stake any more"
                yield True, why, partial(show, logged=logged)
            elif not bond.entries and roster.round == max(rounds.rosters) and length_content(worker) not in asked:
                why = f"{worker} has no stake any more, and is in the newest roster"
                yield False, why, partial(demands.demand_length, *about, worker)

    def _evidence(self, rounds: LoggedRounds, finding: Finding) -> Iterator[Callable[[], TxReceipt]]:
        """What may show a lie, in the order in which to try it."""
        evidence, about = self.contracts.evidence, (self.wallet, self.plan_id)
        entry = rounds.claims.get(finding.claim)
        if entry is None:
            is_of_rosters = finding.lie in (Lie.EQUIVOCATION, Lie.ROSTER)
            for shown in _contradictions(rounds, finding.round) if is_of_rosters else ():
                yield partial(evidence.show_rosters, *about, finding.round, *shown)
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


def _last_rosters(rounds: LoggedRounds, besides: Collection[str]) -> dict[str, tuple[int, RosterEntry, Roster]]:
    """Of each member but these the last roster that has it, with its entry and where that stands in the log."""
    rosters = [roster for of_round in rounds.rosters.values() for roster in of_round]
    wanted = {member.worker for roster in rosters for member in roster.members}.difference(besides)
    found = dict[str, tuple[int, RosterEntry, Roster]]()
    if not wanted:
        return found
    known = {roster.document.hex(): roster for roster in rosters}
    for index in range(len(rounds.entries) - 1, -1, -1):
        entry = rounds.entries[index]
        if isinstance(entry, RosterEntry) and (roster := known.get(entry.document)):
            here = wanted.intersection(member.worker for member in roster.members)
            found |= dict.fromkeys(here, (index, entry, roster))
            wanted -= here
    return found


def _contradictions(rounds: LoggedRounds, round_: int) -> Iterator[tuple[RosterWord, RosterWord]]:
    """What a round's rosters say of two workers and can't: two rosters, seats that members share, late members."""
    rosters = rounds.rosters.get(round_, ())

    def said(roster: Roster, worker: str) -> RosterWord:
        return roster.encode(), rounds.signature_of(roster), worker

    for one, other in permutations(rosters, 2):
        if one.provisional == other.provisional or (one.provisional and other.begun != one.document):
            yield said(one, one.members[0].worker), said(other, other.members[0].worker)
        seats, known = {member.seat: member.worker for member in one.members}, {member.worker for member in one.members}
        for member in other.members:
            if (holder := seats.get(member.seat, member.worker)) != member.worker:
                yield said(one, holder), said(other, member.worker)
            elif one.provisional and not other.provisional and member.worker not in known:
                yield said(one, member.worker), said(other, member.worker)
    # A text that is no roster: it says a thing twice, or is beside another one of its kind. One without a member, or
    # without a kind, makes nobody the author of anything.
    texts = [text for text in rounds.texts if text.round == round_]
    firsts = [(text, worker) for text in texts if (worker := first_member(text.text))]
    for text, worker in firsts:
        bad = (text.text, text.signature, worker)
        yield (*bad, False), (*bad, True)
        yield from (((*bad, False), said(roster, roster.members[0].worker)) for roster in rosters)
        others = ((other.text, other.signature, by, False) for other, by in firsts if other.text != text.text)
        yield from (((*bad, False), other) for other in others)
