"""Somebody else's work."""

import numpy as np
import pytest

from attack_tasks import SEGMENTS, Expected, check, findings, target
from lab.attacks.attack_target import numbers
from lab.attacks.stolen_work import ATTACKS, SAME_TASK
from lab.attacks.verification_outcome import mount
from pol.verification.examination.screening import ranked, suspicions
from pol.verification.verdict.verdict import Outcome

EXPECTED = {
    "stolen-run": Expected(0.0, SEGMENTS),
    "stolen-start": Expected(0.0, None),
    "splice": Expected(11 / 12, 1),
    "drip": Expected(11 / 12, 1),
}
BACKWARDS = "retrospective"


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_refused_or_rejected(name: str) -> None:
    check(tuple(attack for attack in ATTACKS if attack.name != BACKWARDS), name, EXPECTED)


def test_undone_steps_are_trained_steps_and_never_reach_the_start() -> None:
    found = findings(BACKWARDS)
    assert found.cost == pytest.approx(len(found.forgery.trained) / SEGMENTS)
    assert not found.passes_exact
    assert found.rejected == found.cheated == list(range(SEGMENTS - 1))
    assert found.segments[-1].outcome is Outcome.ACCEPTED
    last = target().segment_end(found.forgery.states[-2], SEGMENTS - 1)
    for ours, theirs in zip(last, target().stolen[-1], strict=True):
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-3, atol=1e-5)


def test_one_jump_is_in_one_segment_and_the_screen_finds_it() -> None:
    found = findings("splice")
    assert found.caught(1) == pytest.approx(1 / SEGMENTS)
    oddest = ranked(suspicions(target().task.program, found.forgery.states))
    assert found.cheated[0] in [suspicion.segment for suspicion in oddest[:3]]


def test_a_copied_proof_of_the_very_task_is_true() -> None:
    """A proof says that the work was done, not by whom: that is for the market, which lets one solver commit."""
    found = mount(SAME_TASK, target())
    assert found.passes_exact
    assert found.cost == 0.0
