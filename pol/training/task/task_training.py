"""Native training of a task with stock torch."""

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.execution.device.open_device import CPU, is_gpu, open_device
from pol.execution.device.roots import DeviceRoots
from pol.execution.device.tensor_words import buffer_of_step
from pol.graph import capture
from pol.graph.aten_graph import WORD_TYPES, AtenType
from pol.graph.tensor_type import DType
from pol.training.task.learning_proof import ARITHMETIC, CANONICAL
from pol.training.task.task_document import LoadedTask

OnCheckpoint = Callable[[int, list[Words]], None]

_TORCH = {name: getattr(torch, name) for name in WORD_TYPES}


class TrainingDivergedError(ProtocolError):
    """The loss or the state isn't finite any more, so no proof of this training can be accepted."""


class StepExecutor(Protocol):
    """Runs one training step; `pol.execution.stock_torch.torch_executor.NativeExecutor` in an honest solver."""

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        """The next state, and observed values such as the loss."""
        ...


def train(
    task: LoadedTask,
    executor: StepExecutor,
    on_checkpoint: OnCheckpoint,
    last: tuple[int, list[Words]] | None = None,
    device: str = CPU,
    on_root: Callable[[bytes], None] | None = None,
) -> dict[str, float]:
    """Train all steps of ``task``; the observed values of the last one.

    ``on_checkpoint(index, state words)`` is called for the initial state and after every interval. ``last`` is the
    index and the state of a checkpoint to resume from.
    State and constants stay on ``device`` between checkpoints, and ``on_root`` gets the root that a device computes of
    a state, before its checkpoint.

    Raises:
        TrainingDivergedError: a loss, or the state at a checkpoint, is NaN or infinite.
    """
    document = task.document
    slots = task.aten.slots
    index, words = last or (0, task.initial_state)
    if last is None:
        on_checkpoint(0, words)
    roots = None if device == CPU else DeviceRoots(open_device(device))
    constants, state = ([tensor.to(torch_device(device)) for tensor in part] for part in tensors(task, words))
    observed: dict[str, float] = {}
    for step in range(index * document.interval, document.steps):
        state, values = executor.run(state, constants, step)
        observed = {name: float(value) for name, value in values.items()}
        for name, value in observed.items():
            if not np.isfinite(value):
                raise _diverged(f"{name} is {value} at step {step}")
        if (step + 1) % document.interval == 0:
            for entry, tensor in zip(slots, state, strict=True):
                if not bool(torch.isfinite(tensor).all()):
                    raise _diverged(f"{entry.name} isn't finite after step {step}")
            if roots is not None and on_root is not None:
                buffers = [buffer_of_step(entry.type, tensor) for entry, tensor in zip(slots, state, strict=True)]
                on_root(roots.state_root(task.slot_types, buffers))
            words = [to_words(entry.type, tensor) for entry, tensor in zip(slots, state, strict=True)]
            on_checkpoint((step + 1) // document.interval, words)
    return observed


def tensors(task: LoadedTask, state: Sequence[Words] | None = None) -> tuple[list[Tensor], list[Tensor]]:
    """Constants and a state (by default the initial one) as the tensors of a step."""
    graph, words = task.aten, task.initial_state if state is None else state
    constants = [to_tensor(entry.type, w) for entry, w in zip(graph.constants, task.constants, strict=True)]
    return constants, [to_tensor(entry.type, w) for entry, w in zip(graph.slots, words, strict=True)]


def torch_device(device: str) -> str:
    """What torch calls the memory of a device."""
    return device if is_gpu(device) else "cpu"


def environment(exact: bool = False) -> dict[str, str]:
    """A fingerprint of this machine, for people who search the cause of a distance. An exact training has none."""
    return {
        **({ARITHMETIC: CANONICAL} if exact else {}),
        "torch": str(torch.__version__),
        "threads": str(torch.get_num_threads()),
        "capability": str(torch.backends.cpu.get_cpu_capability()),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def to_tensor(type_: AtenType, words: Words) -> Tensor:
    """A copy of words as a tensor of the step."""
    storage = np.float32 if type_.words.dtype == DType.F32 else np.int32
    return torch.from_numpy(words.copy().view(storage)).to(_TORCH[type_.dtype])


def to_words(type_: AtenType, tensor: Tensor) -> Words:
    """A copy of a tensor as words. Raises UnsupportedError: it holds an integer that doesn't fit a word."""
    if tensor.dtype != _TORCH[type_.dtype] or tuple(tensor.shape) != type_.shape:
        raise ProtocolError(f"a step gave {tensor.dtype} of shape {tuple(tensor.shape)}, expected {type_}")
    return capture.to_words("a state after training", tensor)


def _diverged(what: str) -> TrainingDivergedError:
    return TrainingDivergedError(
        f"training diverged: {what}; nothing more is recorded. Lower the learning rate, clip gradients or check the"
        " data, and publish a new task"
    )
