"""A solver's duties about its own logs on a real node: what fails or can't be paid hides nothing else."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from all_parties import Solver, Verifier, Whistleblower
from log_market import EXACT, SEGMENTS, TOLERANT, Accuser, Seer, honest, jumped, leave, long_capture, sitting
from role_market import OFFER, Town, acts, awarded, disclosed, gain, profiled, settle, submitted, waits

from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.desks.market import Matter
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.claims.segment_claim import SegmentClaim
from pol.dispute.position import Side
from pol.roles.party.decisions import Action, Wait
from pol.roles.party.policy import HOUR
from pol.roles.party.replaying_party import LogDisputant
from pol.roles.party.role import Role
from pol.roles.process import attention
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process
from pol.roles.solver.solver_decisions import contest_bond, fulfill, next_of_solver
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from pol.roles.whistleblower.objector import FalseSegment

pytestmark = pytest.mark.long


def attend(solver: Solver, besides: bytes) -> None:
    attention.attend(solver, besides, lambda task_id: fulfill(solver, task_id))


def undrawn(role: Role, task_id: bytes, count: int) -> list[int]:
    """Segments that nobody has drawn, and no two of which share a state."""
    drawn = set(role.market.proofs.drawn_segments(task_id))
    return [segment for segment in (1, 3, 5, 7, 0, 2, 4, 6) if segment not in drawn][:count]


def made_by(process: Process[Solver], turns: int) -> list[LoggedDecision]:
    return [made for _ in range(turns) for made in process.turn()]


def done(taken: list[LoggedDecision]) -> list[str]:
    """The verbs of what was done, all without a failure."""
    acted = [made for made in taken if made.result is not DecisionResult.WAITED]
    assert all(made.result is DecisionResult.DONE for made in acted), acted
    return [made.verb for made in acted]


@contextmanager
def unreadable(town: Town, role: Role, task_id: bytes, entry: int) -> Iterator[None]:
    """The state behind an entry of the log is missing in the store."""
    file = town.file(role.proof(task_id).checkpoints[entry].object)
    hidden = file.rename(file.with_suffix(".hidden"))
    yield
    hidden.rename(file)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The segments that were replayed to judge a counterclaim."""
    found, original = list[int](), LogDisputant.own_claim

    def counted(role: LogDisputant, task_id: bytes, segment: int, *more: Any) -> SegmentClaim | None:
        if isinstance(role, Solver):
            found.append(segment)
        return original(role, task_id, segment, *more)

    monkeypatch.setattr(LogDisputant, "own_claim", counted)
    return found


def test_with_money_for_one_contest_it_plays_one_after_the_other(town: Town) -> None:
    task_id = honest(town, replace(TOLERANT, challenge_window=HOUR), spared=1)
    sitting(town, task_id)
    accuser, solver = town.join(Accuser, "x"), town.join(Solver, "t")
    desk, game = solver.market.counterclaims, solver.market.counterclaim_game
    numbers = [accuser.accuse(task_id, segment) for segment in undrawn(solver, task_id, 2)]
    bonds = [desk.counterclaimed(number).bond for number in numbers]
    leave(solver, max(bonds))
    process = Process(solver, next_of_solver)
    taken = made_by(process, 3)
    assert done(taken) == ["contest a counterclaim"]
    assert f"counterclaim {numbers[1]} about segment" in taken[-1].why
    assert "it contests one after the other" in taken[-1].why
    (dispute,) = desk.disputes(task_id)
    solver.connection.wait_until(game.deadline(dispute))
    # The money comes back with half of the other side's bond, in time for the second.
    verbs = done(made_by(process, 5))
    assert verbs == ["claim a timeout", "settle a dispute", "contest a counterclaim"]
    (dispute,) = desk.disputes(task_id)
    solver.connection.wait_until(game.deadline(dispute))
    assert done(made_by(process, 3)) == ["claim a timeout", "settle a dispute"]
    assert desk.open_for(task_id) == []
    assert not solver.market.objections.objected(task_id).fell


def test_it_never_concludes_what_is_said_against_itself(town: Town) -> None:
    task_id = honest(town, TOLERANT, spared=1)
    sitting(town, task_id)
    accuser, solver = town.join(Accuser, "x"), town.join(Solver, "t")
    number = accuser.accuse(task_id, undrawn(solver, task_id, 1)[0])
    leave(solver, 1)
    solver.connection.wait_until(solver.market.counterclaims.counterclaimed(number).until)
    # The verifier is silent, too.
    assert done(made_by(Process(solver, next_of_solver), 3)) == ["remove the verifier"]
    assert solver.market.counterclaims.open_for(task_id) == [number]
    assert not solver.market.objections.objected(task_id).fell


@pytest.mark.parametrize("offer", [TOLERANT, EXACT], ids=["tolerant", "exact"])
def test_it_bids_only_with_money_for_a_contest(town: Town, offer: Offer) -> None:
    task_id = town.join(Submitter, "s").submit(long_capture(), offer)
    if offer.margin:
        profiled(town.join(Verifier, "v"), task_id)
    solver = town.join(Solver, "t")
    terms = solver.market.registry.terms(task_id)
    leave(solver, terms.solver_stake)
    if offer.margin:
        missing, decision = contest_bond(solver, terms), next_of_solver(solver, task_id)
        assert missing > 0
        assert isinstance(decision, Wait)
        assert decision.mend == f"pol stake deposit {missing}wei"
        # The price of gas moves from block to block.
        solver.deposit(2 * missing)
    assert acts(next_of_solver(solver, task_id)).verb == "bid"


def test_it_keeps_money_for_the_bonds_that_come(town: Town) -> None:
    task_id = honest(town, TOLERANT, spared=1)
    sitting(town, task_id)
    accuser, solver = town.join(Accuser, "x"), town.join(Solver, "t")
    kept = contest_bond(solver, solver.market.registry.terms(task_id))
    numbers = [accuser.accuse(task_id, segment) for segment in undrawn(solver, task_id, 2)]
    bonds = [solver.market.counterclaims.counterclaimed(number).bond for number in numbers]
    assert 0 < bonds[0] <= bonds[1] <= kept


def test_other_tasks_get_all_that_is_due_during_a_training(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(attention, "LOOK", 0.0)
    exact, tolerant = honest(town, EXACT, spared=1), honest(town, TOLERANT, spared=1)
    for task_id in (exact, tolerant):
        sitting(town, task_id)
    solver, trained = town.join(Solver, "t"), submitted(town, replace(OFFER, margin=0, looks=0, rerun_count=0))[0]
    awarded(solver, trained)
    seer, accuser, market = town.join(Seer, "w"), town.join(Accuser, "x"), solver.market
    lost, *_ = [each for each in undrawn(solver, exact, SEGMENTS) if each in undrawn(solver, tolerant, SEGMENTS)]
    disputed = [lost, *(each for each in undrawn(solver, exact, SEGMENTS) if each != lost)][:3]
    first, *others = [seer.baseless(exact, segment) for segment in disputed]
    accuser.accuse(tolerant, lost)
    # The two logs are equal, and so are their states.
    with unreadable(town, solver, exact, lost), caplog.at_level(logging.ERROR):
        taken = Process(solver, next_of_solver).turn()
    assert "train" in [made.verb for made in taken if made.result is DecisionResult.DONE], taken
    assert market.registry.task(trained).status is Status.COMMITTED
    # What fails is told, and everything else is done.
    assert f"task {exact.hex()}: move" in caplog.text
    assert f"task {tolerant.hex()}: look at its log" in caplog.text
    assert not moved(solver, first)
    assert all(moved(solver, number) for number in others)
    attend(solver, trained)
    assert moved(solver, first)
    assert len(market.counterclaims.disputes(tolerant)) == 1


def test_a_look_at_other_tasks_reads_no_closed_one(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver may have had thousands of tasks, and a training has many checkpoints."""
    task_id = honest(town, EXACT, spared=1)
    verifier, solver = sitting(town, task_id), town.join(Solver, "t")
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    read = list[bytes]()
    sound = solver.market.registry.task
    monkeypatch.setattr(solver.market.registry, "task", lambda each: (read.append(each), sound(each))[1])
    attend(solver, bytes(32))
    assert read == [task_id]
    settle(verifier, task_id)
    attend(solver, bytes(32))
    assert read == [task_id]


def test_a_bid_is_revealed_during_a_training(town: Town) -> None:
    """The training may last longer than the time to reveal."""
    solver, task_id = town.join(Solver, "t"), submitted(town, replace(OFFER, margin=0, looks=0, rerun_count=0))[0]
    solver.bid(task_id)
    auction = solver.market.auction
    round_id = auction.last_round(solver.market.registry.address, task_id)
    attend(solver, bytes(32))
    town.connection.wait_until(auction.bid_until(round_id))
    attend(solver, bytes(32))
    assert auction.standing(round_id).leader == solver.wallet.address


def test_a_move_that_fails_does_not_keep_it_from_another(town: Town) -> None:
    task_id = honest(town, EXACT, spared=1)
    sitting(town, task_id)
    seer, solver = town.join(Seer, "w"), town.join(Solver, "t")
    segments = undrawn(solver, task_id, 2)
    numbers = [seer.baseless(task_id, segment) for segment in segments]
    process = Process(solver, next_of_solver)
    with unreadable(town, solver, task_id, segments[0]):
        (taken,) = process.turn()
    assert (taken.verb, taken.result) == ("move", DecisionResult.FAILED)
    assert [moved(solver, number) for number in numbers] == [False, True]
    assert done(made_by(process, 2)) == ["move"]
    assert [moved(solver, number) for number in numbers] == [True, True]


def moved(role: Role, number: int) -> bool:
    return bool(role.market.objection_game.events("Moved", number=number))


def test_a_segment_that_cannot_be_read_hides_nothing_else(town: Town) -> None:
    task_id = honest(town, TOLERANT, spared=1)
    sitting(town, task_id)
    accuser, solver = town.join(Accuser, "x"), town.join(Solver, "t")
    desk, game = solver.market.counterclaims, solver.market.counterclaim_game
    seen, lost, last = undrawn(solver, task_id, 3)
    accuser.accuse(task_id, seen)
    process = Process(solver, next_of_solver)
    assert done(made_by(process, 2)) == ["contest a counterclaim"]
    (dispute,) = desk.disputes(task_id)
    numbers = [accuser.accuse(task_id, segment) for segment in (lost, last)]
    with unreadable(town, solver, task_id, lost):
        solver.connection.wait_until(game.deadline(dispute))
        taken = made_by(process, 6)
    verbs = [made.verb for made in taken if made.result is DecisionResult.DONE]
    assert verbs == ["claim a timeout", "settle a dispute", "contest a counterclaim"]
    assert game.winner(dispute) is Side.CHALLENGER
    assert [desk.dispute(number).subject for number in desk.disputes(task_id)] == [numbers[1]]
    # Once nothing else is due, the failure is shown.
    assert taken[-1].result is DecisionResult.FAILED
    assert f"segment {lost} of the log can't be replayed here" in taken[-1].detail
    solver.connection.wait_until(game.deadline(desk.disputes(task_id)[0]))
    assert done(made_by(process, 3)) == ["claim a timeout", "settle a dispute", "contest a counterclaim"]


def test_it_bids_for_no_log_that_it_could_not_defend_in_time(town: Town) -> None:
    task_id = town.join(Submitter, "s").submit(long_capture(), EXACT)
    solver = town.join(Solver, "t")
    terms = solver.market.registry.terms(task_id)
    solver._rehearsed[task_id] = 0.001
    solver.times.paces[task_id] = 0.51 * terms.clock / terms.interval  # as on a machine that is that slow
    why = waits(next_of_solver(solver, task_id))
    assert f"the work for the clock of {terms.clock} s takes this machine about" in why
    solver.times.paces[task_id] = 0.2 * terms.clock / terms.interval
    assert "the work for the replayGrace of 1800 s takes this machine about" in waits(next_of_solver(solver, task_id))
    solver.times.paces[task_id] = 0.04 * terms.clock / terms.interval
    assert isinstance(next_of_solver(solver, task_id), Action)


def test_it_bids_for_no_log_about_which_it_could_not_judge_a_counterclaim_in_time(town: Town) -> None:
    task_id = town.join(Submitter, "s").submit(long_capture(), replace(TOLERANT, challenge_window=HOUR))
    profiled(town.join(Verifier, "v"), task_id)
    solver = town.join(Solver, "t")
    terms = solver.market.registry.terms(task_id)
    solver._rehearsed[task_id] = 0.001
    solver.times.paces[task_id] = 0.51 * terms.challenge_window / ((2 + terms.looks) * terms.interval)
    why = waits(next_of_solver(solver, task_id))
    assert f"the work for the challengeWindow of {HOUR} s takes this machine about" in why


def test_the_bond_of_a_moot_contest_comes_back_after_the_task(town: Town) -> None:
    rich = replace(TOLERANT, looks=0, stake_factor=8, verifier_share=8, wei_per_work_unit=200 * GWEI)
    task_id = honest(town, rich, spared=1)
    verifier = sitting(town, task_id)
    accuser, friend, solver = town.join(Accuser, "x"), town.join(Whistleblower, "w"), town.join(Solver, "t")
    desk, before = solver.market.counterclaims, gain(solver)
    number = accuser.accuse(task_id, undrawn(solver, task_id, 1)[0])
    said, bond = desk.said(number), desk.counterclaimed(number).bond
    dispute = friend.contest(task_id, said, friend.false_parts(task_id, said)[0])
    process = Process(solver, next_of_solver)
    assert done(made_by(process, 1)) == ["contest a counterclaim"]
    # The accuser resigns against the friend; that ends the counterclaim, and settles that dispute.
    assert accuser.session(task_id, dispute, Matter.COUNTERCLAIM).advance() is not None
    assert solver.market.objections.objected(task_id).open == 0
    # Half of a lost counterclaim's bond is the solver's, whoever has contested it.
    assert gain(solver) == before - bond + bond // 2
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    submitter = town.join(Submitter, "s")
    submitter.connection.wait_until(submitter.market.registry.task(task_id).deadline)
    submitter.market.settlement.settle(submitter.wallet, task_id)
    assert submitter.market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED
    paid = gain(solver)
    assert done(made_by(process, 3)) == ["settle a dispute"]
    assert gain(solver) == paid + bond
    assert desk.disputes(task_id) == []
    # The friend has put up more than the accuser: it came before the solver, whose place is the first.
    assert desk.dispute(dispute).bond > bond
    assert all(found.holds for found in Auditor(solver.market, town.deployment.treasury).findings())


def test_a_counterclaim_is_judged_once(town: Town, replays: list[int]) -> None:
    """A true one: the solver did jump."""
    task_id = jumped(town, TOLERANT)
    sitting(town, task_id)
    seer, solver = town.join(Whistleblower, "w"), town.join(Solver, "t")
    found = seer.examine_segment(task_id, 5)
    assert isinstance(found, FalseSegment)
    seer.object(task_id, found)
    process = Process(solver, next_of_solver)
    assert done(made_by(process, 4)) == []
    assert replays == [5]
    solver.forget(task_id)
    made_by(process, 2)
    assert replays == [5, 5]


def test_one_decision_judges_one_counterclaim(town: Town, replays: list[int]) -> None:
    task_id = honest(town, TOLERANT, spared=1)
    sitting(town, task_id)
    accuser, solver = town.join(Accuser, "x"), town.join(Solver, "t")
    segments = undrawn(solver, task_id, 3)
    assert len(segments) == 3 < SEGMENTS
    for segment in segments:
        accuser.accuse(task_id, segment)
    leave(solver, 1)
    for count in range(1, 4):
        assert isinstance(next_of_solver(solver, task_id), Wait)
        assert replays == segments[:count]
    assert isinstance(next_of_solver(solver, task_id), Wait)
    assert replays == segments
