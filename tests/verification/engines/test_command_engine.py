"""`--engine command`: real processes started by templates, as Slurm, Kubernetes and ssh start them."""

import os
import shlex
import sys
import time
from pathlib import Path

import pytest
from exact_case import FALSE, ExactCase, exact_case

from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.training.storage.store import Store
from pol.verification.engines.command_engine import CommandEngine
from pol.verification.engines.engine import ExaminedSegment, LocalEngine, ReplayJob
from pol.verification.engines.job_command import JobCommand
from pol.verification.examination.verification_report import segment_document
from pol.verification.verdict.verdict import Outcome, Reason

SSH = """#!/bin/sh
# As ssh: the first argument is the host, the rest becomes one line for its shell.
[ "$1" = host ] || exit 255
shift
exec sh -c "$*"
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> ExactCase:
    # A folder whose name would do harm in a shell that reads it.
    return exact_case(tmp_path_factory.mktemp("a b; touch harm; '$(touch harm)'"))


@pytest.fixture(autouse=True)
def _pol_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def told(results: list[ExaminedSegment]) -> list[bytes]:
    found = sorted(results, key=lambda result: result.verdict.segment)
    return [canonical_json.encode(segment_document(result)) for result in found]


def here(jobs: list[ReplayJob]) -> list[bytes]:
    return told(list(LocalEngine(threads=1).run(jobs)))


def test_arguments_of_their_own_and_one_for_another_shell(
    case: ExactCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `srun {worker}`, and as `ssh host {shell}`."""
    monkeypatch.chdir(tmp_path)
    jobs = case.jobs(case.dishonest, 2, FALSE)
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    for line in ("env SLURM=1 {worker}", "./ssh host {shell}"):
        engine = CommandEngine(JobCommand.of_text(line), parallel=2, threads=1, poll=0.05)
        assert told(list(engine.run(jobs))) == here(jobs)
    assert list(engine.run([])) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ssh"]


@pytest.mark.long
def test_a_command_that_ends_before_its_job(case: ExactCase, tmp_path: Path) -> None:
    """As `kubectl create job`; results and jobs lie elsewhere than the tensors."""
    jobs = case.jobs(case.honest, 4)
    queue = Store(f"file://{tmp_path}/queue")
    line = "sh -c 'echo job {name} created; setsid \"$@\" >/dev/null 2>&1 &' sh {worker}"
    engine = CommandEngine(JobCommand.of_text(line), queue=queue, threads=1, poll=0.05)
    assert told(list(engine.run(jobs))) == here(jobs)
    names = [path.name for path in (tmp_path / "queue").rglob("*") if path.is_file()]
    assert sorted(name.partition("-")[0] for name in names if "-" in name) == ["result"]
    assert len(names) == 2


@pytest.mark.long
def test_a_command_that_fails_is_run_again(case: ExactCase, tmp_path: Path) -> None:
    jobs = case.jobs(case.honest, 4)
    script = 'echo x >> "$0"; [ $(wc -l < "$0") = 3 ] || { echo no node is free; exit 7; }; exec "$@"'
    command = JobCommand(("sh", "-c", script, str(tmp_path / "tries"), "{worker}"))
    assert told(list(CommandEngine(command, threads=1, poll=0.05).run(jobs))) == here(jobs)
    (found,) = CommandEngine(JobCommand.of_text("sh -c 'echo no node is free; exit 7' {job}"), poll=0.05).run(jobs)
    assert (found.verdict.outcome, found.verdict.reasons) == (Outcome.INCONCLUSIVE, (Reason.WORKER_LOST,))
    assert found.verdict.detail.endswith("ended 3 times: sh ended with 7: no node is free")


@pytest.mark.long
def test_a_command_that_takes_too_long_is_ended(case: ExactCase, tmp_path: Path) -> None:
    """It and all that it has started."""
    jobs = case.jobs(case.honest, 4)
    line = f"sh -c 'sleep 600 & echo $! >> {shlex.quote(str(tmp_path / 'pids'))}; wait' {{job}}"
    engine = CommandEngine(JobCommand.of_text(line), attempts=2, limit=0.5, poll=0.05)
    (found,) = engine.run(jobs)
    assert found.verdict.detail.endswith("ended 2 times: no result of sh within 0.5 s")
    assert _all_gone(tmp_path / "pids")


@pytest.mark.long
def test_nobody_wants_the_rest(case: ExactCase, tmp_path: Path) -> None:
    """An interrupted verification leaves no command behind."""
    script = 'echo x >> "$0"; [ $(wc -l < "$0") = 1 ] && exec "$@"; echo $$ > "$0.pids"; exec sleep 600'
    command = JobCommand(("sh", "-c", script, str(tmp_path / "tries"), "{worker}"))
    results = CommandEngine(command, threads=1, poll=0.05).run(case.jobs(case.honest, 4, 5))
    assert next(results).verdict.outcome is Outcome.ACCEPTED
    while not (tmp_path / "tries.pids").exists():
        time.sleep(0.05)
    results.close()
    assert _all_gone(tmp_path / "tries.pids")


def _all_gone(pids: Path) -> bool:
    return all(_is_gone(int(pid)) for pid in pids.read_text().split())


def _is_gone(pid: int) -> bool:
    for _ in range(6_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.long
def test_a_result_of_another_job_is_none(case: ExactCase) -> None:
    """The machines are trusted, a file that lies in the wrong place isn't."""
    first, second = case.jobs(case.honest, 4, 5)
    folder = case.store.url.removeprefix("file://")
    before = set(Path(folder).glob("result-*"))
    assert len(list(CommandEngine(JobCommand.of_text("env {worker}"), threads=1, poll=0.05).run([first]))) == 1
    (old,) = set(Path(folder).glob("result-*")) - before
    script = 'cp "$0" "$1/result-$2.json"'
    command = JobCommand(("sh", "-c", script, str(old), folder, "{job}"))
    (found,) = CommandEngine(command, attempts=1, poll=0.05).run([second])
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert "not of" in found.verdict.detail


def test_what_is_no_command(case: ExactCase) -> None:
    for line, match in (
        ("srun {wroker}", "unknown placeholder {wroker}: there are {worker}, {shell}"),
        ("srun pol", "names no job: end it with {worker}"),
        ("", "names no job"),
        ("ssh host '{worker}; true'", "stands for several arguments"),
        ("ssh 'host {worker}", "No closing quotation"),
    ):
        with pytest.raises(ProtocolError, match=match):
            JobCommand.of_text(line)
    with pytest.raises(ProtocolError, match="at least 1"):
        CommandEngine(JobCommand.of_text("env {worker}"), parallel=0)
    with pytest.raises(OperationalError, match="can't run no-such-program"):
        list(CommandEngine(JobCommand.of_text("no-such-program {worker}")).run(case.jobs(case.honest, 1)))
    job = ReplayJob("memory://x", "ab" * 32, *(case.jobs(case.honest, 1)[0].start,) * 2, (0, 0, 0))
    with pytest.raises(OperationalError, match="local engine"):
        list(CommandEngine(JobCommand.of_text("env {worker}")).run([job]))


def test_values_stay_arguments(case: ExactCase) -> None:
    (job,) = case.jobs(case.honest, 1)
    command = JobCommand.of_text("run --mem={memory}M --name {name} --json '{\"a\": 1}' {store} {job}")
    digest = "ab" * 32
    assert command.arguments(job, job.store, digest, 2) == [
        "run", "--mem=512M", "--name", "pol-abababababababab-2", "--json", '{"a": 1}', job.store, digest,
    ]  # fmt: skip
    shell = JobCommand.of_text("ssh host {shell}").arguments(job, "file:///q", digest, 1, 2, "cuda")[-1]
    assert shlex.split(shell) == [
        "pol", "worker", job.store, "--job", digest, "--threads", "2", "--device", "cuda", "--queue", "file:///q",
    ]  # fmt: skip
