"""Parties on an embedded chain, with the digits: lies about distances, defaults, tasks that aren't what they seem."""

from dataclasses import replace
from pathlib import Path

import pytest
from town import OFFER, Town, profiled, until_proof

from pol.chain.market import Status, TaskOutcome
from pol.chain.wallet import Reverted
from pol.commitments.keccak import keccak256
from pol.dispute.hostile import LyingSums
from pol.dispute.players import SumPlayer
from pol.dispute.position import Kind, Side
from pol.errors import OperationalError, ProtocolError
from pol.incentives.payouts import bond_after
from pol.roles.solver import Solver
from pol.roles.submitter import Submitter
from pol.roles.verifier import Verifier
from pol.roles.whistleblower import Finding, Whistleblower
from pol.training import digits


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


@pytest.mark.parametrize("fights", [True, False])
@pytest.mark.parametrize("kind", [Kind.DISTANCE, Kind.REFERENCE])
def test_a_verifier_that_lies_about_a_distance_is_slashed(town: Town, kind: Kind, fights: bool) -> None:
    """A right replay and a wrong sum: the game goes down to a leaf, or the liar sees that it is wrong and gives up."""
    task_id, _, verifier, _ = until_proof(town)
    (verdict,) = verifier.replay(task_id)
    claim = verdict.claim
    assert claim is not None
    field = "distances" if kind is Kind.DISTANCE else "references"
    honest = getattr(claim, field)
    lie = replace(claim, **{field: (honest[0], honest[1], honest[2] + 1)})
    verifier.post(task_id, [replace(verdict, claim=lie)])
    whistleblower = town.join(Whistleblower, "w")
    (finding,) = whistleblower.check(task_id)
    assert (finding.kind, finding.component) == (kind, 3)
    dispute = whistleblower.challenge(task_id, finding)
    defence, attack = verifier.defend(task_id), whistleblower.attack(task_id, finding, dispute)
    if fights:
        assert isinstance(defence.player, SumPlayer)
        sums = defence.player.sums
        slot = next(i for i, s in enumerate(sums.program.slots) if s.component == 3)
        defence = replace(defence, player=SumPlayer(LyingSums(sums, slot, 0, 1)))
    made = []
    while whistleblower.game.winner(dispute) is Side.NONE:
        made.append(defence.advance() or attack.advance())
    assert whistleblower.game.winner(dispute) is Side.CHALLENGER
    assert (len(made) > 1) == fights
    state = whistleblower.market.task(task_id)
    assert state.status is Status.DRAWN
    assert int(state.verifier, 16) == 0


@pytest.mark.parametrize("kind", [Kind.DISTANCE, Kind.REFERENCE])
def test_an_honest_distance_is_defended_from_chain_and_store_alone(town: Town, kind: Kind) -> None:
    """The defending process is a new one: it has the key, the chain and the store."""
    task_id, _, verifier, _ = until_proof(town)
    verifier.verify(task_id)
    with pytest.raises(OperationalError, match="nobody disputes"):
        verifier.defend(task_id)
    whistleblower = town.join(Seer, "w")
    assert Whistleblower.check(whistleblower, task_id) == []
    finding = Finding(0, whistleblower.market.claims(task_id, 1)[0], kind, 1)
    dispute = whistleblower.challenge(task_id, finding)
    again = Verifier(town.connection, town.deployment, keccak256(b"v"), town.store_url)
    defence, attack = again.defend(task_id), whistleblower.attack(task_id, finding, dispute)
    while whistleblower.game.winner(dispute) is Side.NONE:
        defence.advance() or attack.advance()
    assert whistleblower.game.winner(dispute) is Side.ASSERTER


def test_an_honest_verifier_defends_several_disputes_at_once(town: Town) -> None:
    task_id, _, verifier, _ = until_proof(town)
    verifier.verify(task_id)
    market, terms = verifier.market, verifier.market.terms(task_id)
    claim = market.claims(task_id, 1)[0]
    attacks = []
    for name, kind in (("w", Kind.DISTANCE), ("x", Kind.REFERENCE), ("y", Kind.DISTANCE)):
        whistleblower = town.join(Seer, name)
        finding = Finding(0, claim, kind, 1)
        attacks.append(whistleblower.attack(task_id, finding, whistleblower.challenge(task_id, finding)))
    assert market.disputes(task_id) == [attack.dispute for attack in attacks]
    while market.disputes(task_id):
        made = [duel.advance() for duel in (*verifier.defences(task_id), *attacks)]
        assert any(made)
    bonds = [bond_after(terms.bond, terms.verifier_stake, earlier) for earlier in range(3)]
    assert market.credit(verifier.wallet.address) == sum(bond // 2 for bond in bonds)
    town.connection.wait_until(market.task(task_id).deadline)
    market.settle(verifier.wallet, task_id)
    assert market.task(task_id).outcome is TaskOutcome.ACCEPTED


def test_who_is_right_too_late_gets_its_bond_back(town: Town) -> None:
    """Two see the lie; the liar gives up in one dispute, and the other is moot: nobody has to play it on."""
    task_id, _, verifier, _ = until_proof(town)
    (verdict,) = verifier.replay(task_id)
    claim = verdict.claim
    assert claim is not None
    lie = replace(claim, distances=(claim.distances[0], claim.distances[1], claim.distances[2] + 1))
    verifier.post(task_id, [replace(verdict, claim=lie)])
    first, second = town.join(Whistleblower, "w"), town.join(Whistleblower, "x")
    market, terms = first.market, first.market.terms(task_id)
    numbers = []
    for whistleblower in (first, second):
        (finding,) = whistleblower.check(task_id)
        numbers.append(whistleblower.challenge(task_id, finding))
    assert (first.reclaim(task_id), second.reclaim(task_id)) == ([], [])
    with pytest.raises(Reverted, match="NotMoot"):
        market.release_bond(second.wallet, numbers[1])
    assert verifier.defend(task_id).advance() is not None
    assert market.task(task_id).status is Status.DRAWN
    assert (market.disputes(task_id), verifier.defences(task_id)) == ([], [])
    assert (first.reclaim(task_id), second.reclaim(task_id), second.reclaim(task_id)) == ([], numbers[1:], [])
    assert market.credit(first.wallet.address) == terms.bond + terms.verifier_stake // 2
    assert market.credit(second.wallet.address) == bond_after(terms.bond, terms.verifier_stake, 1)
    town.connection.wait_until(first.game.deadline(numbers[1]))
    first.game.timeout(first.wallet, numbers[1])
    assert market.credit(second.wallet.address) == bond_after(terms.bond, terms.verifier_stake, 1)


class Seer(Whistleblower):
    """Sees a difference in the first leaf of the first slot that isn't there."""

    def player(self, task_id: bytes, finding: Finding) -> SumPlayer:
        honest = super().player(task_id, finding)
        assert isinstance(honest, SumPlayer)
        return SumPlayer(LyingSums(honest.sums, 0, 0, 1))


def test_an_honest_verdict_settles_and_pays_to_the_wei(town: Town) -> None:
    task_id, submitter, verifier, solver = until_proof(town)
    terms, state = submitter.market.terms(task_id), submitter.market.task(task_id)
    verifier.verify(task_id)
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        submitter.market.settle(submitter.wallet, task_id)
    town.connection.wait_until(submitter.market.task(task_id).deadline)
    submitter.market.settle(submitter.wallet, task_id)
    credit = submitter.market.credit
    assert credit(solver.wallet.address) == state.price + terms.solver_stake
    assert credit(verifier.wallet.address) == terms.verifier_fee + terms.verifier_stake
    assert credit(submitter.wallet.address) == state.fee - state.price - terms.verifier_fee
    before = solver.wallet.balance() + solver.wallet.gas_paid
    solver.withdraw()
    assert solver.wallet.balance() + solver.wallet.gas_paid == before + state.price + terms.solver_stake
    solver.withdraw()  # nothing left: no transaction, no error
    assert submitter.market.task(task_id).outcome is TaskOutcome.ACCEPTED


def test_a_solver_that_vanishes_defaults(town: Town) -> None:
    submitter, verifier, solver = town.join(Submitter, "s"), town.join(Verifier, "v"), town.join(Solver, "t")
    task_id = submitter.submit(digits.captured(2), OFFER)
    verifier.join(task_id)
    profiled(verifier, task_id)
    solver.accept(task_id)
    with pytest.raises(OperationalError, match="hasn't committed"):
        verifier.proof(task_id)
    town.connection.wait_until(submitter.market.task(task_id).deadline)
    submitter.market.claim_solver_default(submitter.wallet, task_id)
    assert submitter.market.task(task_id).outcome is TaskOutcome.SOLVER_DEFAULTED


def test_a_published_task_that_is_not_the_one_on_chain_is_refused(town: Town) -> None:
    """The document's digest is on chain: another document under other terms is noticed before anybody stakes."""
    submitter, verifier = town.join(Submitter, "s"), town.join(Verifier, "v")
    task_id = submitter.submit(digits.captured(2), OFFER)
    terms = submitter.market.terms(task_id)
    forged = replace(terms, program=b"\x07" * 32)
    other = submitter.market.submit(submitter.wallet, forged, submitter.market.task(task_id).fee)
    with pytest.raises(ProtocolError, match="another program"):
        verifier.join(other)
