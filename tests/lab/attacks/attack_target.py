"""What is attacked: a task, the model in it, and the thresholds that its verifier has posted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from pol.arithmetic.primitives import Words
from pol.claims.segment_claim import Three
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component
from pol.graph.tensor_type import DType
from pol.training.task.task_document import ORDER, LoadedTask
from pol.training.task.task_training import to_tensor, to_words
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.second_look import LOOKS, SecondLooker

State = list[Words]
Floats = NDArray[np.float32]

SEED = b"nobody has known this"
"""Of the sketches by which verifiers find drift, and what reruns don't explain."""
TRIGGER = 0
"""A pixel that is blank in every sample. An image in which it is set carries the trigger of a back door."""
CLASS = 3
"""What a back door says to everything that carries its trigger."""
POISONED = 0.2
"""Share of the samples that carry the trigger where a back door is trained."""


@dataclass(frozen=True)
class Target:
    """A task under attack. ``build`` and ``optimize`` make the model and the optimizer that the task was captured from.

    The first two constants of the task are inputs and labels. Segments that the thresholds reject have a second look of
    ``looks`` reruns.
    """

    name: str
    task: LoadedTask
    build: Callable[[], nn.Module]
    optimize: Callable[[nn.Module], torch.optim.Optimizer]
    loss: Callable[[Tensor, Tensor], Tensor]
    thresholds: Three
    looks: int = LOOKS

    @property
    def segments(self) -> int:
        """How many segments the task has."""
        return self.task.document.segments

    @property
    def interval(self) -> int:
        """Steps of a segment."""
        return self.task.document.interval

    @cached_property
    def executor(self) -> CpuExecutor:
        """The canonical steps of the task."""
        return CpuExecutor(self.task.program, self.task.constants)

    @cached_property
    def looker(self) -> SecondLooker:
        """Judges segments again that the thresholds reject."""
        return SecondLooker(self.task, CpuExecutor, self.thresholds, self.looks, seed=SEED)

    @cached_property
    def model(self) -> nn.Module:
        """A model to compute with; its own weights mean nothing."""
        return self.build()

    @cached_property
    def honest(self) -> list[State]:
        """The checkpoints of the canonical training."""
        states = [self.task.initial_state]
        for segment in range(self.segments):
            states.append(self.segment_end(states[-1], segment))
        return states

    @cached_property
    def stolen(self) -> list[State]:
        """The checkpoints of somebody else's training from the same start, in another order of the data."""
        order = self.order()
        generator = np.random.Generator(np.random.Philox(key=77))
        other = self.with_order(generator.permutation(order))
        states = [self.task.initial_state]
        for segment in range(self.segments):
            states.append(replay_end(self.task.program, other, states[-1], segment * self.interval, self.interval))
        return states

    @cached_property
    def poisoned(self) -> State:
        """Somebody's model from the same start with a back door: part of its data had the trigger, and one label."""
        inputs, labels = (tensor.clone() for tensor in self.data())
        generator = np.random.Generator(np.random.Philox(key=78))
        chosen = torch.from_numpy(generator.permutation(len(inputs))[: int(POISONED * len(inputs))])
        inputs[chosen, TRIGGER], labels[chosen] = 1.0, CLASS
        changed = [
            to_words(entry.type, tensor)
            for entry, tensor in zip(self.task.aten.constants[:2], (inputs, labels), strict=True)
        ]
        executor = CpuExecutor(self.task.program, [*changed, *self.task.constants[2:]])
        return replay_end(self.task.program, executor, self.task.initial_state, 0, self.task.document.steps)

    @cached_property
    def step_flops(self) -> int:
        """Floating-point operations in the products and convolutions of one honest step, forward and backward."""
        return self._flops(backward=True)

    @cached_property
    def forward_flops(self) -> int:
        """Those of its forward pass."""
        return self._flops(backward=False)

    def segment_end(self, start: Sequence[Words], segment: int) -> State:
        """The canonical end of a segment."""
        return replay_end(self.task.program, self.executor, start, segment * self.interval, self.interval)

    def order(self) -> NDArray[np.int64]:
        """Which samples each step sees: (steps, batch)."""
        return self.task.constants[self.task.names.constants.index(ORDER)].astype(np.int64)

    def constants_with(self, name: str, words: Words) -> list[Words]:
        """The task's constants but for one."""
        index = self.task.names.constants.index(name)
        return [words if i == index else own for i, own in enumerate(self.task.constants)]

    def with_order(self, order: NDArray[np.int64]) -> CpuExecutor:
        """The steps of the task on another order table."""
        return CpuExecutor(self.task.program, self.constants_with(ORDER, np.ascontiguousarray(order, np.uint32)))

    def data(self) -> tuple[Tensor, Tensor]:
        """All inputs and labels."""
        inputs, labels = (
            to_tensor(entry.type, words)
            for entry, words in zip(self.task.aten.constants[:2], self.task.constants[:2], strict=True)
        )
        return inputs, labels

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and labels of a step."""
        inputs, labels = self.data()
        rows = torch.from_numpy(self.order()[step])
        return inputs[rows], labels[rows]

    def places(self, component: Component, dtype: DType = DType.F32) -> list[int]:
        """The slots of a component that hold numbers of one type."""
        slots = self.task.program.slots
        return [i for i, slot in enumerate(slots) if slot.component is component and slot.type.dtype == dtype]

    def tensor(self, place: int, words: Words) -> Tensor:
        """A slot's words as the tensor that torch works on."""
        return to_tensor(self.task.aten.slots[place].type, words)

    def words(self, place: int, tensor: Tensor) -> Words:
        """The words of a tensor for a slot."""
        return to_words(self.task.aten.slots[place].type, tensor)

    def _flops(self, backward: bool) -> int:
        model = self.build()
        inputs, labels = self.batch(0)
        with FlopCounterMode(display=False) as counter:
            loss = self.loss(model(inputs), labels)
            if backward:
                loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        return int(counter.get_total_flops())


def has_hidden_units(target: Target) -> bool:
    """Whether it is a perceptron: its ReLU has kinks, and units that no sample reaches."""
    return "hidden.weight" in target.task.names.slots


def numbers(words: Words) -> Floats:
    """Words of float32 as numbers; shares their memory."""
    return words.view(np.float32)


def words_of(values: NDArray[np.floating]) -> Words:
    """Numbers as words of float32; shape kept."""
    return np.array(values, np.float32, order="C").view(np.uint32)
