"""`pol doctor` on real trainers: one that is right, and one for each way in which a resumption goes wrong.

The programs run as processes forked from one that has imported torch already, and are killed for real.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from forked_programs import PROCESSES
from pol.errors import OperationalError, ProtocolError
from pol.training.recorder.doctor_control import Rehearsal
from pol.verification.runs.resume_check import (
    EXACT,
    NOT_DETERMINISTIC,
    NOT_EXACT,
    NOT_PORTABLE,
    OTHER_ROOTS,
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


def examined(folder: Path, *arguments: str, steps: int = 12) -> ResumeReport:
    def run(variables: Mapping[str, str]) -> ProgramExit:
        process = PROCESSES.Process(target=program, args=(list(arguments), dict(variables)))
        process.start()
        process.join(100)
        assert process.exitcode is not None
        return ProgramExit(process.exitcode, "")

    return check_resumption(run, folder, steps)


def said(found: ResumeReport) -> str:
    return " | ".join(f"{item.cause} -> {item.remedy}" for item in found.advice)


def test_a_right_trainer_is_exact(tmp_path: Path) -> None:
    found = examined(tmp_path, str(TRAINER), "none")
    assert (found.verdict, found.advice, found.step) == (EXACT, (), None), said(found)
    assert found.resumed_from is not None
    assert found.killed_at is not None
    assert found.resumed_from < found.killed_at < found.steps == 12


def test_a_launch_with_other_roots_is_a_verdict_of_its_own(tmp_path: Path) -> None:
    """Seeded by torch alone: nothing draws from the other generators, and they are in every complete root."""
    found = examined(tmp_path, str(TRAINER), "torch alone")
    assert (found.verdict, found.step) == (OTHER_ROOTS, None), said(found)
    assert "add at the top of the program: import random; random.seed(0)" in said(found)
    assert "torch.manual_seed" not in said(found)


def test_a_batch_that_is_drawn_ahead_is_named(tmp_path: Path) -> None:
    found = examined(tmp_path, str(BY_HAND), "ahead")
    assert found.verdict == NOT_EXACT
    assert "x (main in trainer_by_hand.py), y (main in trainer_by_hand.py) are in hand when a step is over" in said(
        found
    )
    assert "recorder.batches" not in said(found)
    assert "loader" not in said(found)


@pytest.mark.parametrize("manner", ["each step", "as a part"])
def test_batches_drawn_by_hand_resume_exactly(tmp_path: Path, manner: str) -> None:
    """What the guide advises."""
    found = examined(tmp_path, str(BY_HAND), manner)
    assert (found.verdict, found.advice) == (EXACT, ()), said(found)


# A fault takes four processes. One of each kind of evidence is looked for in every run, the others in the slow suite.
@pytest.mark.parametrize(
    ("fault", "components", "words"),
    [
        ("scheduler", {"optimizer"}, ["optimizer/state/param_groups/0/lr", "scheduler=scheduler"]),
        ("teacher", {"parameters", "optimizer"}, ["module teacher (main in trainer.py)", "parts={'teacher'"]),
        pytest.param(
            "generator",
            {"parameters"},
            ["generator noise (main in trainer.py)", "parts={'noise'"],
            marks=pytest.mark.slow,
        ),
        ("loader", {"random"}, ["doesn't see the data of loader (main in trainer.py)", "recorder.batches(loader)"]),
        pytest.param("attribute", {"parameters"}, ["attribute calls of the model", "buffer"], marks=pytest.mark.slow),
        ("gradients", {"parameters"}, ["gradients that add up", "Checkpoints(gradients=True)"]),
        pytest.param(
            "part",
            {"parameters"},
            ["gain doesn't come back as it was", "load_state_dict of gain"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "data",
            {"cursor"},
            ["batches after the resumption are others", "generator data.source (main in trainer.py)"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, fault: str, components: set[str], words: list[str]) -> None:
    found = examined(tmp_path, str(TRAINER), fault)
    assert found.verdict == NOT_EXACT
    assert found.difference is not None
    assert components <= set(found.difference.components)
    assert found.resumed_from is not None
    assert found.step is not None
    assert found.step > found.resumed_from
    assert all(word in said(found) for word in words), said(found)


@pytest.mark.slow
def test_what_is_lost_without_effect_on_the_record_is_named(tmp_path: Path) -> None:
    """An average of the weights that nothing reads yet: all recorded steps are equal, and it is lost all the same."""
    found = examined(tmp_path, str(TRAINER), "average")
    assert (found.verdict, found.difference) == (NOT_EXACT, None)
    assert "module average (main in trainer.py)" in said(found)


@pytest.mark.parametrize(
    ("fault", "step", "words"),
    [
        ("time", 1, ["the model differs", "noise (main in trainer.py) is a generator in another state"]),
        pytest.param("unseeded", 0, ["torch.manual_seed"], marks=pytest.mark.slow),
    ],
)
def test_a_trainer_that_is_not_deterministic_is_told_so(
    tmp_path: Path, fault: str, step: int, words: list[str]
) -> None:
    found = examined(tmp_path, str(TRAINER), fault)
    assert (found.verdict, found.step, found.resumed_from) == (NOT_DETERMINISTIC, step, None)
    assert all(word in said(found) for word in words), said(found)


def test_programs_that_cannot_be_examined(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('nothing to record')")
    with pytest.raises(OperationalError, match=r"recorded nothing: it has to use pol\.training\.Recorder"):
        examined(tmp_path / "runs", str(script))
    script.write_text("raise SystemExit(7)")
    with pytest.raises(OperationalError, match="ended with code 7"):
        examined(tmp_path / "runs", str(script))
    with pytest.raises(ProtocolError, match="unset it"):
        Rehearsal.of({"POL_DOCTOR_STORE": "memory://x", "POL_DOCTOR_EVERY": "often"})
    assert Rehearsal.of({}) is None


@pytest.mark.slow
def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    script = str(TRAINER.with_name("trainer_transformers.py"))
    found = examined(tmp_path / "right", script, "global", str(tmp_path / "out"))
    assert (found.verdict, found.steps) == (EXACT, 12), said(found)
    found = examined(tmp_path / "wrong", script, "own", str(tmp_path / "out"))
    assert found.verdict == NOT_EXACT
    assert "the batches after the resumption are others" in said(found)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code"), [("none", 0), ("scheduler", 1)])
def test_the_command(tmp_path: Path, fault: str, code: int) -> None:
    options = ["doctor", "--steps", "12", "--json", "--keep", str(tmp_path), "--"]
    done = subprocess.run(
        [str(POL), *options, sys.executable, str(TRAINER), fault], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == (NOT_EXACT if code else EXACT)
    if code:
        assert found["first_difference"]["components"] == ["optimizer"]
        (value,) = found["first_difference"]["values"]
        assert value["path"] == "optimizer/state/param_groups/0/lr"


def test_the_command_says_what_it_cannot_run() -> None:
    done = subprocess.run([str(POL), "doctor", "--", "/nowhere/python"], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "can't run /nowhere/python" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("kind", ["exact", "eager"])
def test_other_instructions_and_threads(tmp_path: Path, kind: str) -> None:
    """Processes of their own: torch chooses its instructions once."""
    trainer = [sys.executable, str(TRAINER.with_name("trainer_exact.py")), kind]
    done = subprocess.run(
        [POL, "doctor", "--exact", "--steps", "8", "--json", "--", *trainer],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    if kind == "exact":
        assert (done.returncode, found["verdict"]) == (0, EXACT), done.stdout
        return
    assert (done.returncode, found["verdict"]) == (1, NOT_PORTABLE), done.stdout
    assert found["first_difference"]["step"] == 1
    assert "take the steps with pol.exact" in found["advice"][0]["remedy"]
