"""`pol worker` and `pol verify --engine store` or `command`: what a user of both types and reads."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import small_task
from cli_runner import Said, pol
from pol.training.record.signed_heads import public_bytes
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.verification.engines.engine import ReplayJob
from pol.verification.engines.replay_job_document import PostedJob
from pol.verification.engines.replay_queue import Lease, ReplayQueue

POL = Path(sys.executable).parent / "pol"
SEED = "5e" * 32


class Case:
    """A store with an exact training, and a queue beside it."""

    def __init__(self, folder: Path):
        self.folder, self.queue = folder / "store", folder / "queue"
        self.folder.mkdir()
        self.queue.mkdir()
        self.store, self.task = small_task.published(self.folder)
        self.proof = small_task.solve_with(self.store, self.task, small_task.Canonical(self.task))

    def verify(self, *arguments: object) -> Said:
        exact = ("--exact", "--draws", "2", "--seed", SEED)
        return pol("verify", self.folder, self.proof, *exact, *map(str, arguments))


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("worker"))


def key_file(file: Path) -> Path:
    """A new key, as `openssl genpkey -algorithm ed25519` writes it."""
    key = Ed25519PrivateKey.generate()
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


class Process:
    """`pol worker` with a key of its own, ready."""

    def __init__(self, case: Case, file: Path, store: str | None = None):
        command = [POL, "worker", store or case.folder, "--queue", case.queue, "--key", key_file(file), "--json"]
        pace = ["--threads", "1", "--beat", "1", "--poll", "0.05"]
        self.process = subprocess.Popen([*map(str, command), *pace], stdout=subprocess.PIPE, text=True)
        self.ready = self.event()
        self.key: str = self.ready["worker"]

    def event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def two(case: Case, tmp_path: Path) -> Iterator[list[Process]]:
    started = [Process(case, tmp_path / f"{number}.pem") for number in range(2)]
    yield started
    for each in started:
        each.end()


@pytest.mark.long
def test_two_workers_verify_a_training(case: Case, two: list[Process], tmp_path: Path) -> None:
    assert [each.ready["event"] for each in two] == ["ready", "ready"]
    (tmp_path / "keys.txt").write_text("\n".join(each.key for each in two))
    admitted = ("--engine", "store", "--queue", case.queue, "--admit", tmp_path / "keys.txt", "--audit", "0")
    said = case.verify(*admitted, "--json")
    assert said.code == 0
    document = json.loads(said.out)
    assert document["segments"] == json.loads(case.verify("--json").out)["segments"]
    assert [(each["key"], each["answers"], each["fault"]) for each in document["workers"]] == [
        (each.key, 2, None) for each in two
    ]
    events = [each.event() for each in two for _ in range(2)]
    assert {(event["event"], event["outcome"]) for event in events} == {("answered", "accepted")}
    said = case.verify(*admitted)
    assert said == Said(0, match=f"worker {two[0].key}: 2 answers")
    assert f"worker {two[0].key[:16]} is there" in said.out
    # An interrupted worker ends with a code of its own.
    two[0].process.send_signal(signal.SIGTERM)
    assert two[0].process.wait() == 130


@pytest.mark.long
def test_a_worker_that_is_interrupted_gives_its_job_back(case: Case, tmp_path: Path) -> None:
    """Also in the middle of a replay, whose store doesn't answer."""
    queue = ReplayQueue(Store(f"file://{case.queue}"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        worker = Process(case, tmp_path / "key.pem", store=f"http://127.0.0.1:{silent.getsockname()[1]}")
        try:
            start, end = learning_proof.load(case.store, case.proof, case.task).checkpoints[:2]
            job = PostedJob(ReplayJob(case.store.url, case.task.digest, start, end, (0, 0, 0)), b"n" * 32)
            lease = Lease(queue.post(job), 600)
            assert queue.grant(bytes.fromhex(worker.key), lease)
            with silent.accept()[0]:
                assert queue.has_lease(bytes.fromhex(worker.key), lease)
                worker.process.send_signal(signal.SIGTERM)
                assert worker.process.wait() == 130
            assert not queue.has_lease(bytes.fromhex(worker.key), lease)
            assert not queue.has_answer(lease.job, bytes.fromhex(worker.key))
        finally:
            worker.end()


@pytest.mark.long
def test_one_job_of_a_cluster(case: Case, tmp_path: Path) -> None:
    """`--engine command` with a worker that leaves its result in the queue."""
    line = f"{POL} worker {{store}} --queue {{queue}} --job {{job}} --threads {{threads}}"
    options = ("--engine", "command", "--queue", case.queue, "--threads", "1", "--parallel", "2")
    said = case.verify(*options, "--command", line, "--json")
    assert said.code == 0
    assert json.loads(said.out)["segments"] == json.loads(case.verify("--json").out)["segments"]
    assert json.loads(said.out)["workers"] == []
    queue = ReplayQueue(Store(f"file://{case.queue}"))
    start, end = learning_proof.load(case.store, case.proof, case.task).checkpoints[:2]
    large = ReplayJob(case.store.url, case.task.digest, start, end, (0, 0, 0), memory=1 << 60)
    digest = queue.post(PostedJob(large, b"n" * 32))
    said = pol("worker", case.folder, "--queue", case.queue, "--job", digest)
    assert said == Said(0, match="inconclusive: the replay takes about 1152921504606846976 bytes of memory")
    assert queue.has_answer(digest, b"")


def test_usage(case: Case, tmp_path: Path) -> None:
    key = public_bytes(Ed25519PrivateKey.generate()).hex()
    for arguments, match in (
        (("--engine", "store"), "needs the keys of its workers: --admit KEY"),
        (("--engine", "store", "--admit", key), "replayed by 2 keys, and 1 are admitted"),
        (("--engine", "store", "--admit", "nobody"), "neither a key"),
        (("--engine", "store", "--admit", key, "--audit", "2"), "isn't from 0 and up to 1"),
        (("--engine", "command"), "needs --command LINE"),
        (("--engine", "command", "--command", "srun {wroker}"), "unknown placeholder"),
        (("--parallel", "2"), "--parallel has no effect here: it is for --engine command"),
        (("--engine", "command", "--admit", key), "--admit has no effect here: it is for --engine store"),
    ):
        assert case.verify(*arguments) == Said(2, match=match)
    (tmp_path / "keys.txt").write_text("something else")
    assert case.verify("--engine", "store", "--admit", tmp_path / "keys.txt") == Said(2, match="isn't a key")
    nobody = ("--engine", "store", "--queue", case.queue, "--admit", key, "--redundancy", "1", "--wait", "0.1")
    assert case.verify(*nobody) == Said(3, match="no admitted worker is there")
    assert pol("worker", case.folder) == Said(2, match="--key FILE to work for verifiers, or --job DIGEST")
    assert pol("worker", case.folder, "--job", "ab") == Said(1, match="isn't a digest")
    assert pol("worker", case.folder, "--job", "ab" * 32) == Said(3, match="can't read object")
    assert pol("worker", case.folder, "--job", case.proof) == Said(1, match="the replay job isn't a pol/replay-job")
    assert pol("worker", tmp_path / "nowhere", "--job", "ab" * 32) == Said(3, match="no store")
