"""`pol doctor` on real trainers: one that is right, and one for each way in which a resumption goes wrong.

The programs run as processes forked from one that has imported torch already, and are killed for real.
"""

import json
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cli_runner import Said, pol
from ended_process import ran
from forked_programs import PROCESSES
from pol.errors import OperationalError, ProtocolError
from pol.training.recorder.doctor_control import Rehearsal
from pol.verification.runs.cut_places import BEHIND, FIRST, LATER
from pol.verification.runs.resume_check import (
    EXACT,
    NOT_DETERMINISTIC,
    NOT_EXACT,
    NOT_PORTABLE,
    OTHER_ROOTS,
    SEEN,
    ProgramExit,
    ResumeReport,
    check_resumption,
)

TRAINER = Path(__file__).parent / "trainer.py"
BY_HAND = TRAINER.with_name("trainer_by_hand.py")
POL = Path(sys.executable).parent / "pol"


def program(arguments: list[str], variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


def examined(folder: Path, *arguments: str, steps: int = 12, one_epoch: bool = False) -> ResumeReport:
    def run(variables: Mapping[str, str]) -> ProgramExit:
        process = PROCESSES.Process(target=program, args=(list(arguments), dict(variables)))
        process.start()
        process.join()
        assert process.exitcode is not None
        return ProgramExit(process.exitcode, "")

    return check_resumption(run, folder, steps, one_epoch=one_epoch)


def said(found: ResumeReport) -> str:
    return " | ".join(f"{item.cause} -> {item.remedy}" for item in found.advice)


def test_a_right_trainer_is_exact(tmp_path: Path) -> None:
    """Cut in the first epoch of seven steps, right behind it, and in the second one; two steps pass between."""
    found = examined(tmp_path, str(TRAINER), "none")
    assert (found.verdict, found.advice, found.step, found.steps) == (EXACT, (), None, 12), said(found)
    assert [(cut.where, cut.killed_at, cut.resumed_from) for cut in found.cuts] == [
        (FIRST, 5, 4),
        (BEHIND, 8, 7),
        (LATER, 10, 9),
    ]


@pytest.mark.slow
def test_gradients_that_add_up_over_a_checkpoint_are_in_it(tmp_path: Path) -> None:
    found = examined(tmp_path, str(TRAINER), "gradients")
    assert (found.verdict, found.advice) == (EXACT, ()), said(found)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "steps", "seen", "words"), [("none", 6, 16, ""), ("long epoch", 6, 6, "Say --steps 73, or --one-epoch")]
)
def test_runs_go_on_to_two_epochs_or_say_what_was_not_seen(
    tmp_path: Path, fault: str, steps: int, seen: int, words: str
) -> None:
    found = examined(tmp_path, str(TRAINER), fault, steps=steps)
    assert (found.verdict, found.steps) == (SEEN if words else EXACT, seen), said(found)
    assert words in " ".join(found.not_seen)
    assert bool(words) == bool(found.not_seen)


@pytest.mark.long
def test_two_steps_with_a_batch(tmp_path: Path) -> None:
    """Only steps that the program records, too, can be resumed; doctor doesn't ask for others."""
    found = examined(tmp_path, str(TRAINER), "two steps", steps=24)
    assert (found.verdict, found.advice) == (EXACT, ()), said(found)


@pytest.mark.long
def test_a_launch_with_other_roots_is_a_verdict_of_its_own(tmp_path: Path) -> None:
    """Seeded by torch alone: nothing draws from the other generators, and they are in every complete root."""
    found = examined(tmp_path, str(TRAINER), "torch alone")
    assert (found.verdict, found.step) == (OTHER_ROOTS, None), said(found)
    assert "add at the top of the program: import random; random.seed(0)" in said(found)
    assert "torch.manual_seed" not in said(found)


@pytest.mark.long
def test_a_batch_that_is_drawn_ahead_is_named(tmp_path: Path) -> None:
    found = examined(tmp_path, str(BY_HAND), "ahead")
    assert found.verdict == NOT_EXACT
    assert "x (main in trainer_by_hand.py), y (main in trainer_by_hand.py) differ after the resumption" in said(found)
    assert "draw a batch at the beginning of its step" in said(found)


@pytest.mark.long
@pytest.mark.parametrize("manner", ["each step", "as a part"])
def test_batches_drawn_by_hand_resume_exactly(tmp_path: Path, manner: str) -> None:
    """What the guide advises. A recorder that sees no batch knows of no epoch."""
    found = examined(tmp_path, str(BY_HAND), manner)
    assert (found.verdict, found.advice) == (SEEN, ()), said(found)
    assert "say --one-epoch" in " ".join(found.not_seen)
    assert examined(tmp_path / "one", str(BY_HAND), manner, one_epoch=True).verdict == EXACT


# A fault takes four processes. One of each kind of evidence is looked for in every run, the others in the slow suite.
@pytest.mark.parametrize(
    ("fault", "components", "words"),
    [
        (
            "counter",
            {"parameters"},
            ["count (main in trainer.py)", "aren't recorded; the first one is read next", "pol.Values(...)"],
        ),
        pytest.param(
            "scheduler",
            {"optimizer"},
            ["scheduler schedule (main in trainer.py) isn't recorded", "give the recorder scheduler=schedule"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "teacher",
            {"parameters", "optimizer"},
            ["module teacher (main in trainer.py)", "parts={'teacher': teacher}"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "generator",
            {"parameters"},
            ["generator noise (main in trainer.py)", "parts={'noise': noise}"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "loader", {"random"}, ["random differ from step", "recorder.batches(loader)"], marks=pytest.mark.long
        ),
        pytest.param("attribute", {"parameters"}, ["attribute calls of the model", "buffer"], marks=pytest.mark.slow),
        pytest.param(
            "attribute of a part",
            {"parameters"},
            ["attribute inner['decay'][0] of gain isn't recorded", "from state_dict of a part"],
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, fault: str, components: set[str], words: list[str]) -> None:
    found = examined(tmp_path, str(TRAINER), fault)
    assert found.verdict == NOT_EXACT
    assert found.difference is not None
    assert components <= set(found.difference.components)
    assert found.step is not None
    assert found.step > found.cuts[-1].resumed_from
    assert all(word in said(found) for word in words), said(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("part", "gain/state/value isn't what the checkpoint of step 4 commits to"),
        ("data", "of the loader 'data', drawn again, isn't the one that was used"),
    ],
)
def test_a_resumption_that_is_refused_is_explained(tmp_path: Path, fault: str, words: str) -> None:
    found = examined(tmp_path, str(TRAINER), fault)
    assert (found.verdict, found.difference) == (NOT_EXACT, None)
    assert words in said(found)


@pytest.mark.slow
def test_what_is_lost_without_effect_on_the_record_is_named(tmp_path: Path) -> None:
    """An average of the weights that nothing reads yet: all recorded steps are equal, and it is lost all the same."""
    found = examined(tmp_path, str(TRAINER), "average")
    assert (found.verdict, found.difference) == (NOT_EXACT, None)
    assert "module average (main in trainer.py)" in said(found)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "step", "words"),
    [
        ("time", 1, ["noise (main in trainer.py) is a generator in another state"]),
        pytest.param("unseeded", 0, ["torch.manual_seed"], marks=pytest.mark.slow),
    ],
)
def test_a_trainer_that_is_not_deterministic_is_told_so(
    tmp_path: Path, fault: str, step: int, words: list[str]
) -> None:
    found = examined(tmp_path, str(TRAINER), fault)
    assert (found.verdict, found.step, found.cuts) == (NOT_DETERMINISTIC, step, ())
    assert all(word in said(found) for word in words), said(found)


@pytest.mark.long
def test_programs_that_cannot_be_examined(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('nothing to record')")
    with pytest.raises(OperationalError, match=r"recorded nothing: it has to use pol\.training\.Recorder"):
        examined(tmp_path / "runs", str(script))
    script.write_text("raise SystemExit(7)")
    with pytest.raises(OperationalError, match="ended with code 7"):
        examined(tmp_path / "runs", str(script))
    with pytest.raises(ProtocolError, match="unset it"):
        Rehearsal.of({"POL_DOCTOR_STORE": "memory://x", "POL_DOCTOR_STOP": "often"})
    assert Rehearsal.of({}) is None


@pytest.mark.slow
def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    script = str(TRAINER.with_name("trainer_transformers.py"))
    for source in ("global", "own"):
        found = examined(tmp_path / source, script, source, str(tmp_path / "out"))
        assert (found.verdict, found.steps) == (EXACT, 12), said(found)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code"), [("none", 0), ("scheduler", 1)])
def test_the_command(tmp_path: Path, fault: str, code: int) -> None:
    options = ["doctor", "--steps", "12", "--json", "--keep", str(tmp_path), "--"]
    done = ran([str(POL), *options, sys.executable, str(TRAINER), fault], code=code)
    found = json.loads(done.stdout)
    assert found["verdict"] == (NOT_EXACT if code else EXACT)
    if code:
        assert found["first_difference"]["components"] == ["optimizer"]
        (value,) = found["first_difference"]["values"]
        assert value["path"] == "optimizer/state/param_groups/0/lr"


def test_the_command_says_what_it_cannot_run() -> None:
    assert pol("doctor", "--", "/nowhere/python") == Said(3, match="can't run /nowhere/python")


@pytest.mark.long
@pytest.mark.parametrize("kind", [pytest.param("exact", marks=pytest.mark.slow), "eager"])
def test_other_instructions_and_threads(tmp_path: Path, kind: str) -> None:
    """Processes of their own: torch chooses its instructions once."""
    trainer = [sys.executable, str(TRAINER.with_name("trainer_exact.py")), kind]
    done = ran(
        [POL, "doctor", "--exact", "--one-epoch", "--steps", "8", "--json", "--", *trainer], code=None, cwd=tmp_path
    )
    found = json.loads(done.stdout)
    if kind == "exact":
        assert (done.returncode, found["verdict"]) == (0, EXACT), done.stdout
        return
    assert (done.returncode, found["verdict"]) == (1, NOT_PORTABLE), done.stdout
    assert found["first_difference"]["step"] == 1
    assert "take the steps with pol.exact" in found["advice"][0]["remedy"]
