"""A task that is trained in the user's own loop: its learning proof grows beside the learning record.

Every slot of the task is an array of the complete state under another name, so the task's state is read from the copy
that the checkpoint is stored from (docs/spec/two_states.md).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pol.arithmetic.primitives import Words
from pol.commitments.array import Array
from pol.commitments.complete_state import CompleteState
from pol.commitments.tensor import tensor_root
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.step_program import Component
from pol.training.record.proof_of_record import slot_entries, task_checkpoints
from pol.training.record.recorded_run import COMPONENT
from pol.training.state import components
from pol.training.state.words import to_words
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import tensors, to_tensor

ROUNDING, NARROW_ROUNDING = 2.0**-8, 2.0**-5
"""Shares of a step by which two honest ones may differ, in binary32 and with bfloat16 in it."""


class RecordedTask:
    """The task's checkpoints so far, and the arrays of the complete state that they are read from.

    ``updated`` are the names of the parameters in the order in which the optimizer counts them.

    Raises:
        UnsupportedError: the task has state that no component of a recorder holds.
    """

    def __init__(self, store: Store, task: LoadedTask, updated: Sequence[str]):
        self.task = task
        self._recorder = TaskRecorder(store, task)
        self._entries = slot_entries(task, updated)
        self._is_late = [slot.component is Component.OPTIMIZER for slot in task.program.slots]

    def record(self, steps: int, state: CompleteState) -> CompleteState:
        """Store the task's checkpoint if one is due after ``steps`` steps; the state, with the checkpoints in it.

        Raises:
            ProtocolError: the state isn't one of this task, or isn't its first one.
        """
        document, recorded = self.task.document, self._recorder.checkpoints
        index, rest = divmod(steps, document.interval)
        if not rest and index == len(recorded) and steps <= document.steps:
            words = self._words(state.arrays)
            if index == 0:
                self._require_first(words)
            self._recorder(index, words)
        listed = [[entry.state_root.hex(), entry.object] for entry in recorded]
        added = components.encode({COMPONENT: {"task": self.task.digest, "checkpoints": listed}})
        return dataclasses.replace(state, documents={**state.documents, **added.documents})

    def load(self, component: Mapping[str, Any] | None) -> None:
        """Go on after the checkpoints that `record` has put into a state."""
        if component is None:
            raise ProtocolError("the run was recorded without a task: leave it out, or record into another store")
        if component["task"] != self.task.digest:
            raise ProtocolError(
                f"the run recorded task {component['task']}, not task {self.task.digest}: record into another store, "
                "or seed all that the task is made of"
            )
        self._recorder.take_over(task_checkpoints(component["checkpoints"], self.task.document.interval))

    def proof(self, environment: Mapping[str, str]) -> tuple[str, LearningProof]:
        """Build and store the learning proof; its digest and itself."""
        done, segments = len(self._recorder.checkpoints) - 1, self.task.document.segments
        if done != segments:
            raise ProtocolError(f"the training has recorded {done} of the task's {segments} segments: finish it first")
        return self._recorder.publish(environment)

    def require_first_step(self, state: CompleteState) -> None:
        """Compare the loop's first step with the task's, so that no training is spent on another one.

        Only an optimizer without state is judged by parameters: one may move by the sign of a gradient of rounding.

        Raises:
            UnsupportedError: the state isn't one of this task.
        """
        from pol.execution.stock_torch.torch_executor import NativeExecutor  # a rule of one's own may come until now

        task, slots = self.task, self.task.aten.slots
        constants, first = tensors(task)
        expected, _ = NativeExecutor(task.aten).run(first, constants, 0)
        own = [to_tensor(slot.type, held) for slot, held in zip(slots, self._words(state.arrays), strict=True)]
        kinds = {slot.component for slot in slots}
        kind = Component.OPTIMIZER if Component.OPTIMIZER in kinds else Component.PARAMETER
        apart = moved = 0.0
        for slot, found, ours, begin in zip(slots, own, expected, first, strict=True):
            if slot.component is kind and found.is_floating_point():
                apart += float((found.double() - ours.double()).square().sum())
                moved += float((ours.double() - begin.double()).square().sum())
        is_narrow = any(output.dtype == "bfloat16" for node in task.aten.nodes for output in node.outputs)
        if apart > moved * (NARROW_ROUNDING if is_narrow else ROUNDING) ** 2:
            far = f"its {kind.name.lower()} differs by {math.sqrt(apart / (moved or apart)):.3g} of what the step moves"
            raise ProtocolError(
                f"the loop's first step isn't the task's: {far}, which no rounding explains. Compare learning rate, "
                "order, dropout (TaskRandomness) and the mean over micro-batches (Loop(items=...) counts tokens)"
            )

    def _words(self, arrays: Mapping[str, Array]) -> list[Words]:
        """The task's state. Optimizers make theirs at the first step; until then it is the task's initial one."""
        found, task = [], self.task
        first = None if all(entry in arrays for entry in self._entries) else task.initial_state
        for place, (name, type_, entry) in enumerate(
            zip(task.names.slots, task.slot_types, self._entries, strict=True)
        ):
            if entry in arrays:
                words = to_words(arrays[entry], entry)
            elif first is not None and self._is_late[place]:
                words = first[place]
            else:
                raise UnsupportedError(
                    f"the training has no {entry} for slot {name} of the task: record the model that was captured; "
                    "averages of the weights (Loop(ema=...)) are kept by pol.training.task.task_training "
                    "alone"
                )
            if words.shape != type_.shape:
                raise ProtocolError(f"{entry} has the shape {words.shape}, slot {name} of the task is {type_}")
            found.append(words)
        return found

    def _require_first(self, words: Sequence[Words]) -> None:
        task = self.task
        for name, type_, own, first in zip(task.names.slots, task.slot_types, words, task.initial_state, strict=True):
            if tensor_root(type_, own) != tensor_root(type_, first):
                raise ProtocolError(f"the training doesn't begin with the task's state: {name} differs")
