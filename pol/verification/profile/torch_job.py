"""The files that native reruns exchange with their worker process; needs no torch."""

from collections.abc import Sequence

from pol.arithmetic.primitives import Words
from pol.graph.tensor_type import TensorType
from pol.training.task import task_tensors

JOB, GRAPH, CONSTANTS = "job.json", "aten.json", "constants.safetensors"


def start_name(portion: int) -> str:
    """The file with the state before a portion."""
    return f"start-{portion}.safetensors"


def end_name(setting: int, portion: int) -> str:
    """The file with the state after it."""
    return f"end-{setting}-{portion}.safetensors"


def pack(types: Sequence[TensorType], tensors: Sequence[Words]) -> bytes:
    """A list of tensors as a file, under their numbers."""
    return task_tensors.encode([str(i) for i in range(len(types))], types, tensors)


def unpack(data: bytes, types: Sequence[TensorType]) -> list[Words]:
    """The tensors in such a file."""
    return task_tensors.decode(data, [str(i) for i in range(len(types))], types)
