"""Signed claims are disputed down to one scalar; who is wrong loses, once, and every wei is somebody's."""

from dataclasses import replace

import pytest
from toy_rounds import DAY, ETHER, MONEY, STEP, ToyRounds

from pol.chain.account.wallet import Reverted
from pol.chain.desks.dispute_desk import Ending
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.program_hash import program_header
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.moves import ProveStep
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.position import Side
from pol.roles.party.dispute_session import DisputeSession, MoveMade
from pol.rounds.log.log_entries import ClaimEntry


def lying(honest: SegmentTrace, step: int = 2) -> LyingTrace:
    """One wrong bit in one scalar of a step."""
    return LyingTrace(honest, Lie(step, 0, 1, 0, 0, 20))


def false_entry(toy: ToyRounds, worker: str) -> tuple[ClaimEntry, LyingTrace]:
    """A claim of round 0 with one wrong scalar."""
    lie = lying(toy.trace(toy.made[worker, STEP].entry))
    return toy.false_claim(worker, lie.state(lie.first_step + lie.steps)).entry, lie


def dispute(toy: ToyRounds, entry: ClaimEntry, trace: SegmentTrace, name: str = "challenger") -> int:
    """The dispute of a claim by somebody with another execution of it."""
    claim, header = entry.claim, program_header(trace.program)
    place = (claim.first_step, claim.steps)
    about = ReplayClaim(bytes(32), claim.program, claim.constants, *place, claim.start, claim.end)
    payload = ReplayPlayer(trace).open(about.first(header))
    return toy.contracts.disputes.dispute(toy.wallets[name], toy.plan_id, entry, header, payload)


def play(toy: ToyRounds, number: int, asserter: SegmentTrace, challenger: SegmentTrace) -> list[MoveMade]:
    """Play to the end; ann is the asserter."""
    sides = [
        DisputeSession(toy.contracts.game, toy.wallets[name], trace.program, number, ReplayPlayer(trace))
        for name, trace in (("ann", asserter), ("challenger", challenger))
    ]
    moves: list[MoveMade] = []
    while toy.contracts.game.winner(number) is Side.NONE:
        moves += [made for side in sides if (made := side.advance()) is not None]
    return moves


def test_a_false_claim_is_walked_to_one_scalar_and_its_author_slashed(toy: ToyRounds) -> None:
    """A false claim: to one scalar, which the EVM executes; the worker is slashed."""
    contracts, plan_id = toy.contracts, toy.plan_id
    before = {name: toy.free(name) for name in ("challenger", "treasury", "ann")}
    entry, lie = false_entry(toy, "ann")
    honest = toy.trace(toy.made["ann", STEP].entry)
    number = dispute(toy, entry, honest)
    bond = contracts.disputes.dispute_of(number).bond
    assert bond >= 2 * MONEY.price
    assert toy.free("challenger") == before["challenger"] - bond
    with pytest.raises(Reverted, match="NothingToSettle"):
        contracts.disputes.settle(toy.wallets["bob"], number)
    moves = play(toy, number, lie, honest)
    last = moves[-1].move or moves[-1].upheld
    assert isinstance(last, ProveStep)
    assert contracts.game.winner(number) is Side.CHALLENGER
    contracts.disputes.settle(toy.wallets["bob"], number)
    assert contracts.bonds.bond(plan_id, toy.wallets["ann"].address).standing is Standing.SLASHED
    reward = toy.free("challenger") - before["challenger"]
    assert MONEY.stake // 16 <= reward <= MONEY.stake // 4
    assert toy.free("treasury") - before["treasury"] == MONEY.stake - reward
    assert toy.free("ann") == before["ann"]
    toy.check_books()
    with pytest.raises(Reverted, match="WrongStanding"):
        contracts.bonds.join(toy.wallets["ann"], plan_id)


def test_a_groundless_challenge_loses_its_bond(toy: ToyRounds) -> None:
    entry = toy.made["ann", STEP].entry
    honest = toy.trace(entry)
    before = {name: toy.free(name) for name in ("challenger", "treasury", "ann")}
    number = dispute(toy, entry, lying(honest))
    bond = toy.contracts.disputes.dispute_of(number).bond
    play(toy, number, honest, lying(honest))
    assert toy.contracts.game.winner(number) is Side.ASSERTER
    toy.contracts.disputes.settle(toy.wallets["bob"], number)
    gains = {name: toy.free(name) - before[name] for name in before}
    assert gains == {"challenger": -bond, "ann": bond // 2, "treasury": bond - bond // 2}
    state = toy.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address)
    assert (state.standing, state.open, state.accusations) == (Standing.JOINED, 0, 1)
    toy.check_books()


def test_silence_loses_and_later_disputes_are_moot(toy: ToyRounds) -> None:
    """Two false claims, one stake: the second dispute gives its bond back."""
    disputes, game, bob = toy.contracts.disputes, toy.contracts.game, toy.wallets["bob"]
    entry, _ = false_entry(toy, "ann")
    honest = toy.trace(toy.made["ann", STEP].entry)
    first = dispute(toy, entry, honest)
    second = dispute(toy, entry, honest, "bob")
    assert disputes.dispute_of(second).bond >= disputes.dispute_of(first).bond
    before = toy.free("bob") + disputes.dispute_of(second).bond
    toy.connection.wait_until(game.deadline(first))
    game.timeout(bob, first)
    disputes.settle(bob, first)
    disputes.settle(bob, second)
    assert toy.free("bob") == before
    assert disputes.dispute_of(second).ending is Ending.SETTLED
    with pytest.raises(Reverted, match="NothingToSettle"):
        disputes.settle(bob, second)
    # The game goes on about nothing; its end changes nothing.
    toy.connection.wait_until(game.deadline(second))
    game.timeout(bob, second)
    assert disputes.dispute_of(second).ending is Ending.SETTLED
    toy.check_books()


def test_what_nobody_has_signed_is_nobodys(toy: ToyRounds) -> None:
    entry, _ = false_entry(toy, "ann")
    honest = toy.trace(toy.made["ann", STEP].entry)
    forged = replace(entry, signature=toy.keys["bob"].sign(entry.claim.digest))
    with pytest.raises(Reverted, match="NotTheAuthor"):
        dispute(toy, forged, honest)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    s = order - int.from_bytes(entry.signature[32:64], "big")
    mirrored = entry.signature[:32] + s.to_bytes(32, "big") + bytes([55 - entry.signature[64]])
    with pytest.raises(Reverted, match="ECDSAInvalidSignatureS"):
        dispute(toy, replace(entry, signature=mirrored), honest)
    stranger = toy.signed("challenger", entry, worker=toy.keys["challenger"].name)
    with pytest.raises(Reverted, match="WrongStanding"):
        dispute(toy, stranger, honest, "bob")
    other = toy.signed("ann", entry, plan=b"\x01" * 32)
    with pytest.raises(Reverted, match="OtherPlan"):
        dispute(toy, other, honest)


def test_a_worker_leaves_behind_the_time_in_which_it_can_be_accused(toy: ToyRounds) -> None:
    bonds, ann = toy.contracts.bonds, toy.wallets["ann"]
    before = toy.free("ann")
    entry = toy.made["ann", STEP].entry
    honest = toy.trace(entry)
    bonds.leave(ann, toy.plan_id)
    until = bonds.bond(toy.plan_id, ann.address).until
    with pytest.raises(Reverted, match="TooEarly"):
        bonds.depart(ann, toy.plan_id)
    toy.connection.wait_until(until - 60)
    number = dispute(toy, entry, lying(honest))
    toy.connection.wait_until(until + 1)
    with pytest.raises(Reverted, match="AccusationsOpen"):
        bonds.depart(ann, toy.plan_id)
    with pytest.raises(Reverted, match="WrongStanding"):
        dispute(toy, entry, lying(honest), "bob")
    game = toy.contracts.game
    toy.connection.wait_until(game.deadline(number))
    game.timeout(toy.wallets["bob"], number)
    toy.contracts.disputes.settle(toy.wallets["bob"], number)
    # The clock was ann's: she has slept.
    assert bonds.bond(toy.plan_id, ann.address).standing is Standing.SLASHED
    assert toy.free("ann") == before
    bob = toy.wallets["bob"]
    bonds.leave(bob, toy.plan_id)
    toy.connection.wait_until(bonds.bond(toy.plan_id, bob.address).until + 1)
    gained = toy.free("bob")
    bonds.depart(toy.wallets["keeper"], toy.plan_id, bob.address)
    assert toy.free("bob") == gained + MONEY.stake
    assert bonds.bond(toy.plan_id, bob.address).standing is Standing.LEFT
    toy.check_books()


def test_terms_are_checked(toy: ToyRounds) -> None:
    bonds, submitter = toy.contracts.bonds, toy.wallets["submitter"]
    terms = bonds.terms(toy.plan_id)
    with pytest.raises(Reverted, match="AlreadyRegistered"):
        bonds.register(submitter, terms)
    wrong = {
        "stake": replace(terms, stake=MONEY.price * 16),
        "leaveDelay": replace(terms, leave_delay=4 * DAY - 1),
        "keeperStake": replace(terms, keeper_stake=ETHER),
        "phases": replace(terms, phase_count=0),
        "clock": replace(terms, clock=60),
    }
    for field, given in wrong.items():
        with pytest.raises(Reverted, match=f"InvalidPlan\\({field}"):
            bonds.register(submitter, given)
    assert bonds.register(submitter, replace(terms, pay=1)) != toy.plan_id
