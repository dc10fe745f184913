"""Checkpoints: tensors of words as safetensors files that hold nothing but tensors, in one possible encoding.

The container is only transport. What is committed to is the content (docs/spec/commitments.md, "Files").
"""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pol.arithmetic.primitives import Words
from pol.errors import EvidenceError, Fault, ProtocolError
from pol.graph.tensor_type import DType, TensorType

MAX_HEADER = 100_000_000
"""Bytes of JSON before the tensors, as safetensors has it."""
SPARE = 1 << 20
"""Bytes that a small file may be too long and is still looked at."""
_STORAGE: dict[DType, np.dtype[np.float32] | np.dtype[np.int32]] = {
    DType.F32: np.dtype(np.float32),
    DType.I32: np.dtype(np.int32),
}


def encode(names: Sequence[str], types: Sequence[TensorType], tensors: Sequence[Words]) -> bytes:
    """The file for ``tensors``; equal words give equal bytes.

    Raises:
        ProtocolError: names repeat, or a tensor isn't an array of words of its type's shape.
    """
    if not len(names) == len(types) == len(tensors):
        raise ProtocolError(f"no checkpoint: {len(names)} names, {len(types)} types, {len(tensors)} tensors")
    if len(set(names)) != len(names):
        raise ProtocolError(f"tensor names repeat: {sorted(names)}")
    content: dict[str, NDArray[np.number]] = {}
    for name, type_, words in zip(names, types, tensors, strict=True):
        if words.dtype != np.uint32 or words.shape != tuple(type_.shape):
            raise ProtocolError(
                f"tensor {name} is {words.dtype} of shape {words.shape}, expected words of shape {type_.shape}"
            )
        # A view moves bits, so NaN payloads survive; ascontiguousarray would turn rank 0 into rank 1.
        contiguous = words if words.flags.c_contiguous else words.copy(order="C")
        content[name] = contiguous.view(_STORAGE[type_.dtype])
    return bytes(save(content))


def limit(names: Sequence[str], types: Sequence[TensorType]) -> int:
    """Bytes that are read at most where a file of these tensors is expected: twice what it has, and a little.

    A file that is too long by less is evidence: `decode` says what is wrong with it. One that is longer is somebody's
    attempt on our memory.
    """
    # Braces, keys, a dtype and two offsets take fewer than 128 letters a tensor, a dimension 20 with its comma.
    header = sum(len(json.dumps(name)) + 128 for name in names) + sum(20 * len(type_.shape) for type_ in types)
    return 2 * (8 + header + sum(4 * type_.numel for type_ in types)) + SPARE


def decode(data: bytes, names: Sequence[str], types: Sequence[TensorType]) -> list[Words]:
    """The tensors in ``data``, in the order of ``names``.

    ``data`` comes from a stranger: check its digest first.

    Raises:
        EvidenceError: truncated, missing or extra tensors, another dtype or shape, metadata, or any other encoding than
            the one `encode` gives.
    """
    try:
        content = load(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        fault = Fault.TRUNCATED if _is_short(data, types) else Fault.MALFORMED
        raise EvidenceError(fault, f"not a safetensors file of {len(data)} bytes: {error}") from error
    if set(content) != set(names):
        missing, extra = sorted(set(names) - set(content)), sorted(set(content) - set(names))
        fault = Fault.MISSING_TENSOR if missing else Fault.EXTRA_TENSOR
        raise EvidenceError(fault, f"wrong tensors in a checkpoint: missing {missing}, unexpected {extra}")
    tensors: list[Words] = []
    for name, type_ in zip(names, types, strict=True):
        array = content[name]
        if array.dtype != _STORAGE[type_.dtype] or array.shape != tuple(type_.shape):
            fault = Fault.WRONG_SHAPE if array.dtype == _STORAGE[type_.dtype] else Fault.WRONG_DTYPE
            expected = f"{_STORAGE[type_.dtype]} {tuple(type_.shape)}"
            raise EvidenceError(fault, f"tensor {name} is {array.dtype} {array.shape}, expected {expected}")
        tensors.append(array.view(np.uint32))
    if encode(names, types, tensors) != data:
        problem = "a checkpoint in another than the canonical encoding: metadata, gaps or another order"
        raise EvidenceError(Fault.MALFORMED, problem)
    return tensors


def _is_short(data: bytes, types: Sequence[TensorType]) -> bool:
    """Whether bytes that don't parse end before the header that they announce and the tensors that are expected."""
    header = int.from_bytes(data[:8], "little") if len(data) >= 8 else 0
    return header <= MAX_HEADER and len(data) < 8 + header + sum(4 * type_.numel for type_ in types)
