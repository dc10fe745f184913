"""`pol doctor` on trainers of two processes: what is wrong on one of them is found there, and named."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_doctor import program, said

import chosen_rows
from cli_runner import Said, pol
from forked_programs import PROCESSES
from pol.errors import OperationalError
from pol.verification.runs.resume_check import EXACT, NOT_EXACT, ProgramExit, ResumeReport, check_resumption

TRAINER, BIN = Path(__file__).with_name("trainer_of_ranks.py"), Path(sys.executable).parent
LAUNCHERS = [[str(BIN / "torchrun")], [sys.executable, "-m", "torch.distributed.run"]]
RANKS = 2
pytestmark = pytest.mark.long


def examined(folder: Path, *arguments: str) -> ResumeReport:
    """The report; processes meet as those of torchrun do."""

    def run(variables: Mapping[str, str]) -> ProgramExit:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(RANKS)}
        processes = [
            PROCESSES.Process(
                target=program, args=([str(TRAINER), *arguments], {**variables, **meet, "RANK": str(rank)})
            )
            for rank in range(RANKS)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return ProgramExit(next((process.exitcode for process in processes if process.exitcode), 0), "")

    return check_resumption(run, folder, 12)


@pytest.mark.parametrize("kind", ["own", "together"])
def test_right_trainers_are_exact(tmp_path: Path, kind: str) -> None:
    found = examined(tmp_path, kind, "none")
    assert (found.verdict, found.advice, found.step) == (EXACT, (), None), said(found)
    stores = sorted(path.name for path in (tmp_path / "cut" / "store").iterdir())
    assert stores == (["rank0", "rank1"] if kind == "own" else ["rank0"])
    assert not [note for note in found.notes if "of rank" in note]


def test_a_joining_replica_with_a_wrong_learning_rate(tmp_path: Path) -> None:
    found = examined(tmp_path, "own", "schedule")
    assert (found.verdict, found.process) == (NOT_EXACT, 1), said(found)
    assert found.difference is not None
    assert "optimizer" in found.difference.components
    assert "scheduler schedule (main in trainer_of_ranks.py) of rank 1 isn't recorded" in said(found)
    assert "give the recorder scheduler=schedule" in said(found)
    assert "of rank 1 differ from rank 0's from step" in " ".join(found.notes)
    assert "after the resumption" in " ".join(found.notes)


def test_a_wrong_learning_rate_beside_one_record(tmp_path: Path) -> None:
    found = examined(tmp_path, "together", "schedule")
    assert found.verdict == NOT_EXACT
    words = "process 1 disagrees with process 0 about the optimizer: optimizer/state/param_groups/0/lr is 0.01 there"
    assert words in said(found)


@pytest.mark.parametrize("kind", ["own", "together"])
def test_a_generator_of_one_rank(tmp_path: Path, kind: str) -> None:
    found = examined(tmp_path, kind, "generator")
    assert found.verdict == NOT_EXACT
    assert "generator noise (main in trainer_of_ranks.py) of rank 1 isn't recorded" in said(found)
    assert "rank 0" not in said(found)


def test_replicas_that_differ(tmp_path: Path) -> None:
    """One record keeps the replica of the first process alone; records of their own keep both."""
    found = examined(tmp_path / "together", "together", "apart")
    assert found.verdict == NOT_EXACT
    assert "rank 1 holds other parameters than rank 0" in said(found)
    assert "parameters/0.weight" in said(found)
    found = examined(tmp_path / "own", "own", "apart")
    assert found.verdict == EXACT, said(found)
    assert "parameters/0.weight" in " ".join(found.notes)
    assert "of rank 1 differ from rank 0's from step 5 on, uninterrupted too" in " ".join(found.notes)


def test_what_each_process_has_of_its_own(tmp_path: Path) -> None:
    found = examined(tmp_path / "wrong", "together", "residual")
    assert found.verdict == NOT_EXACT
    assert "give DistributedRecorder per_process=['residual'] if each process has its own" in said(found)
    found = examined(tmp_path / "right", "together", "residual of each")
    assert (found.verdict, found.advice) == (EXACT, ()), said(found)


def test_a_process_that_records_nothing(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="rank 1 records nothing: make a DistributedRecorder on all processes"):
        examined(tmp_path, "first", "none")


def doctor(folder: Path, *command: str) -> tuple[int, dict[str, Any], str]:
    options = ["doctor", "--steps", "12", "--json", "--keep", str(folder), "--"]
    done = subprocess.run([str(BIN / "pol"), *options, *command], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.parametrize("launcher", chosen_rows.first(LAUNCHERS, 1, others=pytest.mark.slow))
def test_torchrun(tmp_path: Path, launcher: list[str]) -> None:
    torchrun = [*launcher, "--standalone", f"--nproc_per_node={RANKS}", str(TRAINER)]
    if len(launcher) > 1:
        code, found, errors = doctor(tmp_path, *torchrun, "together", "none")
        assert (code, found.get("verdict")) == (0, EXACT), errors
        return
    code, found, errors = doctor(tmp_path, *torchrun, "own", "schedule")
    assert (code, found.get("verdict"), found["first_difference"]["rank"]) == (1, NOT_EXACT, 1), errors
    assert "scheduler schedule (main in trainer_of_ranks.py) of rank 1 isn't recorded" in str(found["advice"])


def test_a_program_that_fails_says_so_itself(tmp_path: Path) -> None:
    """Not the launcher, which says much about it."""
    script = tmp_path / "train.py"
    script.write_text("import os\nif os.environ['RANK'] == '1':\n    raise ValueError('no such data')\n")
    torchrun = [str(BIN / "torchrun"), "--standalone", f"--nproc_per_node={RANKS}", str(script)]
    code, found, _ = doctor(tmp_path / "runs", *torchrun)
    assert code == 3
    assert "ValueError: no such data" in str(found)
    assert "ChildFailedError" not in str(found)
    assert "OMP_NUM_THREADS" not in str(found)


def test_processes_of_a_launcher_end_with_it(tmp_path: Path) -> None:
    """torchrun starts each in a session of its own."""
    script, files = tmp_path / "train.py", [tmp_path / f"pid{rank}" for rank in range(RANKS)]
    script.write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path)!r}, 'pid' + os.environ['RANK']).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    torchrun = [str(BIN / "torchrun"), "--standalone", f"--nproc_per_node={RANKS}", str(script)]
    with subprocess.Popen([str(BIN / "pol"), "doctor", "--", *torchrun]) as process:
        while not all(file.exists() and file.read_text() for file in files):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIG_DFL)


def test_a_program_that_takes_too_long() -> None:
    line = ("doctor", "--timeout", "1", "--", sys.executable, "-c", "import time; time.sleep(600)")
    assert pol(*line) == Said(3, match="the program ran longer than 1 seconds: give fewer --steps")
