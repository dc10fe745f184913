"""The learning proof that a solver publishes about its training (docs/spec/learning_proof.md, "Learning proof")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.tensor import state_root
from pol.errors import EvidenceError, Fault
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.training.task.task_document import LoadedTask

KIND, VERSION = "pol/learning-proof", 1
ARITHMETIC, CANONICAL = "arithmetic", "canonical"
"""What the environment of an exact training says."""
DOCUMENT_LIMIT = 1 << 28


@dataclass(frozen=True)
class TaskCheckpoint:
    """One entry of the checkpoint log: the state after ``step`` steps and the digest of the file that holds it."""

    index: int
    step: int
    state_root: bytes
    object: str


@dataclass(frozen=True)
class LearningProof:
    """The learning proof document; `environment` describes the solver's machine to people."""

    task: str
    program_hash: bytes
    interval: int
    order_root: bytes
    checkpoints: tuple[TaskCheckpoint, ...]
    log_root: bytes
    environment: Mapping[str, str]

    @property
    def is_exact(self) -> bool:
        """Whether the solver says that every step has the program's bits."""
        return self.environment.get(ARITHMETIC) == CANONICAL

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "task": self.task,
                "program_hash": self.program_hash.hex(),
                "interval": self.interval,
                "order_root": self.order_root.hex(),
                "checkpoints": [
                    {"index": c.index, "step": c.step, "state_root": c.state_root.hex(), "object": c.object}
                    for c in self.checkpoints
                ],
                "log_root": self.log_root.hex(),
                "log_size": len(self.checkpoints),
                "environment": dict(self.environment),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> LearningProof:
        """The learning proof in a document. Raises ProtocolError: not the canonical bytes of a learning proof."""
        what = "the learning proof"
        names = [*cls.__dataclass_fields__, "log_size"]
        fields = canonical_json.Fields.of_document(data, what, KIND, VERSION, names)
        checkpoints = tuple(_checkpoint(item) for item in fields.items("checkpoints"))
        if fields.integer("log_size") != len(checkpoints):
            problem = f"{what} lists {len(checkpoints)} checkpoints for a log of {fields.integer('log_size')}"
            raise EvidenceError(Fault.MISSING_ENTRY, problem)
        return cls(
            task=fields.digest("task"),
            program_hash=fields.hash("program_hash"),
            interval=fields.integer("interval", 1),
            order_root=fields.hash("order_root"),
            checkpoints=checkpoints,
            log_root=fields.hash("log_root"),
            environment=fields.texts("environment"),
        )


def build(task: LoadedTask, checkpoints: Sequence[TaskCheckpoint], environment: Mapping[str, str]) -> LearningProof:
    """The learning proof over all checkpoints of a finished training."""
    proof = begun(task, checkpoints, environment)
    require_proof_of(proof, task)
    return proof


def begun(task: LoadedTask, checkpoints: Sequence[TaskCheckpoint], environment: Mapping[str, str]) -> LearningProof:
    """As `build`, of a training that isn't finished."""
    return LearningProof(
        task=task.digest,
        program_hash=task.document.program_hash,
        interval=task.document.interval,
        order_root=task.order_root,
        checkpoints=tuple(checkpoints),
        log_root=compute_log_root(checkpoints),
        environment=dict(environment),
    )


def load(store: Store, digest: str, task: LoadedTask) -> LearningProof:
    """The learning proof with this digest, checked against its task. Checkpoints are loaded one by one.

    Raises:
        ProtocolError: another task's proof, a missing checkpoint, a wrong root.
    """
    proof = decode(store, digest)
    require_proof_of(proof, task)
    return proof


def decode(store: Store, digest: str) -> LearningProof:
    """The learning proof with this digest, of any task. Raises ProtocolError: it isn't one."""
    return LearningProof.decode(store.get(digest, limit=DOCUMENT_LIMIT))


def load_checkpoint(store: Store, task: LoadedTask, entry: TaskCheckpoint) -> list[Words]:
    """The state of one checkpoint, as words: the file's digest is checked before it is parsed, the state root after."""
    state = task_tensors.load(store, entry.object, task.names.slots, task.slot_types)
    actual = state_root(task.slot_types, state)
    if actual != entry.state_root:
        problem = f"checkpoint {entry.index} has the state root {actual.hex()}, its entry says {entry.state_root.hex()}"
        raise EvidenceError(Fault.WRONG_ROOT, problem)
    return state


def require_proof_of(proof: LearningProof, task: LoadedTask) -> None:
    """Check that ``proof`` is a complete proof of ``task``.

    Raises:
        EvidenceError: it isn't; the first thing that is wrong.
    """
    _require_entries(proof, task, task.document.segments)


def require_start_of(proof: LearningProof, task: LoadedTask) -> None:
    """As `require_proof_of`, of a training that isn't finished: checkpoints at the end may be missing.

    Raises:
        EvidenceError: it isn't one; the first thing that is wrong.
    """
    _require_entries(proof, task, min(max(len(proof.checkpoints) - 1, 0), task.document.segments))


def _require_entries(proof: LearningProof, task: LoadedTask, last: int) -> None:
    document = task.document
    _require(
        proof.task == task.digest and proof.program_hash == document.program_hash,
        Fault.WRONG_TASK,
        f"this is a learning proof of task {proof.task}, not of task {task.digest}",
    )
    _require(
        proof.interval == document.interval,
        Fault.WRONG_STEP,
        f"checkpoints every {proof.interval} steps, the task asks for every {document.interval}",
    )
    _require(
        proof.order_root == task.order_root,
        Fault.WRONG_ORDER,
        "the learning proof used samples in another order than the task's",
    )
    needed = f"the learning proof needs checkpoints 0 to {last}, one every interval, in order"
    indices = [checkpoint.index for checkpoint in proof.checkpoints]
    _require(indices == list(range(last + 1)), Fault.MISSING_ENTRY, needed)
    on_time = all(checkpoint.step == checkpoint.index * document.interval for checkpoint in proof.checkpoints)
    _require(on_time, Fault.WRONG_STEP, needed)
    _require(
        proof.checkpoints[0].state_root == document.initial_state_root,
        Fault.WRONG_START,
        "the learning proof doesn't start from the task's initial state",
    )
    _require(
        compute_log_root(proof.checkpoints) == proof.log_root,
        Fault.BROKEN_LOG,
        "the root of the checkpoint log isn't that of the listed checkpoints",
    )


def require_committed(proof: LearningProof, log_root: bytes) -> None:
    """Check that ``proof`` is over the checkpoint log whose root was committed to. Raises EvidenceError: it isn't."""
    problem = f"the learning proof has the log root {proof.log_root.hex()}, committed was {log_root.hex()}"
    _require(proof.log_root == log_root, Fault.BROKEN_LOG, problem)


def compute_log_root(checkpoints: Sequence[TaskCheckpoint]) -> bytes:
    """The root of the checkpoint log over these entries."""
    return CheckpointLog([entry.state_root for entry in checkpoints]).root()


def _require(condition: bool, fault: Fault, problem: str) -> None:
    if not condition:
        raise EvidenceError(fault, problem)


def _checkpoint(item: object) -> TaskCheckpoint:
    fields = canonical_json.Fields(item, "a checkpoint", TaskCheckpoint.__dataclass_fields__)
    return TaskCheckpoint(
        index=fields.integer("index"),
        step=fields.integer("step"),
        state_root=fields.hash("state_root"),
        object=fields.digest("object"),
    )
