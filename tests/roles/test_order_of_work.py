"""A turn begins with the clocks that run against a party, and no other task delays them."""

import pytest
from all_parties import Solver, Submitter, next_of_solver, next_of_whistleblower
from log_market import EXACT, TOLERANT, Accuser, Seer, honest, long_capture, not_drawn
from role_market import Town, acts

from node_snapshots import order
from pol.chain.desks.market import Matter
from pol.chain.node.connection import Connection
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.data_availability import demand_state
from pol.roles.party.decisions import Action, Decision, Mode, Wait
from pol.roles.party.dispute_session import OpenDispute, open_disputes
from pol.roles.process.obligations import reading_seconds
from pol.roles.process.party_process import OLD_LOOK, DecisionResult, Process
from pol.roles.submitter.submitter import Offer


class Slow:
    """Decisions of a solver, each look at a task taking 100 seconds of a clock."""

    def __init__(self) -> None:
        self.time = 0.0
        self.looks: list[bytes] = []

    def clock(self) -> float:
        return self.time

    def decide(self, role: Solver, task_id: bytes) -> Decision:
        self.time += 100
        self.looks.append(task_id)
        return next_of_solver(role, task_id)


def test_disputes_come_first_and_the_others_take_turns(town: Town) -> None:
    older = [town.join(Submitter, "s").submit(long_capture(), EXACT) for _ in range(3)]
    task_id = honest(town, EXACT)
    seer, solver, slow = town.join(Seer, "x"), town.join(Solver, "t"), Slow()
    seer.baseless(task_id, not_drawn(seer, task_id)[0])
    process = Process(solver, slow.decide, poll=10, clock=slow.clock)
    taken = process.turn()
    assert slow.looks[0] == task_id
    assert (taken[0].task_id, taken[0].verb, taken[0].result) == (task_id, "move", DecisionResult.DONE)
    assert process.is_behind
    assert len(set(slow.looks) - {task_id}) == 1
    for _ in range(4):
        process.turn()
    assert set(older) <= set(slow.looks)


def test_a_turn_that_has_waited_looks_at_the_latest_block(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction under this key that nobody here has sent is waited for a minute before the first look."""
    solver, slow, seen = town.join(Solver, "t"), Slow(), list[int]()
    process = Process(solver, slow.decide, poll=10, clock=slow.clock)
    direct, disputed = Connection.to(town.connection.name), process._disputed

    def waits(block: bytes) -> None:
        order(direct, "evm_mine")
        slow.time += 60

    def first() -> set[bytes]:
        seen.append(solver.connection.block_number())
        return disputed()

    monkeypatch.setattr(solver.wallet.outbox, "resume", waits)
    monkeypatch.setattr(process, "_disputed", first)
    process.turn()
    assert seen == [direct.block_number()]


def test_many_short_looks_are_of_more_than_one_block(town: Town) -> None:
    """None of them is long, and all together would be of a block that is minutes old."""
    for _ in range(4):
        town.join(Submitter, "s").submit(long_capture(), EXACT)
    solver, direct, seen = town.join(Solver, "t"), Connection.to(town.connection.name), list[int]()
    time = 0.0

    def decide(role: Solver, task_id: bytes) -> Decision:
        nonlocal time
        seen.append(direct.block_number() - role.connection.block_number())
        order(direct, "evm_mine")
        time += 0.6 * OLD_LOOK
        return Wait(task_id, "a test")

    Process(solver, decide, poll=10, clock=lambda: time).turn()
    assert len(seen) >= 4
    assert max(seen) == 1


@pytest.mark.long
@pytest.mark.parametrize("offer", [EXACT, TOLERANT], ids=["a demand", "a counterclaim"])
def test_no_flood_of_slow_servers_keeps_a_solver_from_what_it_owes(town: Town, offer: Offer) -> None:
    """The looks at new tasks took half of the time that was left, one after the other, until it was over."""
    task_id = honest(town, offer, spared=1)
    solver, other, submitter = town.join(Solver, "t"), town.join(Accuser, "x"), town.join(Submitter, "s")
    connection = Connection.to(town.connection.name)  # it remembers nothing of a look

    def decide(role: Solver, each: bytes) -> Decision:
        if each == task_id:
            return next_of_solver(role, each)
        connection.wait_until(connection.now() + int(reading_seconds(role, each)))
        return Wait(each, "its server takes all the time that it gets")

    process = Process(solver, decide, poll=15, clock=lambda: float(connection.now()))
    process.turn()
    for _ in range(25):
        submitter.submit(long_capture(), EXACT)
    if offer is EXACT:
        until = demand_state(other, task_id, 1).deadline
    else:
        until = solver.market.counterclaims.counterclaimed(other.accuse(task_id, 1)).until
    assert connection.now() <= until
    taken = process.turn()
    assert (taken[0].task_id, taken[0].result) == (task_id, DecisionResult.DONE)
    assert connection.now() <= until


def test_what_failed_before_comes_last(town: Town) -> None:
    """A store that answers after a minute may delay a task with a nearer deadline, not the others."""
    first, second, third = (town.join(Submitter, "s").submit(long_capture(), EXACT) for _ in range(3))
    done, solver = list[bytes](), town.join(Solver, "t")

    def fails() -> None:
        done.append(first)
        raise OperationalError("the store doesn't answer")

    def decide(role: Solver, task_id: bytes) -> Decision:
        if task_id not in {first, second, third}:
            return Wait(task_id, "it is somebody else's")
        act = fails if task_id == first else lambda: done.append(task_id)
        due = role.connection.now() + {first: 100, second: 200, third: 300}[task_id]
        return Action(task_id, "move", "a clock runs", Mode.DEFEND, act, due)

    process = Process(solver, decide)
    process.turn()
    process.turn()
    assert done == [first, second, third, second, third, first]


def test_open_disputes_are_known_by_events(town: Town) -> None:
    task_id = honest(town, EXACT)
    seer, solver = town.join(Seer, "x"), town.join(Solver, "t")
    assert open_disputes(solver) == []
    number = seer.baseless(task_id, not_drawn(seer, task_id)[0])
    found = [OpenDispute(Matter.OBJECTION, number, task_id)]
    assert open_disputes(solver) == open_disputes(seer) == found
    game = seer.market.objection_game
    town.connection.wait_until(game.deadline(number))
    game.timeout(seer.wallet, number)
    assert game.winner(number) is Side.CHALLENGER
    assert open_disputes(solver) == open_disputes(seer) == []


def test_nothing_is_replayed_to_know_whose_turn_it_is(town: Town) -> None:
    task_id = honest(town, EXACT)
    seer, solver = town.join(Seer, "x"), town.join(Solver, "t")
    seer.baseless(task_id, not_drawn(seer, task_id)[0])
    again = town.join(Counting, "x")
    assert Process(solver, next_of_solver).turn()[0].verb == "move"
    decision = acts(next_of_whistleblower(again, task_id))
    assert (decision.verb, again.executed) == ("move", 0)
    assert decision.at_stake == again.market.objections.dispute(1).bond > 0
    decision.act()
    assert again.executed == 1


@pytest.mark.parametrize("way", ["program_in", "session"])
def test_a_dispute_that_cannot_be_read_hides_no_other(town: Town, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are about one task, and the clock of the one that fails ends first."""
    task_id = honest(town, EXACT)
    seer, solver = town.join(Seer, "x"), town.join(Solver, "t")
    game = seer.market.objection_game
    for segment in not_drawn(seer, task_id)[:2]:
        seer.baseless(task_id, segment)
    first, second = (each.number for each in open_disputes(seer))
    process = Process(solver, next_of_solver)
    while {game.standing(n, seer.program_in(task_id, n, Matter.OBJECTION)).position.turn for n in (first, second)} != {
        Side.CHALLENGER
    }:
        process.turn()
    working = getattr(seer, way)

    def fails(task: bytes, number: int, matter: Matter) -> object:
        if number == first:
            raise ProtocolError("it can't be read")
        return working(task, number, matter)

    monkeypatch.setattr(seer, way, fails)
    acts(next_of_whistleblower(seer, task_id)).act()
    assert game.standing(second, seer.task(task_id).program).position.turn is Side.ASSERTER
    with pytest.raises(ProtocolError, match="it can't be read"):
        next_of_whistleblower(seer, task_id).act()  # type: ignore[union-attr]  # an action, if it can be read


class Counting(Seer):
    """Counts its executions."""

    executed = 0

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        self.executed += 1
        return super().execute(task_id, segment)
