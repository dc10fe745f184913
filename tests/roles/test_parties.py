"""Parties on a real node, with the digits: lies about distances, defaults, tasks that aren't what they seem."""

from dataclasses import replace
from pathlib import Path

import pytest
from all_parties import FalseClaim, Solver, Submitter, Verifier, Whistleblower
from role_market import (
    OFFER,
    SELDOM,
    SumSeer,
    Town,
    awarded,
    deployed,
    fought,
    gain,
    lied,
    only_claim,
    profiled,
    seated,
    settle,
    stated,
    submitted,
    until_proof,
    verified,
)

from hostile_players import LyingSums
from pol.chain.account.outbox_journal import OutgoingCall
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.chain.node.connection import Connection
from pol.dispute.play.honest_players import SumPlayer
from pol.dispute.position import Side
from pol.errors import OperationalError, ProtocolError
from pol.incentives.payouts import bond_after

TREASURY_OF_PRICE = 50
"""Basis points that the treasury gets beside the price (contracts/market/Split.sol)."""


@pytest.mark.parametrize("fights", [True, False])
@pytest.mark.parametrize("kind", [ClaimChargeKind.DISTANCE, ClaimChargeKind.REFERENCE])
def test_a_verifier_that_lies_about_a_distance_is_slashed(
    proven: bytes, town: Town, kind: ClaimChargeKind, fights: bool
) -> None:
    """A right replay and a wrong sum: the game goes down to a leaf, or the liar sees that it is wrong and gives up."""
    verifier, whistleblower = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    (verdict,) = verifier.replay(proven)
    stated(verifier, proven, [lied(verdict, "distances" if kind is ClaimChargeKind.DISTANCE else "references")])
    (finding,) = whistleblower.check(proven)
    assert (finding.charge.kind, finding.charge.component) == (kind, 3)
    dispute = whistleblower.challenge(proven, finding)
    defence, attack = verifier.sessions(proven)[0], whistleblower.session(proven, dispute)
    if fights:
        assert isinstance(defence.player, SumPlayer)
        sums = defence.player.sums
        slot = next(i for i, s in enumerate(sums.program.slots) if s.component == 3)
        defence = replace(defence, player=SumPlayer(LyingSums(sums, slot, 0, 1)))
    made, game = [], whistleblower.market.game
    while game.winner(dispute) is Side.NONE:
        made.append(defence.advance() or attack.advance())
    assert game.winner(dispute) is Side.CHALLENGER
    assert (len(made) > 1) == fights
    state = whistleblower.market.registry.task(proven)
    assert (state.status, state.is_seated) == (Status.COMMITTED, False)
    # What the verifier earned with the profile is all that it has left.
    terms = verifier.market.registry.terms(proven)
    assert gain(verifier, tickets=1) == terms.verifier_fee - terms.verifier_stake


@pytest.mark.parametrize("kind", [ClaimChargeKind.DISTANCE, ClaimChargeKind.REFERENCE])
def test_an_honest_distance_is_defended_from_chain_and_store_alone(
    proven: bytes, town: Town, kind: ClaimChargeKind
) -> None:
    """The defending process is a new one: it has the key, the chain and the store."""
    verifier, whistleblower = town.join(Verifier, "v"), town.join(SumSeer, "w")
    verified(verifier, proven)
    assert verifier.sessions(proven) == []
    assert Whistleblower.check(whistleblower, proven) == []
    finding = FalseClaim(ClaimCharge(0, kind, 1), only_claim(whistleblower, proven))
    dispute = whistleblower.challenge(proven, finding)
    sides = (town.join(Verifier, "v").sessions(proven)[0], whistleblower.session(proven, dispute))
    assert fought(whistleblower.market.game, dispute, *sides) is Side.ASSERTER


def test_an_honest_verifier_defends_several_disputes_at_once(proven: bytes, town: Town) -> None:
    verifier = town.join(Verifier, "v")
    verified(verifier, proven)
    market, terms, before = verifier.market, verifier.market.registry.terms(proven), gain(verifier)
    attacks = []
    kinds = (ClaimChargeKind.DISTANCE, ClaimChargeKind.REFERENCE, ClaimChargeKind.DISTANCE)
    for name, kind in zip("wxy", kinds, strict=True):
        whistleblower = town.join(SumSeer, name)
        finding = FalseClaim(ClaimCharge(0, kind, 1), only_claim(whistleblower, proven))
        attacks.append(whistleblower.session(proven, whistleblower.challenge(proven, finding)))
    assert market.challenges.disputes(proven) == [attack.dispute for attack in attacks]
    while market.challenges.disputes(proven):
        made = [session.advance() for session in (*verifier.sessions(proven), *attacks)]
        assert any(made)
    bonds = [bond_after(terms.bond, terms.verifier_stake, earlier) for earlier in range(3)]
    assert gain(verifier) - before == sum(bond // 2 for bond in bonds)
    settle(verifier, proven)
    assert market.registry.task(proven).outcome is TaskOutcome.ACCEPTED


def test_who_is_right_too_late_gets_its_bond_back(proven: bytes, town: Town) -> None:
    """Two see the lie; the liar gives up in one dispute, and the other is moot: nobody has to play it on."""
    verifier = town.join(Verifier, "v")
    (verdict,) = verifier.replay(proven)
    stated(verifier, proven, [lied(verdict, "distances")])
    first, second = town.join(Whistleblower, "w"), town.join(Whistleblower, "x")
    market, terms = first.market, first.market.registry.terms(proven)
    numbers = []
    for whistleblower in (first, second):
        (finding,) = whistleblower.check(proven)
        numbers.append(whistleblower.challenge(proven, finding))
    bond = bond_after(terms.bond, terms.verifier_stake, 1)
    assert (first.reclaim(proven), second.reclaim(proven)) == ([], [])
    assert gain(second, tickets=1) == -bond
    assert verifier.sessions(proven)[0].advance() is not None
    assert market.registry.task(proven).status is Status.COMMITTED
    assert (market.challenges.disputes(proven), verifier.sessions(proven)) == ([], [])
    assert (first.reclaim(proven), second.reclaim(proven), second.reclaim(proven)) == ([], numbers[1:], [])
    assert (gain(first, tickets=1), gain(second, tickets=1)) == (terms.verifier_stake // 2, 0)
    town.connection.wait_until(market.game.deadline(numbers[1]))
    market.game.timeout(first.wallet, numbers[1])
    assert gain(second, tickets=1) == 0


def test_a_dispute_that_another_party_settles_in_the_same_block_is_no_failure(
    proven: bytes, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = town.join(Verifier, "v")
    (verdict,) = verifier.replay(proven)
    stated(verifier, proven, [lied(verdict, "distances")])
    first, second = town.join(Whistleblower, "w"), town.join(Whistleblower, "x")
    numbers = []
    for whistleblower in (first, second):
        (finding,) = whistleblower.check(proven)
        numbers.append(whistleblower.challenge(proven, finding))
    assert verifier.sessions(proven)[0].advance() is not None
    outbox, desk = second.wallet.outbox, second.market.challenges
    simulated = outbox._simulate

    def overtaken(call: OutgoingCall) -> int:
        gas = simulated(call)
        if not desk.dispute(numbers[1]).is_settled:
            desk.settle(first.wallet, numbers[1])
        return gas

    monkeypatch.setattr(outbox, "_simulate", overtaken)
    assert second.reclaim(proven) == numbers[1:]
    assert desk.dispute(numbers[1]).is_settled
    assert gain(second, tickets=1) == 0


def test_an_honest_verdict_settles_and_pays_to_the_wei(proven: bytes, town: Town) -> None:
    submitter, verifier, solver = town.join(Submitter, "s"), town.join(Verifier, "v"), town.join(Solver, "t")
    market = submitter.market
    terms, price = market.registry.terms(proven), market.registry.task(proven).price
    verified(verifier, proven)
    settle(submitter, proven)
    # Alone in the auction: the maximum is what it is paid. The profile has paid another fee.
    assert price == terms.maximum_price
    tax, treasury = market.jackpot.tax(terms.jackpot), -(-price * TREASURY_OF_PRICE // 10_000)
    assert gain(solver) == price
    assert gain(verifier, tickets=1) == 2 * terms.verifier_fee
    assert -gain(submitter) == price + 2 * terms.verifier_fee + tax + treasury
    assert market.settlement.escrow_of(terms) == -gain(submitter)
    free, before = market.vault.free(solver.wallet.address), solver.wallet.balance() + solver.wallet.gas_paid
    solver.withdraw()
    assert solver.wallet.balance() + solver.wallet.gas_paid == before + free
    solver.withdraw()  # nothing left: no transaction, no error
    assert market.registry.task(proven).outcome is TaskOutcome.ACCEPTED


def test_a_solver_that_vanishes_defaults_and_another_takes_over(town: Town) -> None:
    verifier, solver, other = town.join(Verifier, "v"), town.join(Solver, "a"), town.join(Solver, "b")
    task_id, submitter = submitted(town)
    market = submitter.market
    terms, escrow = market.registry.terms(task_id), -gain(submitter)
    profiled(verifier, task_id)
    awarded(solver, task_id)
    with pytest.raises(OperationalError, match="hasn't committed"):
        verifier.proof(task_id)
    town.connection.wait_until(market.registry.task(task_id).deadline)
    market.settlement.claim_solver_default(submitter.wallet, task_id)
    assert market.registry.task(task_id).status is Status.BIDDING
    assert gain(solver) == -terms.solver_stake
    assert gain(submitter) == terms.solver_stake // 2 - escrow
    awarded(other, task_id)
    other.train(task_id)
    assert market.registry.task(task_id).solver == other.wallet.address


def test_a_published_task_that_is_not_the_one_on_chain_is_refused(town: Town) -> None:
    """The document's digest is on chain: another document under other terms is noticed before anybody stakes."""
    verifier = town.join(Verifier, "v")
    task_id, submitter = submitted(town)
    terms = submitter.market.registry.terms(task_id)
    other = submitter.market.registry.submit(submitter.wallet, replace(terms, program=b"\x07" * 32))
    with pytest.raises(ProtocolError, match="another program"):
        verifier.claim_seat(other)
    seated(verifier, task_id)


def test_an_embedded_chain_will_do(tmp_path: Path) -> None:
    """Exact training from the submission to the committed proof: nothing needs a node of its own."""
    town = Town(tmp_path, deployed(Connection.embedded(), market_rules=SELDOM))
    task_id = until_proof(town, replace(OFFER, margin=0))
    assert town.join(Submitter, "s").market.registry.task(task_id).status is Status.COMMITTED
