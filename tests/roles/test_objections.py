"""Objections on a real node: whole logs are watched, and whoever says something false about one loses."""

from dataclasses import replace
from random import Random

import pytest
from all_parties import Submitter, Verifier, Whistleblower, next_of_solver, next_of_whistleblower
from log_market import (
    EXACT,
    INTERVAL,
    JUMP,
    SEGMENTS,
    TOLERANT,
    Accuser,
    Seer,
    committed,
    honest,
    jumped,
    long_capture,
    play,
    run,
    sitting,
    started,
)
from role_market import Town, disclosed, gain, seated

from pol.arithmetic.primitives import Words
from pol.chain.accounting.settlement_audit import Auditor
from pol.chain.desks.market import Matter
from pol.chain.desks.objections import DISPUTABLE
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.demo.lying_players import LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.kept_traces import KeptTraces
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.incentives.payouts import objector_reward, slashable
from pol.roles.party.log_decisions import objection_call
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver, train_canonically
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder


def settled(town: Town, task_id: bytes) -> TaskOutcome:
    submitter = town.join(Submitter, "s")
    submitter.connection.wait_until(submitter.market.registry.task(task_id).deadline)
    submitter.market.settlement.settle(submitter.wallet, task_id)
    wrong = [f for f in Auditor(submitter.market, town.deployment.treasury).findings() if not f.holds]
    assert wrong == []
    return submitter.market.registry.task(task_id).outcome


def reward(role: Role, task_id: bytes, bond: int) -> int:
    terms = role.market.registry.terms(task_id)
    stake = slashable(terms.solver_stake, terms.verifier_fee, terms.looks, terms.draws)
    return objector_reward(stake, bond, role.market.jackpot.tax(terms.jackpot))


class LyingSolver(Solver):
    """Has trained with one wrong bit in one segment, and fights for it."""

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        trace = super().execute(task_id, segment)
        if segment != JUMP:
            return trace
        return LyingTrace(trace, draw_lie(trace, range(len(trace.program.nodes)), Random(3)))


def test_a_jump_that_nobody_drew_is_found_and_the_solver_loses(town: Town) -> None:
    """Verdict accepts; the whistleblower's process screens, replays, objects and wins, by itself."""
    task_id = jumped(town, EXACT)
    verifier = sitting(town, task_id)
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    assert verifier.market.verdicts.verdict(task_id).rejecting == 0
    seer, solver = town.join(Whistleblower, "w"), town.join(Solver, "t")
    before = gain(seer)
    assert JUMP in seer.suspects(task_id)
    verbs = play(seer, solver, (next_of_whistleblower, next_of_solver))
    # The solver sees that it is wrong, and gives up; who sees that first, it or the whistleblower, settles.
    assert verbs in (["object to a segment", "move"], ["object to a segment", "move", "settle a dispute"])
    assert seer.market.objections.objected(task_id).fell
    assert gain(seer) - before == reward(seer, task_id, seer.market.objections.dispute(1).bond)
    assert settled(town, task_id) is TaskOutcome.REJECTED


def test_a_lie_that_is_fought_for_falls_by_one_operation(town: Town) -> None:
    solver = town.join(LyingSolver, "t")
    task_id = jumped(town, EXACT, wrong_bit)
    verifier = sitting(town, task_id)
    seer = town.join(Whistleblower, "w")
    found = seer.examine_segment(task_id, JUMP)
    assert found is not None
    number = seer.object(task_id, found)
    sides = (seer.session(task_id, number, Matter.OBJECTION), solver.session(task_id, number, Matter.OBJECTION))
    game, moves = seer.market.objection_game, 0
    while game.winner(number) is Side.NONE:
        assert sides[0].advance() or sides[1].advance()
        moves += 1
    assert game.winner(number) is Side.CHALLENGER
    assert moves > 3
    # The verdict goes on beside it.
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    assert settled(town, task_id) is TaskOutcome.REJECTED


def wrong_bit(task: LoadedTask, start: list[Words]) -> list[Words]:
    """The end of the segment JUMP by an execution with one wrong bit, the one that the liar fights for."""
    executor = CpuExecutor(task.program, task.constants)
    trace = SegmentTrace(task.program, task.constants, executor, start, JUMP * INTERVAL, INTERVAL)
    lying = LyingTrace(trace, draw_lie(trace, range(len(task.program.nodes)), Random(3)))
    return [words.copy() for words in lying.state((JUMP + 1) * INTERVAL)]


def test_an_honest_solver_answers_many_at_once_and_is_paid_for_it(town: Town) -> None:
    """From chain and store alone, one after the other, each within the clock that it adds."""
    task_id = honest(town, EXACT)
    verifier = sitting(town, task_id)
    solver, seer = town.join(Solver, "t"), town.join(Seer, "w")
    market, before = solver.market, gain(solver)
    drawn = set(market.proofs.drawn_segments(task_id))
    free = [segment for segment in range(SEGMENTS) if segment not in drawn][:3]
    numbers = [seer.baseless(task_id, segment) for segment in free]
    clock = market.registry.terms(task_id).clock
    assert [market.objection_game.params(number).clock for number in numbers] == [clock, 2 * clock, 3 * clock]
    bonds = [market.objections.dispute(number).bond for number in numbers]
    play(solver, seer, (next_of_solver, next_of_whistleblower))
    assert market.objections.objected(task_id).open == 0
    assert {market.objection_game.winner(number) for number in numbers} == {Side.ASSERTER}
    assert gain(solver) - before == sum(bond // 2 for bond in bonds)
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    assert settled(town, task_id) is TaskOutcome.ACCEPTED


def test_a_silent_solver_loses_by_its_clock_and_anybody_ends_it(town: Town) -> None:
    task_id = jumped(town, EXACT)
    verifier = sitting(town, task_id)
    seer = town.join(Whistleblower, "w")
    assert run(seer, next_of_whistleblower) == ["object to a segment"]
    (number,) = seer.market.objections.disputes(task_id)
    seer.connection.wait_until(seer.market.objection_game.deadline(number))
    assert run(seer, next_of_whistleblower)[:2] == ["claim a timeout", "reclaim"]
    assert seer.market.objections.objected(task_id).fell
    assert verifier.market.registry.task(task_id).status in (Status.VERIFYING, Status.COMMITTED)


@pytest.mark.parametrize("verifies", [False, True])
def test_a_fallen_log_takes_no_word_its_worth(town: Town, verifies: bool) -> None:
    """A second one is paid beside it; a verdict doesn't contradict it."""
    task_id = jumped(town, EXACT)
    first, second, seer = sitting(town, task_id), town.join(Verifier, "x"), town.join(Whistleblower, "w")
    before = gain(first) + first.market.registry.terms(task_id).verifier_stake
    first.unserved(task_id)
    run(seer, next_of_whistleblower)
    (number,) = seer.market.objections.disputes(task_id)
    seer.connection.wait_until(seer.market.objection_game.deadline(number))
    run(seer, next_of_whistleblower)
    seated(second, task_id)
    if verifies:
        second.verify(task_id)
        disclosed(second, task_id)
        assert settled(town, task_id) is TaskOutcome.REJECTED
        assert gain(first) == before
    else:
        second.duty(task_id)
        second.unserved(task_id)
        assert gain(first) > before
        assert all(finding.holds for finding in Auditor(seer.market, town.deployment.treasury).findings())


def test_a_zero_root_is_shown_at_once(town: Town) -> None:
    task_id, solver = started(town, EXACT)
    task = solver.task(task_id)
    recorder = TaskRecorder(solver.store, task)
    train_canonically(task, recorder)
    zero = replace(recorder.checkpoints[3], state_root=bytes(32))
    recorder.take_over([*recorder.checkpoints[:3], zero, *recorder.checkpoints[4:]])
    committed(solver, task_id, recorder.publish({"arithmetic": "canonical"})[0], 2)
    seer = town.join(Whistleblower, "w")
    before = gain(seer)
    assert run(seer, next_of_whistleblower)[:1] == ["object to a segment"]
    assert seer.market.objections.objected(task_id).fell
    assert gain(seer) - before == reward(seer, task_id, 0)


def test_thresholds_are_objected_to_by_a_counterclaim(town: Town) -> None:
    """The objector says what a verdict would have said; nobody refutes it, and the proof is rejected."""
    task_id = jumped(town, TOLERANT)
    verifier = sitting(town, task_id)
    seer, solver = town.join(Whistleblower, "w"), town.join(Solver, "t")
    before = gain(seer)
    assert run(seer, next_of_whistleblower) == ["object to a segment"]
    assert run(solver, next_of_solver) == []
    (number,) = seer.market.counterclaims.open_for(task_id)
    seer.connection.wait_until(seer.market.counterclaims.counterclaimed(number).until)
    verifier.market.registry.task(task_id)
    assert "conclude a counterclaim" in run(seer, next_of_whistleblower)
    bond = seer.market.counterclaims.counterclaimed(number).bond
    assert gain(seer) - before == reward(seer, task_id, bond)
    assert seer.market.objections.objected(task_id).fell


def test_a_false_counterclaim_is_contested_by_the_solver_itself(town: Town) -> None:
    task_id = honest(town, TOLERANT, spared=1)
    verifier = sitting(town, task_id)
    accuser, solver = town.join(Accuser, "x"), town.join(Solver, "t")
    before = gain(solver)
    bond = accuser.market.counterclaims.counterclaimed(accuser.accuse(task_id, 1)).bond
    assert run(solver, next_of_solver) == ["contest a counterclaim"]
    (dispute,) = solver.market.counterclaims.disputes(task_id)
    # The accuser has no execution that leads there.
    solver.connection.wait_until(solver.market.counterclaim_game.deadline(dispute))
    assert run(solver, next_of_solver) == ["claim a timeout", "settle a dispute"]
    assert gain(solver) - before == bond // 2
    assert not solver.market.objections.objected(task_id).fell
    assert verifier.market.objections.objected(task_id).open == 0


def test_anybody_settles_what_is_moot_once_a_proof_has_fallen(town: Town) -> None:
    """The bonds come back, and the task can be closed, though neither objector is awake."""
    task_id = jumped(town, EXACT)
    right, wrong, anybody = town.join(Whistleblower, "w"), town.join(Seer, "x"), town.join(Submitter, "s")
    market = anybody.market
    found = right.examine_segment(task_id, JUMP)
    free = [segment for segment in range(SEGMENTS) if segment not in market.proofs.drawn_segments(task_id)]
    first = right.object(task_id, found)  # type: ignore[arg-type]  # found, as the segment is false
    later = wrong.baseless(task_id, next(segment for segment in free if segment != JUMP))
    anybody.connection.wait_until(market.objection_game.deadline(first))
    assert market.objection_game.deadline(later) > anybody.connection.now()
    for _ in range(5):
        task = market.registry.task(task_id)
        assert task.status in DISPUTABLE
        call = objection_call(anybody, task_id, task, anybody.wallet.address)
        if call is None:
            break
        call.make(anybody)
    assert market.objections.objected(task_id).fell
    assert market.objections.objected(task_id).open == 0
    assert [market.objections.dispute(number).is_settled for number in (first, later)] == [True, True]


def test_a_party_keeps_few_executions(town: Town) -> None:
    """As many as there is room for, those that were asked for last; one in any case."""
    task_id, party = honest(town, EXACT), town.join(Whistleblower, "w")
    first = party.trace(task_id, 0)
    party._traces = KeptTraces(3 * first.most_bytes)
    first = party.trace(task_id, 0)
    for segment in (1, 2, 0, 3, 4):
        party.trace(task_id, segment)
    assert party.trace(task_id, 0) is first
    party._traces = KeptTraces(0)
    last = party.trace(task_id, 5)
    assert party.trace(task_id, 5) is last
    assert party.trace(task_id, 0) is not first
    assert party.trace(task_id, 5) is not last


def test_who_can_not_hash_a_step_in_time_stakes_nothing(town: Town) -> None:
    """Outputs of a step may be many times what a replay holds: a submitter can make them as many as it likes."""
    task_id = town.join(Submitter, "s").submit(long_capture(), EXACT)
    solver = town.join(Solver, "t")
    size = 4 * sum(node.type.numel for node in solver.task(task_id).program.nodes)
    solver.policy = replace(solver.policy, max_step_bytes=size - 1)
    with pytest.raises(ProtocolError, match=f"hashes {size} bytes of outputs of a step"):
        solver.bid(task_id)
    solver.policy = replace(solver.policy, max_step_bytes=size)
    solver.bid(task_id)
