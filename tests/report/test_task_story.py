"""Every state of a task has its sentences: whose turn, until when, what comes next; and its place among the stages."""

from dataclasses import fields
from typing import Any

import pytest

from pol.chain.desks.objections import ObjectionCount
from pol.chain.desks.task_registry import MarketTask, Status, TaskOutcome, Terms
from pol.report.elements.html_elements import Markup
from pol.report.market_page import task_page
from pol.roles.monitor.market_view import TaskView
from pol.roles.monitor.task_story import ENDS, STAGES, following, on_turn, stages_of, standing

pytestmark = pytest.mark.rules
ETHER = 10**18
NOW = 1_700_000_000
SUBMITTER, SOLVER, HOLDER, NOBODY = (f"0x{digit * 40}" for digit in "1230")
OPEN = [status for status in Status if status not in (Status.NONE, Status.CLOSED)]


def task(status: Status, outcome: TaskOutcome = TaskOutcome.NONE, **changed: Any) -> TaskView:
    numbers = {field.name: bytes(32) if field.type == "bytes" else 1 for field in fields(Terms)}
    terms = Terms(**(numbers | {"steps": 60, "interval": 3, "draws": 4, "unit_price": 1 << 32, "margin": 2}))
    state = MarketTask(SUBMITTER, status, outcome, 0, SOLVER, 1, HOLDER, 1, 3 * ETHER // 2, 0)
    given: dict[str, Any] = {
        "task_id": bytes(32),
        "task": state,
        "terms": terms,
        "waits": "the solver trains",
        "until": NOW + 7200,
        "call": "",
        "final": False,
        "unserved": (),
        "happenings": (),
        "thresholds": (0, 0, 0),
        "verdicts": (),
        "disputes": (),
        "checkpoints": 0,
        "drawn": (),
        "objections": ObjectionCount(0, 0, 0, fell=False),
        "counterclaims": 0,
    }
    return TaskView(**(given | changed))


def test_every_state_has_sentences_and_a_stage() -> None:
    assert [status for status, stage in STAGES.items() if stage.then] == OPEN
    assert {*ENDS} == {*TaskOutcome}
    assert [*STAGES] == [*OPEN, Status.CLOSED]


@pytest.mark.parametrize("status", OPEN)
def test_an_open_task(status: Status) -> None:
    found = task(status)
    assert standing(found, NOW) == "The solver trains until 2023-11-15 00:13:20 UTC, 2 h from now."
    assert following(found) == f"Next: {STAGES[status].then}"
    page = task_page(found, NOW, lambda kind, key: key)
    assert page.count('class="now"') == 1
    assert f'class="now">{STAGES[status].name}<' in page
    assert found.task.status is status


@pytest.mark.parametrize(("outcome", "words"), [*ENDS.items()])
def test_a_closed_task(outcome: TaskOutcome, words: str) -> None:
    found = task(Status.CLOSED, outcome, until=None)
    assert standing(found, NOW) == words.format(price="1.5 ETH")
    assert following(found) == ""
    kind = "done" if outcome is TaskOutcome.ACCEPTED else "lost"
    assert f'class="{kind}">settled<' in task_page(found, NOW, lambda kind, key: key)


def test_a_deadline_that_is_over_and_a_call_that_anybody_may_make() -> None:
    assert standing(task(Status.TRAINING, until=NOW), NOW) == "The solver trains: due now."
    waits = "anybody may settle: nobody has refuted the verdict in its window"
    assert standing(task(Status.CONTESTED, waits=waits, until=None), NOW).startswith("Anybody may settle: nobody")


def test_who_is_on_turn() -> None:
    named = {status: on_turn(task(status).task) for status in OPEN}
    assert named[Status.TRAINING] == SOLVER
    assert named[Status.VERIFYING] == HOLDER
    assert named[Status.BIDDING] is None


def test_an_exact_task_has_no_profile() -> None:
    assert Status.PROFILING in stages_of(task(Status.BIDDING).terms)
    exact = Terms(**(vars(task(Status.BIDDING).terms) | {"margin": 0}))
    assert Status.PROFILING not in stages_of(exact)


def test_progress_draw_and_objections() -> None:
    objections = ObjectionCount(1, 2, 1, fell=True)
    found = task(Status.CONTESTED, checkpoints=11, drawn=(7, 2), objections=objections, counterclaims=1)
    page = task_page(found, NOW, lambda kind, key: key)
    assert isinstance(page, Markup)
    for words in (
        "30 of 60 steps: 10 of 20 segments posted.",
        "Segments that the beacon has drawn: 2, 7.",
        "2 objections to segments of the solver&#x27;s log, 1 open, of which 1 counterclaim by thresholds.",
        "the proof has fallen",
        "Next: open objections to the log are decided",
    ):
        assert words in page, words
