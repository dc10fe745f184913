"""Odd and hostile tasks, all at once before all roles: no process ends, and nobody stakes on what it can't judge."""

from collections.abc import Mapping

import pytest
from all_parties import Solver, Verifier, Whistleblower, next_of_solver, next_of_submitter, next_of_verifier
from odd_tasks import HUGE_TASKS, TASKS, Desk, Odd
from role_market import Town, lent_town

from pol.roles.party.decisions import Mode
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from shared_chain import SharedChain

pytestmark = pytest.mark.long
TURNS = 2
STAKES = {"claim the seat", "bid", "challenge", "challenge the profile"}
Seen = dict[str, tuple[bytes | None, list[LoggedDecision]]]
JOINED = ()


@pytest.fixture(scope="module")
def seen(node: Town, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The decisions about each task, after all roles have had their turns."""
    return _seen(node, tmp_path_factory, TASKS)


def _seen(town: Town, tmp_path_factory: pytest.TempPathFactory, tasks: Mapping[str, Odd]) -> Seen:
    desk, found = Desk(town), Seen()
    roles = (
        (town.join(Verifier, "v", evidence=tmp_path_factory.mktemp("v")), next_of_verifier),
        (town.join(Solver, "t"), next_of_solver),
        (town.join(Whistleblower, "w", evidence=tmp_path_factory.mktemp("w")), next_of_whistleblower),
        (desk.submitter, next_of_submitter),
    )
    for name, odd in tasks.items():
        try:
            found[name] = desk.submit(odd.make(desk)), []
        except odd.refused:
            found[name] = None, []
    told: list[LoggedDecision] = []
    processes = [Process(role, decide, Mode.PROPOSE, told.append) for role, decide in roles]  # type: ignore[arg-type]
    for _ in range(TURNS):
        for process in processes:
            process.turn()
        town.connection.wait_until(town.connection.now() + 600)
    for taken in told:
        for task_id, of_task in found.values():
            if task_id == taken.task_id:
                of_task.append(taken)
    return found


def test_there_are_enough_of_them() -> None:
    assert len(TASKS) >= 40
    assert sum(odd.judgeable for odd in TASKS.values()) >= 10


@pytest.mark.parametrize("name", TASKS)
def test_an_odd_task(seen: Seen, name: str) -> None:
    _require_right(TASKS[name], *seen[name])


@pytest.mark.parametrize("name", HUGE_TASKS)
def test_a_huge_task(name: str, chain: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> None:
    with lent_town(chain, tmp_path_factory.mktemp("odd")) as town:
        _require_right(HUGE_TASKS[name], *_seen(town, tmp_path_factory, HUGE_TASKS)[name])


def _require_right(odd: Odd, task_id: bytes | None, told: list[LoggedDecision]) -> None:
    if task_id is None:
        assert odd.refused
        return
    assert len(told) >= 3, "every role has looked at it"
    staked = [taken for taken in told if taken.verb in STAKES and taken.result is DecisionResult.DONE]
    assert bool(staked) == odd.judgeable, told
    faults = [taken for taken in told if "a fault of pol" in taken.detail]
    assert not faults, faults
