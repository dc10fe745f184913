"""A false profile is convicted, whatever is false in it, by a party that knows nothing but the chain and the store."""

from dataclasses import replace
from random import Random

import pytest
from all_parties import Solver, Verifier, Whistleblower
from role_market import OFFER, Town, awarded, conclude, gain, seated, settle, submitted, verified

from hostile_players import LyingSums
from pol.chain.desks.market import Matter
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.demo.lying_players import LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import SumEvidence
from pol.dispute.position import Side
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import on_all_cores
from pol.graph.step_program import Component
from pol.incentives.payouts import bond_after
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.party.profile_evidence import ProfileEvidence
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profile_challenge import ProfileCharge, ProfileChargeKind
from pol.verification.profile.profile_claim import ProfileClaim
from pol.verification.profile.profile_document import Profile

pytestmark = pytest.mark.long

RERUNS = OFFER.rerun_count
CHARGES = [
    ProfileCharge(ProfileChargeKind.PORTION, 1),
    ProfileCharge(ProfileChargeKind.RERUN, 3),
    ProfileCharge(ProfileChargeKind.DISTANCE, 2, Component.PARAMETER),
    ProfileCharge(ProfileChargeKind.REFERENCE, 1, Component.OPTIMIZER),
]


class LyingMeasurement(ProfileEvidence):
    """Executions that are wrong in one place: one scalar of an execution, or one leaf of a sum."""

    def __init__(self, task: LoadedTask, reruns: int, charge: ProfileCharge) -> None:
        super().__init__(task, reruns, on_all_cores)
        self.charge = charge
        self._lying: dict[int, LyingTrace] = {}

    def portion(self, segment: int) -> SegmentTrace:
        honest = super().portion(segment)
        return (
            self._lied(honest)
            if (ProfileChargeKind.PORTION, segment) == (self.charge.kind, self.charge.index)
            else honest
        )

    def rerun(self, index: int) -> SegmentTrace:
        honest = super().rerun(index)
        return (
            self._lied(honest) if (ProfileChargeKind.RERUN, index) == (self.charge.kind, self.charge.index) else honest
        )

    def sums(self, charge: ProfileCharge) -> SumEvidence:
        honest = super().sums(charge)
        if charge != self.charge:
            return honest
        slots = honest.program.slots
        slot = next(i for i, s in enumerate(slots) if s.component is charge.component)
        return LyingSums(honest, slot, 0, 1)

    def _lied(self, honest: SegmentTrace) -> LyingTrace:
        if not self._lying:
            lie = draw_lie(honest, range(len(honest.program.nodes)), Random(5))
            self._lying[0] = LyingTrace(honest, lie)
        return self._lying[0]


class Liar(Verifier):
    """Posts a profile in which one thing is false, and defends it."""

    charge: ProfileCharge
    _executions: LyingMeasurement | None = None

    def measure(self, task_id: bytes) -> Profile:
        honest = super().measure(task_id)
        if self.market.registry.task(task_id).holder != self.wallet.address:
            return honest  # Before it sits there is nothing to lie about.
        return replace(honest, claim=self.falsified(task_id, honest.claim))

    def profile_evidence(self, task_id: bytes) -> LyingMeasurement:
        if self._executions is None:
            self._executions = LyingMeasurement(self.task(task_id), RERUNS, self.charge)
        return self._executions

    def falsified(self, task_id: bytes, claim: ProfileClaim) -> ProfileClaim:
        kind, index, measured = self.charge.kind, self.charge.index, self.profile_evidence(task_id)
        portions, reruns = list(claim.portions), list(claim.reruns)
        if kind is ProfileChargeKind.UNDERSTATED:
            least = [claim.ratios(component) for component in Component]
            first, second, third = (ratios.index(min(r for r in ratios if r is not None)) for ratios in least)
            return replace(claim, witnesses=(first, second, third))
        if kind is ProfileChargeKind.PORTION:
            portions[index] = replace(portions[index], end=end_of(measured.portion(index)))
        elif kind is ProfileChargeKind.RERUN:
            reruns[index] = replace(reruns[index], end=end_of(measured.rerun(index)))
        else:
            assert self.charge.component is not None
            total, place = measured.sums(self.charge).total(), self.charge.component - 1
            if kind is ProfileChargeKind.DISTANCE:
                a, b, c = (total if i == place else d for i, d in enumerate(reruns[index].distances))
                reruns[index] = replace(reruns[index], distances=(a, b, c))
            else:
                a, b, c = (total if i == place else r for i, r in enumerate(portions[index].references))
                portions[index] = replace(portions[index], references=(a, b, c))
        return replace(claim, portions=tuple(portions), reruns=tuple(reruns))


class Seer(Whistleblower):
    """Sees something wrong that isn't."""

    charge: ProfileCharge

    def profile_evidence(self, task_id: bytes) -> ProfileEvidence:
        if task_id not in self._profile_evidence:
            self._profile_evidence[task_id] = LyingMeasurement(self.task(task_id), RERUNS, self.charge)
        return self._profile_evidence[task_id]


def end_of(trace: SegmentTrace) -> bytes:
    return trace.state_root(trace.first_step + trace.steps)


def sitting(town: Town, name: str) -> tuple[Liar, bytes]:
    """Who is going to profile a new task."""
    liar = town.join(Liar, name)
    task_id, _ = submitted(town)
    seated(liar, task_id)
    return liar, task_id


def lying(town: Town, charge: ProfileCharge) -> tuple[Liar, bytes]:
    """A false profile of a new task."""
    liar, task_id = sitting(town, "liar")
    liar.charge = charge
    liar.profile(task_id)
    return liar, task_id


def play(sides: tuple[DisputeSession, DisputeSession]) -> int:
    """The number of moves until the game has a winner."""
    moves = 0
    while sides[0].game.winner(sides[0].dispute) is Side.NONE:
        assert sides[0].advance() or sides[1].advance()
        moves += 1
    return moves


@pytest.mark.parametrize("charge", CHARGES, ids=lambda charge: charge.kind.name.lower())
def test_whatever_is_false_is_convicted_in_a_dispute(town: Town, charge: ProfileCharge) -> None:
    whistleblower = town.join(Whistleblower, "w")
    liar, task_id = lying(town, charge)
    market, terms = liar.market, liar.market.registry.terms(task_id)
    assert whistleblower.check_profile(task_id)[0] == charge
    dispute = whistleblower.challenge_profile(task_id, charge)
    assert market.profiles.charge(dispute) == charge
    (defence,) = liar.sessions(task_id)
    moves = play((defence, whistleblower.session(task_id, dispute, Matter.PROFILE)))
    assert moves > 1
    assert market.profile_game.winner(dispute) is Side.CHALLENGER
    assert not market.profiles.standing(task_id).is_posted
    state = market.registry.task(task_id)
    assert (state.status, state.is_seated) == (Status.PROFILING, False)
    assert gain(whistleblower, tickets=1) == terms.verifier_stake // 2
    assert gain(liar, tickets=1) == -terms.verifier_stake


def test_a_false_profile_falls_and_the_task_goes_its_way(town: Town) -> None:
    """Understated thresholds need no dispute; the next profile stands against two who are wrong; everybody is paid."""
    verifier, solver, whistleblower = town.join(Verifier, "v"), town.join(Solver, "t"), town.join(Whistleblower, "w")
    liar, task_id = lying(town, ProfileCharge(ProfileChargeKind.UNDERSTATED, 0, Component.PARAMETER))
    market, terms = liar.market, liar.market.registry.terms(task_id)
    found = whistleblower.check_profile(task_id)
    assert {charge.kind for charge in found} == {ProfileChargeKind.UNDERSTATED}
    with pytest.raises(ProtocolError, match="is no dispute"):
        whistleblower.challenge_profile(task_id, found[0])
    whistleblower.convict_profile(task_id, found[0])
    assert gain(whistleblower, tickets=1) == terms.verifier_stake // 2
    with pytest.raises(OperationalError, match="no profile"):
        whistleblower.check_profile(task_id)

    seated(verifier, task_id)
    verifier.profile(task_id)
    assert whistleblower.check_profile(task_id) == []
    sessions = []
    for charge in CHARGES[1:3]:
        seer = town.join(Seer, f"seer {charge.kind}")
        seer.charge = charge
        sessions.append(seer.session(task_id, seer.challenge_profile(task_id, charge), Matter.PROFILE))
    for defence, attack in zip(verifier.sessions(task_id), sessions, strict=True):
        play((defence, attack))
        assert market.profile_game.winner(attack.dispute) is Side.ASSERTER
    bonds = sum(bond_after(terms.bond, terms.verifier_stake, earlier) // 2 for earlier in range(2))
    assert gain(verifier, tickets=1) == bonds - terms.verifier_stake

    with pytest.raises(OperationalError, match="no final profile"):
        solver.bid(task_id)
    conclude(verifier, task_id)
    awarded(solver, task_id)
    solver.train(task_id)
    verified(verifier, task_id)
    settle(verifier, task_id)
    assert market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED
    assert gain(verifier, tickets=1) == 2 * terms.verifier_fee + bonds


def test_what_is_on_chain_convicts_without_the_document(town: Town) -> None:
    """Who posts a digest of nothing: thresholds that are too high rest on witnesses that the chain has shown."""
    whistleblower = town.join(Whistleblower, "w")
    liar, task_id = sitting(town, "hiding")
    profiles = liar.market.profiles
    # A lie about the greatest distance: about any other one, the witness would be understated as well.
    witness = Verifier.measure(liar, task_id).claim.witnesses[0]
    liar.charge = ProfileCharge(ProfileChargeKind.DISTANCE, witness, Component.PARAMETER)
    false = liar.measure(task_id).claim
    assert false.witnesses[0] == witness
    profiles.post(liar.wallet, task_id, false, b"\x05" * 32)
    assert whistleblower.check_profile(task_id) == [liar.charge]
    dispute = whistleblower.challenge_profile(task_id, liar.charge)
    (defence,) = liar.sessions(task_id)
    play((defence, whistleblower.session(task_id, dispute, Matter.PROFILE)))
    assert not profiles.standing(task_id).is_posted


def test_who_is_right_too_late_gets_its_bond_back(town: Town) -> None:
    liar, task_id = lying(town, CHARGES[3])
    market, terms = liar.market, liar.market.registry.terms(task_id)
    first, second = town.join(Whistleblower, "x"), town.join(Whistleblower, "y")
    for whistleblower in (first, second):
        whistleblower.challenge_profile(task_id, CHARGES[3])
    dispute, _ = market.profiles.disputes(task_id)
    assert first.reclaim_profile(task_id) == []
    assert gain(second, tickets=1) == -bond_after(terms.bond, terms.verifier_stake, 1)
    play((liar.sessions(task_id)[0], first.session(task_id, dispute, Matter.PROFILE)))
    assert len(second.reclaim_profile(task_id)) == 1
    assert second.reclaim_profile(task_id) == []
    assert gain(second, tickets=1) == 0
