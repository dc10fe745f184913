"""Advice of doctor can be followed."""

import pytest

from pol.training.recorder.unrecorded_state import TENSOR, VALUE
from pol.verification.runs.rehearsed_run import UnrecordedState
from pol.verification.runs.resume_diagnosis import RunDifference, explain_resumption, note_on_variables
from pol.verification.runs.run_comparison import StateComparison

pytestmark = pytest.mark.rules


def test_items_of_a_cache_are_told_once_with_a_part_that_holds_them() -> None:
    lost = [UnrecordedState(f"made.dataset.cache[{n}] (main in t.py)", TENSOR, "aa" * 32, n + 1) for n in (3, 1, 2)]
    lost.append(UnrecordedState("best[0] (main in t.py)", VALUE, "3", 9))
    (advice,) = explain_resumption(RunDifference(StateComparison(4, (), ()), {}, True, lost))
    assert "made.dataset.cache (main in t.py) isn't recorded" in advice.cause
    assert advice.cause.endswith("Then it reads best[0] (main in t.py), which differ too")
    assert (
        "state_dict and load_state_dict that hold it, and the recorder parts={'dataset': made.dataset}" in advice.remedy
    )
    assert "made.dataset.cache (main in t.py), best[0] (main in t.py)" in note_on_variables(lost)[0]
    (advice,) = explain_resumption(RunDifference(StateComparison(4, (), ()), {}, True, lost[3:]))
    assert advice.remedy == "make it parts={'values': pol.Values(best=...)}"
