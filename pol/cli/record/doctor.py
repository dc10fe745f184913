"""``pol doctor -- python train.py``: checks that a killed and resumed trainer repeats the uninterrupted run."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pol.cli.examples import defaulted, example
from pol.cli.file_output import DIFFERS, FINE, UNSEEN, console, json_option, unsupported_is_unseen
from pol.errors import OperationalError

if TYPE_CHECKING:
    from pol.verification.runs.resume_check import ProgramExit, ResumeReport

PATHS_SHOWN = 8
OUTPUT_SHOWN, OUTPUT_READ = 2000, 1 << 16
ADVICE_OF_LAUNCHER = re.compile(r"^W\d{4} .*torch/distributed/run.*\n", re.MULTILINE)
END_OF_LAUNCHER = re.compile(r"^[EWI]\d{4} .*torch/distributed/elastic/", re.MULTILINE)
"""Where torchrun begins to say that a process has failed."""
PATIENCE = 10
"""Seconds for a launcher to end its processes."""


@click.command(
    context_settings={"ignore_unknown_options": True}, epilog=example("pol doctor --steps 20 -- python train.py")
)
@defaulted("--steps", type=click.IntRange(6), default=20, help="How far runs go at least.")
@click.option("--one-epoch", is_flag=True, help="The training has no second epoch: none has to be seen.")
@defaulted("--timeout", type=click.IntRange(1), default=3600, metavar="S", help="Of each run.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Keep the runs here.")
@click.option("--exact", is_flag=True, help="Run it with other instructions and threads as well: are its bits defined?")
@json_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@unsupported_is_unseen
def doctor(
    command: tuple[str, ...], steps: int, one_epoch: bool, timeout: int, keep: Path | None, exact: bool, as_json: bool
) -> int:
    """Run COMMAND (after --), kill and resume it three times, and compare: is it as if nothing had happened?

    It is cut inside of the first epoch, right behind its end, and inside of the second one; the runs go to up to ten
    times --steps to reach them. If they don't, the verdict says what wasn't seen, and the exit code is 3.

    The program has to use pol.training.Recorder or one of the integrations. It records every step into a folder of
    this command, whatever the program sets; other files that it writes stay.

    COMMAND may be torchrun on this machine: every process then has a DistributedRecorder or a Recorder of its own, and
    findings name the rank.
    """
    from pol.verification.runs.resume_check import EXACT, SEEN, check_resumption

    terminal = console()

    def run(variables: Mapping[str, str]) -> ProgramExit:
        return _run(command, variables, timeout)

    with _folder(keep) as folder:
        found = check_resumption(
            run,
            folder,
            steps,
            lambda line: None if as_json else terminal.print(line, soft_wrap=True),
            _other_threads() if exact else None,
            one_epoch,
        )
    if as_json:
        print(json.dumps(_document(found), indent=2))
    else:
        for line in _lines(found, keep):
            terminal.print(line, soft_wrap=True)
    return {EXACT: FINE, SEEN: UNSEEN}.get(found.verdict, DIFFERS)


def _other_threads() -> int:
    """Another number of threads than a program takes by itself."""
    return 1 if len(os.sched_getaffinity(0)) > 1 else 2


def _run(command: Sequence[str], variables: Mapping[str, str], timeout: int) -> ProgramExit:
    from pol.verification.runs.resume_check import ProgramExit

    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise OperationalError(f"can't run {command[0]}: {error}") from error
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise OperationalError(f"the program ran longer than {timeout} seconds: give fewer --steps") from error
        finally:
            if process.poll() is None:
                process.terminate()  # a launcher's processes are in sessions of their own: it ends them
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
            # Workers of a data loader may outlive a killed trainer; they must not touch the next run.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(max(0, output.tell() - OUTPUT_READ))
        return ProgramExit(code, _said_by_program(output.read().decode(errors="replace")))


def _said_by_program(output: str) -> str:
    """The end of what a program has written, without the words of a launcher about its failure."""
    said = END_OF_LAUNCHER.split(ADVICE_OF_LAUNCHER.sub("", output), maxsplit=1)[0]
    return said.strip()[-OUTPUT_SHOWN:] or output.strip()[-OUTPUT_SHOWN:]


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="pol-doctor-") as folder:
            yield Path(folder)
        return
    from pol.verification.runs.resume_check import FOLDERS

    for name in FOLDERS:
        shutil.rmtree(keep / name, ignore_errors=True)  # of an earlier run
    yield keep


def _lines(found: ResumeReport, keep: Path | None) -> Iterator[str]:
    resumed = f"killed and resumed {len(found.cuts)} times, it"
    if len(found.cuts) == 1:
        resumed = f"resumed from step {found.cuts[0].resumed_from}, it"
    begin = "" if found.step is None else f" from step {found.step} on"
    yield {
        "exact": f"EXACT: {resumed} went on as the uninterrupted run, in every step and every component, to step "
        f"{found.steps}.",
        "exact as far as seen": f"EXACT AS FAR AS SEEN: {resumed} went on as the uninterrupted run, in every step and "
        f"every component, to step {found.steps}, but not all was seen.",
        "two launches differ in root": f"TWO LAUNCHES DIFFER IN ROOT: {resumed} went on as the uninterrupted run to "
        f"step {found.steps}, but launched again it has other complete roots: they can't be reproduced.",
        "not deterministic": f"NOT DETERMINISTIC: two uninterrupted runs differ{begin}.",
        "not exact elsewhere": f"NOT EXACT ELSEWHERE: with other instructions and another number of threads, the run "
        f"differs{begin}.",
        "resume not exact": f"RESUME NOT EXACT: after the last cut the run differs{begin or ' outside of the record'}.",
    }[found.verdict]
    for cut in found.cuts:
        yield f"cut {cut.where}: killed after step {cut.killed_at}, resumed from step {cut.resumed_from}"
    for place in found.not_seen:
        yield f"not seen: {place}"
    if (difference := found.difference) is not None:
        where = "" if found.process is None else f" in the record of rank {found.process}"
        yield f"first differences{where}: {', '.join(difference.components)}"
        for change in difference.changes[:PATHS_SHOWN]:
            yield f"  {change.path}: {change.before or '-'} / {change.after or '-'}"
        tensors = [entry.name for entry in difference.entries if "/" in entry.name]
        for name in tensors[:PATHS_SHOWN]:
            yield f"  {name}"
        left = max(0, len(difference.changes) - PATHS_SHOWN) + max(0, len(tensors) - PATHS_SHOWN)
        if left:
            yield f"  and {left} more"
    for item in found.advice:
        yield f"cause: {item.cause}"
        yield f"  -> {item.remedy}"
    for note in found.notes:
        yield f"note: {note}"
    if found.difference is not None and keep is not None:
        other = {"not deterministic": "again", "not exact elsewhere": "other"}.get(found.verdict, "cut")
        store = "store" if found.process is None else f"store/rank{found.process}"
        yield f"compare the runs: pol diff {keep}/whole/{store}@{found.step} {keep}/{other}/{store}@{found.step}"


def _document(found: ResumeReport) -> dict[str, Any]:
    difference = found.difference
    return {
        "verdict": found.verdict,
        "steps": found.steps,
        "cuts": [dataclasses.asdict(cut) for cut in found.cuts],
        "not_seen": list(found.not_seen),
        "first_difference": None
        if difference is None
        else {
            "step": found.step,
            "rank": found.process,
            "components": difference.components,
            "tensors": [entry.name for entry in difference.entries if "/" in entry.name],
            "values": [{"path": c.path, "a": c.before, "b": c.after} for c in difference.changes],
        },
        "advice": [{"cause": item.cause, "remedy": item.remedy} for item in found.advice],
        "notes": list(found.notes),
    }
