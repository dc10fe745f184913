"""Every engine gives the same verdicts, byte for byte; none of them loses a segment or blames anyone for a crash."""

import contextlib
import http.server
import os
import queue
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import small_task
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.graph.work_estimate import live_bytes, replay_bytes
from pol.training.storage.store import Store
from pol.training.task import learning_proof, published_task
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.verification.engines import cores
from pol.verification.engines.cores import MOST_PLACES, OWN_BYTES, CoresEngine
from pol.verification.engines.engine import ATTEMPTS, Engine, ExaminedSegment, LocalEngine, ReplayJob
from pol.verification.engines.ray_cluster import RayEngine
from pol.verification.examination.verification_report import segment_document
from pol.verification.verdict.verdict import Outcome, Reason

pytestmark = pytest.mark.long

LIMITS = (1 << 40, 1 << 40, 1 << 40)
SKIPPED = 7 * small_task.INTERVAL + 1


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(f"file://{tmp_path_factory.mktemp('store')}")


@pytest.fixture(scope="module")
def solved(store: Store) -> tuple[LoadedTask, LearningProof]:
    """A training in which one step of segment 7 was left out."""
    _, task = small_task.published(Path(store.url.removeprefix("file://")))
    return task, learning_proof.load(store, small_task.solve(store, task, frozenset({SKIPPED})), task)


@pytest.fixture
def jobs(store: Store, solved: tuple[LoadedTask, LearningProof]) -> list[ReplayJob]:
    task, proof = solved
    return [
        ReplayJob(store.url, task.digest, proof.checkpoints[s], proof.checkpoints[s + 1], LIMITS) for s in (2, 7, 11)
    ]


def told(results: Iterator[ExaminedSegment]) -> dict[int, bytes]:
    return {r.verdict.segment: canonical_json.encode(segment_document(r)) for r in results}


def test_all_cores_give_the_bytes_of_one_process(jobs: list[ReplayJob]) -> None:
    here = list(LocalEngine().run(jobs))
    assert [r.verdict.outcome for r in here] == [Outcome.ACCEPTED, Outcome.REJECTED, Outcome.ACCEPTED]
    assert [len(r.observed["loss"]) for r in here] == [small_task.INTERVAL] * 3
    assert told(CoresEngine().run(jobs)) == told(iter(here)) == told(LocalEngine(threads=1).run(jobs))
    assert list(CoresEngine().run([])) == []


def test_a_device_gives_the_bytes_of_the_processor(jobs: list[ReplayJob]) -> None:
    """Second looks, directions of drift and observed losses among them."""
    jobs = [replace(job, sketched=b"seed", looks=2, thresholds=(1, 1, 1)) for job in jobs]
    here, there = (list(LocalEngine(device=device).run(jobs)) for device in ("cpu", "host"))
    assert told(iter(there)) == told(iter(here))
    assert [found.observed for found in there] == [found.observed for found in here]
    assert all(found.observed["loss"] for found in there)


def test_devices_that_are_not_there(jobs: list[ReplayJob]) -> None:
    """Said at once: no segment is inconclusive for the lack of a device."""
    with pytest.raises(ProtocolError, match="there is no device 'gpu'"):
        LocalEngine(device="gpu")
    with pytest.raises(ProtocolError, match="Ray chooses the GPU"):
        RayEngine(device="cuda:1")


def test_devices_of_a_ray_cluster(jobs: list[ReplayJob]) -> None:
    assert told(RayEngine(device="host").run(jobs[:1])) == told(LocalEngine().run(jobs[:1]))
    with pytest.raises(OperationalError, match="no machine of the Ray cluster has a GPU"):
        list(RayEngine(device="cuda").run(jobs))


class Holding(http.server.ThreadingHTTPServer):
    """A store over HTTP that lets the readers of one object wait, the first so many times, until they are killed."""

    daemon_threads = True

    def __init__(self, folder: Path, digest: str, times: int):
        super().__init__(("127.0.0.1", 0), lambda *args: _Held(*args, directory=str(folder)))  # type: ignore[arg-type]
        self.digest, self.times = digest, times
        self.ports: queue.Queue[int] = queue.Queue()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def reader(self) -> int:
        return _process_at(self.ports.get(timeout=120), self.server_address[1])

    def kill_reader(self) -> None:
        os.kill(self.reader(), signal.SIGKILL)


class _Held(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Holding)
        if self.path.endswith(server.digest) and server.times:
            server.times -= 1
            server.ports.put(self.client_address[1])
            self.rfile.read(1)  # ends when the reader does
            return
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the base class
        pass


def _process_at(port: int, server: int) -> int:
    """The process whose connection on loopback leads from one port to the other: many may begin at the same port."""
    ends = [f"0100007F:{number:04X}" for number in (port, server)]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = (row[9] for row in rows if row[1:3] == ends)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if any(os.readlink(fd) == f"socket:[{inode}]" for fd in (process / "fd").iterdir()):
                return int(process.name)
    raise AssertionError(f"no process has port {port}")


@contextlib.contextmanager
def holding(job: ReplayJob, times: int = 1) -> Iterator[Holding]:
    with Holding(Path(job.store.removeprefix("file://")), job.end.object, times) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run_beside(engine: Engine, jobs: list[ReplayJob]) -> tuple[threading.Thread, list[ExaminedSegment]]:
    results: list[ExaminedSegment] = []
    thread = threading.Thread(target=lambda: results.extend(engine.run(jobs)), daemon=True)
    thread.start()
    return thread, results


def test_a_process_that_is_killed_is_begun_again(jobs: list[ReplayJob]) -> None:
    expected = told(LocalEngine().run(jobs))
    with holding(jobs[1]) as server:
        thread, results = run_beside(CoresEngine(cores=2), [replace(job, store=server.url) for job in jobs])
        server.kill_reader()
        thread.join(300)
    assert told(iter(results)) == expected


@pytest.mark.slow
def test_a_process_that_always_ends_rejects_nobody(jobs: list[ReplayJob]) -> None:
    with holding(jobs[0], ATTEMPTS) as server:
        thread, results = run_beside(CoresEngine(), [replace(jobs[0], store=server.url)])
        for _ in range(ATTEMPTS):
            server.kill_reader()
        thread.join(300)
    (found,) = results
    assert (found.verdict.outcome, found.verdict.reasons) == (Outcome.INCONCLUSIVE, (Reason.WORKER_LOST,))
    assert found.verdict.segment == jobs[0].start.index


def test_a_task_that_can_t_be_read_rejects_nobody(jobs: list[ReplayJob]) -> None:
    job = ReplayJob(jobs[0].store, "ab" * 32, jobs[0].start, jobs[0].end, LIMITS)
    (found,) = LocalEngine().run([job])
    assert found.verdict.reasons == (Reason.NOT_AVAILABLE,)


@pytest.mark.parametrize("engine", [CoresEngine, RayEngine])
def test_a_store_in_this_process_is_refused_by_others(
    engine: type[CoresEngine | RayEngine], jobs: list[ReplayJob]
) -> None:
    with pytest.raises(OperationalError, match="local engine"):
        list(engine().run([ReplayJob("memory://here", jobs[0].task, jobs[0].start, jobs[0].end, LIMITS)]))


def test_a_ray_cluster_gives_the_same_bytes_even_if_a_worker_is_killed(
    jobs: list[ReplayJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})  # two workers, whatever the machine has
    expected = told(LocalEngine().run(jobs))
    with holding(jobs[1]) as server:
        thread, results = run_beside(RayEngine(), [replace(job, store=server.url) for job in jobs])
        reader = server.reader()
        import ray  # the engine has to be first: Ray decides what it listens on when it is imported

        assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}
        assert ray.cluster_resources()["CPU"] == 2
        os.kill(reader, signal.SIGKILL)
        thread.join(300)
    assert told(iter(results)) == expected


@pytest.mark.parametrize(("free", "places"), [(0, 1), (5, 1), (29, 2), (30, 3), (None, MOST_PLACES)])
def test_no_more_replays_begin_than_find_room(free: int | None, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large models: as many processes as cores would take all memory, and the system would end one of them."""
    monkeypatch.setattr(cores, "available_memory", lambda: None if free is None else free * OWN_BYTES // 10)
    assert cores._places(0) == places
    assert free is None or cores._places(9 * OWN_BYTES) <= max(1, places // 10)


def test_a_replay_takes_its_states_and_a_step(jobs: list[ReplayJob]) -> None:
    task = published_task.load(Store(jobs[0].store), jobs[0].task)
    state = 4 * sum(type_.numel for type_ in task.slot_types)
    least = 3 * state + live_bytes(task.program)
    assert replay_bytes(task.program, 3) == least + 4 * sum(type_.numel for type_ in task.program.constants)
    assert live_bytes(task.program) > state
