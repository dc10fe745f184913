"""Advice of doctor can be followed."""

import pytest

from pol.training.recorder.unrecorded_state import TENSOR, VALUE
from pol.training.storage.commitment import EntryMismatch
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


def test_a_loop_without_a_loader_is_told_to_change_its_values_before_the_recorders_step() -> None:
    """Its checkpoint is taken there."""
    lost = [UnrecordedState("place (main in t.py)", VALUE, "3", 1)]
    (advice,) = explain_resumption(RunDifference(StateComparison(4, (), ()), {}, False, lost))
    assert advice.remedy.endswith(
        "pol.Values(place=...)}, and change it before recorder.step(), where such a loop goes on"
    )
    entries = (EntryMismatch("values", "differs"),)
    facts = RunDifference(StateComparison(4, entries, ()), {"values": []}, False, (), parts={"values": "Values"})
    (advice,) = explain_resumption(facts)
    assert advice.remedy.startswith("change values before recorder.step(), where such a loop goes on; or keep")


def test_rates_that_no_schedule_in_sight_sets_may_be_set_from_the_steps() -> None:
    paths = {"optimizer": ["optimizer/state/param_groups/0/lr"]}
    entries = (EntryMismatch("optimizer", "differs"),)
    (advice,) = explain_resumption(RunDifference(StateComparison(4, entries, ()), paths, True, ()))
    assert advice.remedy == "give the recorder scheduler=scheduler, or set the rates from recorder.steps"


def test_a_librarys_own_attributes_are_no_values_of_the_loop() -> None:
    lost = [UnrecordedState("attribute _init_scale of scaler", VALUE, "4.0", 0)]
    assert note_on_variables(lost) == [
        "what a library keeps beside its state_dict() differs, as caches do: attribute _init_scale of scaler"
    ]
