"""Components of a complete state: named Python values with tensors inside, as arrays and documents and back.

Component ``name`` is one document of that name; the tensors inside it are arrays named ``name/path``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pol.commitments import canonical_json
from pol.commitments.array import Array, ArrayType, ElementType
from pol.commitments.complete_state import CompleteState
from pol.errors import ProtocolError
from pol.training.state import plain_data, tensors

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta)(:(0|[1-9][0-9]?|1[01][0-9]|12[0-7]))?")
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}


def encode(
    components: Mapping[str, object],
    threads: int = 0,
    take: Callable[[Tensor, str], Array] = tensors.of_tensor,
    keep: Callable[[str, Array], Array] = lambda _, array: array,
) -> CompleteState:
    """The state that holds these components; tensors aren't copied where possible.

    ``take`` gives the bytes of a tensor at a path; ``keep`` what the state holds of them, such as a copy.

    Raises:
        UnsupportedError: a value without a form; the message names it.
    """
    arrays: dict[str, Array] = {}

    def special(value: object, path: str) -> plain_data.Special | None:
        if "/" not in path:  # the component's own document has this name
            path = f"{path}/value"
        if isinstance(value, Tensor):
            arrays[path] = keep(path, take(value, path))
            return "Tensor", path
        if isinstance(value, np.ndarray):
            arrays[path] = keep(path, tensors.of_numpy(value, path))
            return "Array", path
        if isinstance(value, np.generic):
            one = tensors.of_numpy(np.asarray(value), path)
            return "Scalar", [one.type.element.name, one.data.tobytes().hex()]
        if isinstance(value, torch.dtype):
            return "Dtype", str(value).removeprefix("torch.")
        if isinstance(value, torch.device):
            return "Device", str(value)
        if isinstance(value, torch.Size):
            return "Size", list(value)
        return None

    encoder = plain_data.Encoder(special)
    documents = {
        name: canonical_json.encode({"value": encoder.encode(value, plain_data.segment(name))})
        for name, value in components.items()
    }
    return CompleteState(arrays, documents, threads)


def decode(state: CompleteState) -> dict[str, Any]:
    """The components of a state, tensors on the processor."""
    used: set[str] = set()

    def array(name: object, path: str) -> Array:
        used.add(plain_data.placed(name, path, state.arrays.keys()))
        return state.arrays[str(name)]

    def special(tag: str, content: Any, path: str) -> object:
        if tag == "Tensor":
            return tensors.to_tensor(array(content, path))
        if tag == "Array":
            return tensors.to_numpy(array(content, path))
        if tag == "Scalar" and _are_texts(content, 2):
            return _scalar(*content)
        if tag == "Dtype" and isinstance(content, str) and content in _DTYPES:
            return _DTYPES[content]
        if tag == "Device" and isinstance(content, str) and _DEVICE.fullmatch(content):
            return torch.device(content)
        if tag == "Size" and isinstance(content, list) and all(type(size) is int for size in content):
            return torch.Size(content)
        raise ProtocolError(f"{path} isn't a value in the form of a complete state")

    decoder = plain_data.Decoder(special)
    components = {}
    for name, data in state.documents.items():
        document = canonical_json.Fields(canonical_json.decode(data, f"document {name}"), f"document {name}", ["value"])
        components[name] = decoder.decode(document.value("value"), plain_data.segment(name))
    if unused := state.arrays.keys() - used:
        raise ProtocolError(f"no document mentions the tensor {sorted(unused)[0]!r}")
    return components


def _scalar(element: str, data: str) -> object:
    try:
        values = np.frombuffer(bytes.fromhex(data), np.uint8)
    except ValueError as error:
        raise ProtocolError("a NumPy scalar isn't written in hexadecimal") from error
    return tensors.to_numpy(Array(ArrayType(ElementType.of_name(element), ()), values))[()]


def _are_texts(content: object, count: int) -> bool:
    return isinstance(content, list) and len(content) == count and all(isinstance(item, str) for item in content)
