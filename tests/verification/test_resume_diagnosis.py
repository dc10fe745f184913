"""Advice of doctor: by component of what differs, and by kind of what is lost."""

import pytest

from pol.training.recorder.unrecorded_state import GENERATOR, SCHEDULER, TENSOR, VALUE
from pol.training.storage.commitment import EntryMismatch
from pol.verification.runs.rehearsed_run import UnrecordedState
from pol.verification.runs.resume_diagnosis import explain_resumption
from pol.verification.runs.run_comparison import Change, StateComparison

pytestmark = pytest.mark.rules


def differing(*names: str) -> StateComparison:
    entries = tuple(EntryMismatch(name.partition("/")[0], "differs") for name in names)
    return StateComparison(4, entries, tuple(Change(name, "1", "2") for name in names))


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("optimizer/state/param_groups/0/lr", "scheduler=scheduler"),
        ("cursor/ranks/0/loaders/data/seen", "recorder.batches(loader)"),
        ("environment/modes/mkldnn", "the same in every run"),
        ("parameters/weight", "parts={'name': object}"),
        ("values/best", "change it before recorder.step()"),
    ],
)
def test_a_component_that_differs_has_one_line_of_advice(path: str, remedy: str) -> None:
    (advice,) = explain_resumption(differing(path), ())
    assert advice.cause.startswith(f"{path.split('/', maxsplit=1)[0]} differ from step 4 on: ")
    assert path.rsplit("/", maxsplit=1)[-1] in advice.cause
    assert remedy in advice.remedy


def test_what_follows_from_another_component_has_no_line() -> None:
    (advice,) = explain_resumption(differing("average/weight", "optimizer/state/0", "parameters/weight"), ())
    assert advice.cause.startswith("parameters differ")


def test_what_is_lost_comes_first_with_the_line_that_records_it() -> None:
    lost = [
        UnrecordedState("noise (main in t.py)", GENERATOR, "aa"),
        UnrecordedState("warmup (main in t.py)", SCHEDULER, "bb"),
        UnrecordedState("count (main in t.py)", VALUE, "3", 1),
    ]
    advice = explain_resumption(differing("parameters/weight"), lost)
    assert advice[0].cause == "generator noise (main in t.py) isn't recorded, and differs after the resumption"
    assert advice[0].remedy == "give the recorder parts={'noise': noise}"
    assert advice[1].remedy.startswith("give the recorder scheduler=warmup")
    assert "count" not in "".join(item.cause for item in advice)
    assert explain_resumption(differing("parameters/weight"), lost[2:])[0].cause.startswith("count (main in t.py) ")


def test_items_of_a_cache_are_told_once() -> None:
    lost = [UnrecordedState(f"made.cache[{n}] (main in t.py)", TENSOR, "aa" * 32, n + 1) for n in (3, 1, 2)]
    lost.append(UnrecordedState("best[0] (main in t.py)", VALUE, "3", 9))
    cause = explain_resumption(differing("parameters/weight"), lost)[0].cause
    assert cause.startswith("made.cache (main in t.py), best[0] (main in t.py) differ after the resumption")
