"""The checkpoints of a task's training, one by one, up to the learning proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pol.arithmetic.primitives import Words
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError
from pol.training.storage.store import Store
from pol.training.task import learning_proof, task_tensors
from pol.training.task.learning_proof import LearningProof, TaskCheckpoint
from pol.training.task.task_document import LoadedTask


class TaskRecorder:
    """Publishes each checkpoint, appends its root to the checkpoint log and, at the end, builds the learning proof."""

    def __init__(self, store: Store, task: LoadedTask):
        self.task = task
        self.log = CheckpointLog()
        self.checkpoints: list[TaskCheckpoint] = []
        self._store = store
        self._known_root: bytes | None = None

    def expect(self, root: bytes) -> None:
        """The root of the state that is recorded next, from where it was trained: nobody hashes it again."""
        self._known_root = root

    def __call__(self, index: int, state: list[Words]) -> None:
        """Record checkpoint ``index``. Raises ProtocolError: another checkpoint is next; they come in order, from 0."""
        if index != len(self.checkpoints):
            raise ProtocolError(f"checkpoint {index} recorded after {len(self.checkpoints)} others; they come in order")
        task = self.task
        digest = self._store.put_pieces(task_tensors.pieces(task.names.slots, task.slot_types, state))
        root, self._known_root = self._known_root or state_root(task.slot_types, state), None
        self.log.append(root)
        self.checkpoints.append(TaskCheckpoint(index, index * task.document.interval, root, digest))

    def take_over(self, checkpoints: Iterable[TaskCheckpoint]) -> None:
        """Go on after these checkpoints, which are in the store."""
        self.checkpoints = list(checkpoints)
        self.log = CheckpointLog([entry.state_root for entry in self.checkpoints])

    def keep(self, name: str) -> None:
        """Note the checkpoints so far under a name of the store, for `resume`."""
        self._store.replace(name, learning_proof.begun(self.task, self.checkpoints, {}).encode())

    def resume(self, name: str) -> tuple[int, list[Words]] | None:
        """Go on from the checkpoints under a name: the index and state of the last one; None if there are none."""
        if not self._store.holds(name):
            return None
        kept = LearningProof.decode(self._store.read(name, limit=learning_proof.DOCUMENT_LIMIT))
        learning_proof.require_start_of(kept, self.task)
        state = learning_proof.load_checkpoint(self._store, self.task, kept.checkpoints[-1])
        self.take_over(kept.checkpoints)
        return self.checkpoints[-1].index, state

    def publish(self, environment: Mapping[str, str]) -> tuple[str, LearningProof]:
        """Store the learning proof; its digest and itself. Raises ProtocolError: the training isn't finished."""
        proof = learning_proof.build(self.task, self.checkpoints, environment)
        return self._store.put(proof.encode()), proof
