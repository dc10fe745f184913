"""Looks at whole logs on a real node: what can't be seen, what comes first, and what an open objection holds up."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from all_parties import Solver, Whistleblower, next_of_verifier, next_of_whistleblower
from log_market import EXACT, INTERVAL, JUMP, Hidden, Seer, honest, jumped, leave, not_drawn, run, sitting
from role_market import Town, acts, disclosed, waits
from test_objections import LyingSolver, wrong_bit

from pol.arithmetic.primitives import Words
from pol.chain.desks.market import Matter
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.claims.segment_claim import SegmentClaim
from pol.errors import ProtocolError
from pol.execution.cpu import on_all_cores
from pol.execution.executor import Executor
from pol.graph.step_program import StepProgram
from pol.roles.party.data_availability import answer_demands
from pol.roles.party.decisions import Action
from pol.roles.party.evidence import attentive
from pol.roles.party.policy import PUBLIC_CHAIN
from pol.roles.process import attention
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.whistleblower.objector import FalseSegment, UnseenSegment

pytestmark = pytest.mark.long


def test_what_cannot_be_read_is_demanded_once_and_looked_at_again(town: Town) -> None:
    task_id = jumped(town, EXACT)
    sitting(town, task_id)
    seer, solver = town.join(Whistleblower, "w"), town.join(Solver, "t")
    hidden = Hidden(town, seer, task_id, JUMP + 1)
    assert seer.examine_segment(task_id, JUMP) == UnseenSegment(JUMP, (JUMP + 1,))
    assert run(seer, next_of_whistleblower) == ["demand a state"]
    (demand,) = seer.market.demands.demands(task_id)
    assert demand.entry == JUMP + 1
    why = waits(next_of_whistleblower(seer, task_id))
    assert f"can't be read from {town.store_url}" in why
    assert f"the solver has to show a leaf of entry {JUMP + 1} on chain" in why
    # The answer is one leaf; the state itself is still missing, and isn't demanded again, by no process of this key.
    hidden.show()
    assert len(answer_demands(solver, task_id)) == 1
    hidden = Hidden(town, seer, task_id, JUMP + 1)
    for again in (seer, town.join(Whistleblower, "w")):
        assert run(again, next_of_whistleblower) == []
    why = waits(next_of_whistleblower(seer, task_id))
    assert f"the solver has shown leaves of entries [{JUMP + 1}] on chain" in why
    hidden.show()
    assert run(seer, next_of_whistleblower) == ["object to a segment"]
    assert seer.market.objections.segment(1) == JUMP


class Late(Whistleblower):
    """Its server shows something only after the first look."""

    hidden: Hidden | None = None

    def own_claim(self, *about: Any) -> SegmentClaim | None:
        found = super().own_claim(*about)
        if self.hidden:
            self.hidden.show()
            self.hidden = None
        return found


def test_what_a_server_shows_late_is_replayed(town: Town) -> None:
    """It counted as a failure of this machine, and nothing looked at it again."""
    task_id = jumped(town, EXACT)
    seer = town.join(Late, "w")
    seer.hidden = Hidden(town, seer, task_id, JUMP + 1)
    assert isinstance(seer.examine_segment(task_id, JUMP), FalseSegment)


def test_a_solver_that_cannot_show_a_state_of_its_log_loses_the_task(town: Town) -> None:
    task_id = jumped(town, EXACT)
    seer = town.join(Whistleblower, "w")
    Hidden(town, seer, task_id, JUMP + 1)
    assert run(seer, next_of_whistleblower)[:1] == ["demand a state"]
    (demand,) = seer.market.demands.demands(task_id)
    seer.connection.wait_until(demand.deadline)
    assert run(seer, next_of_whistleblower) == ["remove the solver"]
    assert seer.market.registry.task(task_id).status is Status.BIDDING


def test_the_policy_is_about_the_clock_of_the_terms(town: Town) -> None:
    """Another open objection doubles the clock of the next, and keeps nobody away."""
    task_id = jumped(town, EXACT)
    sitting(town, task_id)
    friend = town.join(Seer, "x")
    friend.baseless(task_id, next(s for s in not_drawn(friend, task_id) if s != JUMP))
    game, clock = friend.market.objection_game, friend.market.registry.terms(task_id).clock
    strict = replace(PUBLIC_CHAIN, max_dispute=game.longest(clock))
    seer = town.join(Whistleblower, "w", policy=strict)
    assert run(seer, next_of_whistleblower) == ["object to a segment"]
    assert game.params(friend.market.objections.disputes(task_id)[-1]).clock == 2 * clock
    stricter = town.join(Whistleblower, "w", policy=replace(strict, max_dispute=game.longest(clock) - 1))
    with pytest.raises(ProtocolError, match="longest dispute"):
        stricter.require_money(task_id)


def test_a_seated_verifier_ends_the_objection_that_its_demand_waits_for(town: Town) -> None:
    task_id = honest(town, EXACT)
    verifier, seer = sitting(town, task_id), town.join(Seer, "x")
    market = verifier.market
    first = market.proofs.drawn_segments(task_id)[0]
    Hidden(town, verifier, task_id, first, first + 1)
    process = Process(verifier, next_of_verifier)
    process.turn()
    demands = market.demands.demands(task_id)
    assert demands
    far = next(s for s in not_drawn(verifier, task_id) if not {s, s + 1} & {first, first + 1})
    number = seer.baseless(task_id, far)
    verifier.connection.wait_until(max(market.objection_game.deadline(number), *(d.deadline for d in demands)))
    made = [taken for _ in range(4) for taken in process.turn() if taken.result is DecisionResult.DONE]
    # The silent solver loses the objection by its clock; then nothing keeps its demand from its end.
    assert [taken.verb for taken in made][:3] == ["claim a timeout", "settle a dispute", "remove the solver"]
    assert market.objections.objected(task_id).open == 0
    assert market.registry.task(task_id).status is Status.BIDDING


def test_a_look_is_a_decision_of_its_own_and_the_oddest_comes_first(town: Town) -> None:
    task_id = jumped(town, EXACT)
    sitting(town, task_id)
    seer = town.join(Whistleblower, "w")
    seer.strategy = replace(seer.strategy, dice=40)  # some of them hit another segment that isn't drawn
    screens = acts(next_of_whistleblower(seer, task_id))
    assert screens.verb == "screen the log"
    assert not seer.has_screened(task_id)
    screens.act()
    waiting = seer.waiting_suspects(task_id)
    assert len(waiting) > 1
    looks = acts(next_of_whistleblower(seer, task_id))
    assert looks.verb == "replay a segment"
    assert f"segment {waiting[0]} " in looks.why
    looks.act()
    assert list(seer.looks(task_id)) == waiting[:1]
    # A third of the time that is left: one look fits, which are two replays; a pace four times as slow leaves none.
    left = seer.market.registry.task(task_id).deadline - seer.connection.now()
    again = town.join(Whistleblower, "w")
    again.times.paces[task_id] = left / 3 / (2 * INTERVAL)
    again.suspects(task_id)
    assert isinstance(next_of_whistleblower(again, task_id), Action)
    again.times.paces[task_id] *= 4
    assert "examining twice takes this machine" in waits(next_of_whistleblower(again, task_id))
    assert again.looks(task_id) == {}


def test_a_screen_keeps_no_evidence_and_a_look_does(town: Town, tmp_path: Path) -> None:
    task_id = jumped(town, EXACT)
    seer = town.join(Whistleblower, "w", evidence=tmp_path)
    states = {entry.object for entry in seer.proof(task_id).checkpoints}

    def kept() -> set[str]:
        return {path.name for path in (tmp_path / "evidence").glob("??/*")} & states

    with seer.about(task_id):
        assert seer.suspects(task_id)
        task_start = seer.proof(task_id).checkpoints[0].object
        assert kept() <= {task_start}
        assert isinstance(seer.look(task_id, JUMP), FalseSegment)
        assert kept() - {task_start} == {seer.proof(task_id).checkpoints[JUMP + i].object for i in range(2)}


def test_own_disputes_concern_a_whistleblower_while_a_verdict_is_watched(town: Town) -> None:
    """It has no ticket; its silent opponent loses by its clock all the same."""
    task_id = jumped(town, EXACT)
    verifier, seer = sitting(town, task_id), town.join(Whistleblower, "w")
    seer.market.sortition.resign(seer.wallet, seer.market.sortition.tickets_now(seer.wallet.address))
    number = seer.object(task_id, FalseSegment(JUMP, seer.own_claim(task_id, JUMP)))  # type: ignore[arg-type]
    seer.connection.wait_until(seer.market.objection_game.deadline(number))
    verifier.verify(task_id)
    assert seer.market.registry.task(task_id).status is Status.WATCHED
    assert run(seer, next_of_whistleblower)[:2] == ["claim a timeout", "reclaim"]


def test_a_long_look_at_one_log_costs_no_dispute_about_another(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver moves while the whistleblower replays a segment, whose steps take longer than its clock."""
    monkeypatch.setattr(attention, "LOOK", 0.0)
    other, task_id = honest(town, EXACT), jumped(town, EXACT, wrong_bit)
    solver, seer = town.join(LyingSolver, "t"), town.join(Whistleblower, "w")
    connection = Connection.to(town.connection.name)  # knows nothing of what the whistleblower has read
    found = seer.examine_segment(task_id, JUMP)
    assert found is not None
    number, game = seer.object(task_id, found), seer.market.objection_game  # type: ignore[arg-type]  # it is false
    clock, passing = seer.market.registry.terms(task_id).clock, iter([0.3, 0.45, 0.45])

    def slow(program: StepProgram, constants: Sequence[Words]) -> Executor:
        return attentive(on_all_cores, lambda: step(next(passing)))(program, constants)

    def step(part: float) -> None:
        if part == 0.3:
            assert solver.session(task_id, number, Matter.OBJECTION).advance()
        connection.wait_until(connection.now() + int(part * clock))

    seer._suspects[seer._log_of(other)] = (not_drawn(seer, other)[0],)
    seer.times.executors, seer.times.paces[other] = slow, 0.0
    process = Process(seer, next_of_whistleblower)
    monkeypatch.setattr(process, "tasks", lambda: [other])
    (taken,) = process.turn()
    assert (taken.verb, taken.result) == ("replay a segment", DecisionResult.DONE), taken
    assert list(passing) == []
    assert game.deadline(number) > connection.now()


def test_what_the_contract_would_refuse_is_said_before_any_replay(town: Town) -> None:
    task_id = jumped(town, EXACT)
    verifier, seer = sitting(town, task_id), town.join(Whistleblower, "w")
    drawn = seer.market.proofs.drawn_segments(task_id)[0]
    seer.require_open(task_id, JUMP)
    with pytest.raises(ProtocolError, match=f"segment {drawn} is drawn, and left to the verdict"):
        seer.require_open(task_id, drawn)
    with pytest.raises(ProtocolError, match="can't object to its own log"):
        town.join(Whistleblower, "t").require_open(task_id, JUMP)
    seer.require_money(task_id)
    leave(seer, 1)
    with pytest.raises(ProtocolError, match="has 1 wei free in the vault"):
        seer.require_money(task_id)
    verifier.verify(task_id)
    disclosed(verifier, task_id)
    seer.require_open(task_id, drawn)
    seer.connection.wait_until(seer.market.registry.task(task_id).deadline)
    with pytest.raises(ProtocolError, match="its status is contested"):
        seer.require_open(task_id, drawn)
