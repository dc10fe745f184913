"""Workers in processes of their own, some of which lie: every verdict is that of one's own replay, liars are named."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from exact_case import FALSE, ExactCase, exact_case

from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.training.record.dsse_envelope import Envelope
from pol.training.record.signed_heads import public_bytes
from pol.verification.engines.engine import ExaminedSegment, LocalEngine, ReplayJob
from pol.verification.engines.redundancy import Redundancy
from pol.verification.engines.replay_job_document import PostedJob
from pol.verification.engines.replay_queue import Lease, ReplayQueue, WorkerFault
from pol.verification.engines.replay_result_document import are_same_replay, decode_result, encode_result
from pol.verification.engines.replay_worker import ReplayWorker
from pol.verification.engines.signed_result import opened_envelope, sign_result
from pol.verification.engines.store_engine import StoreEngine
from pol.verification.examination.verification_report import segment_document
from pol.verification.verdict.verdict import Outcome

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
NEVER, ALWAYS = Fraction(0), Fraction(1)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> ExactCase:
    return exact_case(tmp_path_factory.mktemp("store"))


class Workers:
    """Processes of workers of one queue, which is the store of the case."""

    def __init__(self, case: ExactCase, folder: Path):
        self._case, self._folder = case, folder
        self.keys: list[bytes] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *kinds: str) -> list[bytes]:
        """The keys of new workers."""
        for kind in kinds:
            key = Ed25519PrivateKey.generate()
            file = self._folder / f"{len(self.keys)}.pem"
            file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            self.keys.append(public_bytes(key))
            command = [sys.executable, HERE / "hostile_workers.py", kind, self._case.store.url, file]
            self.processes.append(subprocess.Popen(command))
        queue = ReplayQueue(self._case.store)
        while any(queue.last_beat(key) is None for key in self.keys):
            time.sleep(0.05)
        return self.keys


@pytest.fixture
def workers(case: ExactCase, tmp_path: Path) -> Iterator[Workers]:
    started = Workers(case, tmp_path)
    yield started
    for process in started.processes:
        process.kill()
        process.wait()


def engine(
    case: ExactCase, keys: list[bytes], copies: int = 2, audited: Fraction = NEVER, lease: int = 60, wait: float = 30
) -> StoreEngine:
    return StoreEngine(case.store, keys, Redundancy(copies, audited), LocalEngine(threads=1), lease, wait, poll=0.05)


def told(results: list[ExaminedSegment]) -> list[bytes]:
    return [canonical_json.encode(segment_document(result)) for result in results]


def here(jobs: list[ReplayJob]) -> list[bytes]:
    return told(list(LocalEngine(threads=1).run(jobs)))


def faults(used: StoreEngine) -> list[WorkerFault | None]:
    return [worker.fault for worker in used.workers]


def test_honest_workers_give_the_bytes_of_one_process(case: ExactCase, workers: Workers) -> None:
    jobs = case.jobs(case.honest, 2, 7, 11)
    used = engine(case, workers.start("honest", "honest"))
    found = list(used.run(jobs))
    assert told(found) == here(jobs)
    assert [worker.answers for worker in used.workers] == [3, 3]
    assert faults(used) == [None, None]
    # Leases are gone, and a solver who left a step out is rejected, by a replay of one's own.
    assert not list(Path(case.store.url.removeprefix("file://")).glob("lease-*"))
    dishonest = case.jobs(case.dishonest, FALSE)
    events: list[str] = []
    again = StoreEngine(
        case.store,
        workers.keys,
        Redundancy(2, NEVER),
        LocalEngine(threads=1),
        poll=0.05,
        tell=lambda sentence, facts: events.append(facts["event"]),
    )
    found = list(again.run(dishonest))
    assert told(found) == here(dishonest)
    assert found[0].verdict.outcome is Outcome.REJECTED
    assert events.count("answered") == 2
    assert events.count("replayed") == 1


def test_one_liar_of_two_is_named(case: ExactCase, workers: Workers) -> None:
    """The solver's accomplice accepts the false segment; equality fails, and one's own replay decides."""
    jobs = case.jobs(case.dishonest, 2, FALSE)
    used = engine(case, workers.start("honest", "lazy"))
    assert told(list(used.run(jobs))) == here(jobs)
    assert faults(used) == [None, WorkerFault.LIED]
    assert "isn't that of a replay" in used.workers[1].detail
    # The evidence needs no trust in the verifier: what the key has signed, and the job to replay.
    envelope = Envelope.decode(case.store.get(used.workers[1].evidence))
    envelope.verify([Ed25519PublicKey.from_public_bytes(used.workers[1].key)])
    signed = canonical_json.decode(envelope.payload, "the lie")
    posted = ReplayQueue(case.store).job(signed["job"], case.store.url)
    lie = decode_result(envelope.payload, signed["job"], posted.job)
    assert not are_same_replay(lie, next(iter(LocalEngine(threads=1).run([posted.job]))))


def test_two_colluding_liars_pass_until_a_replay_is_drawn(case: ExactCase, workers: Workers) -> None:
    jobs = case.jobs(case.dishonest, FALSE)
    keys = workers.start("lazy", "lazy")
    passed = list(engine(case, keys).run(jobs))
    assert passed[0].verdict.outcome is Outcome.ACCEPTED, "no replay was drawn: this is what redundancy alone misses"
    used = engine(case, keys, audited=ALWAYS)
    assert told(list(used.run(jobs))) == here(jobs)
    assert faults(used) == [WorkerFault.LIED, WorkerFault.LIED]


def test_a_liar_s_earlier_answers_count_no_more(case: ExactCase, workers: Workers) -> None:
    """Two lie about everything; the first drawn job finds them, and no other job stays accepted on their word."""
    jobs = case.jobs(case.dishonest, FALSE, 8, 9)
    keys = workers.start("lazy", "lazy", "honest")
    drawn = iter([False, False, True, *[False] * 50])

    class Draws(Redundancy):
        def is_audited(self, entropy: bytes) -> bool:
            return next(drawn)

    used = StoreEngine(case.store, keys, Draws(2, NEVER), LocalEngine(threads=1), 60, 30, poll=0.05)
    assert told(list(used.run(jobs))) == here(jobs)
    assert WorkerFault.LIED in faults(used)
    assert used.workers[2].fault is None


@pytest.mark.parametrize(
    ("kind", "fault", "detail"),
    [
        ("accuser", WorkerFault.LIED, "isn't that of a replay"),
        ("forger", WorkerFault.REFUSED, "signed by 0 of the 1 keys"),
        ("repeater", WorkerFault.REFUSED, "other checkpoints"),
        ("silent", WorkerFault.SILENT, "within 1 s"),
        ("dying", None, ""),
        ("blind", None, ""),
    ],
)
def test_what_a_worker_may_do(
    case: ExactCase, workers: Workers, kind: str, fault: WorkerFault | None, detail: str
) -> None:
    """Its jobs are done by others, or here; the outcome is never its own."""
    jobs = case.jobs(case.honest, 4)
    used = engine(case, workers.start(kind), copies=1, lease=1 if kind == "silent" else 60)
    assert told(list(used.run(jobs))) == here(jobs)
    assert (used.workers[0].fault, detail in used.workers[0].detail) == (fault, True)
    assert not list(Path(case.store.url.removeprefix("file://")).glob("lease-*"))


def test_an_old_result_is_refused(case: ExactCase) -> None:
    """A signed and sealed result of an earlier verification of the same segment, put in the place of the new one."""
    (job,) = case.jobs(case.honest, 4)
    first, second = PostedJob(job, b"1" * 32), PostedJob(job, b"2" * 32)
    assert first.digest != second.digest
    key, verifier = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
    recipient = verifier.public_key().public_bytes_raw()
    (result,) = LocalEngine(threads=1).run([job])
    old = sign_result(encode_result(first.digest, result), key, recipient)
    payload = opened_envelope(old, public_bytes(key), verifier).payload
    assert decode_result(payload, first.digest, job).verdict == result.verdict
    with pytest.raises(ProtocolError, match=f"that of job {first.digest}, not of {second.digest}"):
        decode_result(payload, second.digest, job)
    with pytest.raises(OperationalError, match="sealed"):
        opened_envelope(old, public_bytes(key), X25519PrivateKey.generate())


def test_a_worker_that_is_killed_gives_its_job_to_another(case: ExactCase, workers: Workers) -> None:
    jobs = case.jobs(case.honest, 2, 3, 4)
    used = engine(case, workers.start("dying", "honest"), copies=1)
    assert told(list(used.run(jobs))) == here(jobs)
    assert faults(used) == [None, None]
    assert used.workers[1].answers >= 2


def test_a_replay_here_makes_nobody_look_gone(case: ExactCase, workers: Workers) -> None:
    """It takes longer than the signs of life of workers that are there may be old."""

    class Slow(LocalEngine):
        def run(self, jobs: Sequence[ReplayJob]) -> Iterator[ExaminedSegment]:
            time.sleep(5)
            return super().run(jobs)

    events: list[str] = []
    used = StoreEngine(
        case.store,
        workers.start("honest", "honest"),
        Redundancy(2, ALWAYS),
        Slow(threads=1),
        poll=0.05,
        tell=lambda sentence, facts: events.append(facts["event"]),
    )
    jobs = case.jobs(case.honest, 2, 3)
    assert told(list(used.run(jobs))) == here(jobs)
    assert sorted(events) == ["answered"] * 4 + ["present"] * 2 + ["replayed"] * 2
    assert faults(used) == [None, None]


def test_no_worker_is_there(case: ExactCase) -> None:
    key = public_bytes(Ed25519PrivateKey.generate())
    with pytest.raises(OperationalError, match="no admitted worker is there: start `pol worker STORE"):
        list(engine(case, [key], copies=1, wait=0.2).run(case.jobs(case.honest, 1)))
    with pytest.raises(ProtocolError, match="by 2 keys, and 1 are admitted"):
        engine(case, [key])
    with pytest.raises(ProtocolError, match="none stands there twice"):
        engine(case, [key, key])


def test_the_lease_of_another_verifier_is_left_alone(case: ExactCase, workers: Workers) -> None:
    """A lease is created only if there is none; one of a verifier that is gone is worked off first."""
    other, mine = case.jobs(case.honest, 5, 6)
    queue, key = ReplayQueue(case.store), workers.start("honest")[0]
    stale = Lease(queue.post(PostedJob(other, b"o" * 32)), 60)
    assert queue.grant(key, stale) or queue.answered(stale.job, key)
    queue.end_lease(key, Lease("ab" * 32, 60))
    assert queue.has_lease(key, stale) or queue.answered(stale.job, key), "only one's own lease is ended"
    used = engine(case, [key], copies=1)
    assert told(list(used.run([mine]))) == here([mine])
    assert used.workers[0].answers == 1
    assert queue.answered(stale.job, key) is not None


def test_a_worker_goes_on_after_what_is_no_job(case: ExactCase) -> None:
    """Whoever can write in the queue can put anything there: a worker says so, and waits for the next lease."""
    queue, key = ReplayQueue(case.store), Ed25519PrivateKey.generate()
    own, verifier = public_bytes(key), X25519PrivateKey.generate()
    (job,) = case.jobs(case.honest, 3)
    posted = PostedJob(job, b"n" * 32, verifier.public_key().public_bytes_raw())
    later = replace(job, start=replace(job.start, index=1 << 52), end=replace(job.end, index=(1 << 52) + 1))
    file = f"lease-{own.hex()}.json"

    def lease(digest: str) -> None:
        assert queue.grant(own, Lease(digest, 60))

    turns = iter(
        [
            lambda: case.store.replace(file, b"{}"),
            lambda: case.store.replace(file, b" " * 5000),
            lambda: lease(case.task.digest),
            lambda: lease("ab" * 32),
            lambda: lease(queue.post(PostedJob(later, b"n" * 32))),
            lambda: lease(queue.post(posted)),
        ]
    )
    told: list[dict[str, Any]] = []
    worker = ReplayWorker(queue, case.store.url, key, 1, every=60, tell=lambda sentence, facts: told.append(facts))
    worker.serve(1, sleep=lambda seconds: next(turns)())
    assert [facts["event"] for facts in told] == ["failed", "failed", "refused", "failed", "refused", "answered"]
    assert not case.store.holds(file)
    data = queue.answered(posted.digest, own)
    assert data is not None
    found = decode_result(opened_envelope(data, own, verifier).payload, posted.digest, job)
    assert found.verdict.outcome is Outcome.ACCEPTED
    # Nobody else can read it, and under another name it is worth nothing.
    with pytest.raises(OperationalError, match="sealed"):
        opened_envelope(data, own, X25519PrivateKey.generate())
    with pytest.raises(ProtocolError, match="signed by 0 of the 1 keys"):
        opened_envelope(data, public_bytes(Ed25519PrivateKey.generate()), verifier)


class InterruptedQueue(ReplayQueue):
    """Interrupts the process once, before or after the call of one method."""

    def __init__(self, case: ExactCase, method: str, before: bool):
        super().__init__(case.store)
        call: Callable[..., None] = getattr(self, method)

        def interrupted(*arguments: Any) -> None:
            setattr(self, method, call)
            if not before:
                call(*arguments)
            raise KeyboardInterrupt

        setattr(self, method, interrupted)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("method", ["lease", "job", "answer", "has_lease", "end_lease"])
def test_an_interrupted_worker_holds_no_lease(case: ExactCase, method: str, before: bool) -> None:
    queue, key = InterruptedQueue(case, method, before), Ed25519PrivateKey.generate()
    (job,) = case.jobs(case.honest, 1)
    posted = PostedJob(job, b"n" * 32, X25519PrivateKey.generate().public_key().public_bytes_raw())
    assert queue.grant(public_bytes(key), Lease(queue.post(posted), 60))
    with pytest.raises(KeyboardInterrupt):
        ReplayWorker(queue, case.store.url, key, 1, every=60).serve(1)
    assert not case.store.holds(f"lease-{public_bytes(key).hex()}.json")


def test_a_key_that_is_never_free_keeps_nobody_waiting(case: ExactCase, workers: Workers) -> None:
    """It says that it is there, and holds a lease of somebody else for ever."""
    queue, key = ReplayQueue(case.store), workers.start("silent")[0]
    (other,) = case.jobs(case.honest, 5)
    stale = Lease(queue.post(PostedJob(other, b"o" * 32)), 60)
    assert queue.grant(key, stale)
    jobs = case.jobs(case.honest, 6)
    used = engine(case, [key], copies=1, wait=3)
    assert told(list(used.run(jobs))) == here(jobs)
    assert (used.workers[0].answers, used.workers[0].fault) == (0, None)
    assert queue.has_lease(key, stale)
    queue.end_lease(key, stale)
