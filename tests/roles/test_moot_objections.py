"""Objections that nobody waits for any more, on a real node; and what a party keeps in memory of them."""

from dataclasses import replace

import pytest
from log_market import (
    EXACT,
    JUMP,
    SEGMENTS,
    Seer,
    honest,
    jumped,
    long_capture,
)
from role_market import Town

from pol.chain.desks.objections import DISPUTABLE
from pol.dispute.play.kept_traces import KeptTraces
from pol.errors import ProtocolError
from pol.roles.party.log_decisions import objection_call
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import Submitter
from pol.roles.whistleblower.whistleblower import Whistleblower


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
        call = objection_call(anybody, task_id, task)
        if call is None:
            break
        call.act()
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
