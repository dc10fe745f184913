"""A task's tensors as a file: words in safetensors with one possible encoding (docs/spec/commitments.md, "Files").

The container is only transport. Roots commit to the content.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.array import Array, ArrayType, ElementType
from pol.errors import EvidenceError, Fault, OperationalError, ProtocolError
from pol.graph.tensor_type import TensorType
from pol.training.storage import safetensors_format
from pol.training.storage.store import CorruptObjectError, Store

SPARE = 1 << 20
"""Bytes that a small file may be too long and is still looked at."""


def encode(names: Sequence[str], types: Sequence[TensorType], tensors: Sequence[Words]) -> bytes:
    """The file for ``tensors``; equal words give equal bytes."""
    return b"".join(pieces(names, types, tensors))


def pieces(names: Sequence[str], types: Sequence[TensorType], tensors: Sequence[Words]) -> Iterator[bytes | memoryview]:
    """As `encode`, piece by piece: only the header is copied."""
    if not len(names) == len(types) == len(tensors):
        raise ProtocolError(f"no file of tensors: {len(names)} names, {len(types)} types, {len(tensors)} tensors")
    arrays = {}
    for (name, element), type_, words in zip(_typed(names, types).items(), types, tensors, strict=True):
        if words.dtype != np.uint32 or words.shape != tuple(type_.shape):
            raise ProtocolError(
                f"tensor {name} is {words.dtype} of shape {words.shape}, expected words of shape {type_.shape}"
            )
        # A view moves bits, so NaN payloads survive.
        arrays[name] = Array(element, np.ascontiguousarray(words).reshape(-1).view(np.uint8))
    yield from safetensors_format.pieces(arrays, _by_type)


def load(store: Store, digest: str, names: Sequence[str], types: Sequence[TensorType]) -> list[Words]:
    """The tensors in an object of a store. The file isn't in memory beside them. Raises EvidenceError: as `decode`."""
    most = limit(names, types)
    with suppress(MemoryError, CorruptObjectError, OperationalError):
        if (found := _read(store.pieces(digest, limit=most), names, types)) is not None:
            return found
    # Says what is wrong with the file; a party's own store has fetched another copy by now.
    return decode(store.get(digest, limit=most), names, types)


def _read(data: Iterable[bytes], names: Sequence[str], types: Sequence[TensorType]) -> list[Words] | None:
    """The tensors in a file that comes piece by piece; None if it isn't the one that `encode` gives for some words."""
    expected = _typed(names, types)
    header = safetensors_format.header(expected, _by_type)
    tensors = {name: np.empty(type_.shape, np.uint32) for name, type_ in expected.items()}
    head = np.empty(len(header), np.uint8)
    targets = [head, *(tensors[name].reshape(-1).view(np.uint8) for name in _by_type(expected))]
    number, at = 0, 0
    for piece in data:
        rest = np.frombuffer(piece, np.uint8)
        while rest.size:
            if number == len(targets):
                return None
            part = rest[: targets[number].size - at]
            targets[number][at : at + part.size] = part
            rest, at = rest[part.size :], at + part.size
            if at == targets[number].size:
                number, at = number + 1, 0
    if any(target.size for target in targets[number:]) or head.tobytes() != header:
        return None
    return [tensors[name] for name in names]


def limit(names: Sequence[str], types: Sequence[TensorType]) -> int:
    """Bytes that are read at most where a file of these tensors is expected: twice its size, and a little.

    A file that is too long by less is evidence: `decode` says what is wrong with it. A longer one is an attempt on the
    reader's memory.
    """
    header = safetensors_format.header(_typed(names, types), _by_type)
    return 2 * (len(header) + sum(4 * type_.numel for type_ in types)) + SPARE


def decode(data: bytes, names: Sequence[str], types: Sequence[TensorType]) -> list[Words]:
    """The tensors in ``data``, in the order of ``names``.

    ``data`` comes from a stranger: check its digest first.

    Raises:
        EvidenceError: truncated, missing or extra tensors, another dtype or shape, metadata, or any other encoding than
            the one `encode` gives.
    """
    expected = _typed(names, types)
    header = safetensors_format.header(expected, _by_type)
    if not data.startswith(header) or len(data) != len(header) + sum(each.nbytes for each in expected.values()):
        raise _difference(data, expected)
    tensors: dict[str, Words] = {}
    offset = len(header)
    for name in _by_type(expected):
        type_ = expected[name]
        # Copied, as `data` is read-only.
        words = np.frombuffer(data, np.uint32, type_.nbytes // 4, offset).copy()
        tensors[name], offset = words.reshape(type_.shape), offset + type_.nbytes
    return [tensors[name] for name in names]


def _typed(names: Sequence[str], types: Sequence[TensorType]) -> dict[str, ArrayType]:
    typed = {
        name: ArrayType(ElementType[type_.dtype.name], tuple(type_.shape))
        for name, type_ in zip(names, types, strict=True)
    }
    if len(typed) != len(names):
        raise ProtocolError(f"tensor names repeat: {sorted(names)}")
    return typed


def _by_type(types: Mapping[str, ArrayType]) -> list[str]:
    """Floats before integers, then by name: the order of the safetensors package, which wrote the first tasks."""
    return sorted(types, key=lambda name: (types[name].element, name.encode()))


def _difference(data: bytes, expected: Mapping[str, ArrayType]) -> EvidenceError:
    """The first thing in which a file differs from the one that holds the expected tensors."""
    try:
        _, (found, _, _) = safetensors_format.split(data, "the file")
    except ProtocolError as error:
        fault = Fault.TRUNCATED if _is_short(data, expected) else Fault.MALFORMED
        return EvidenceError(fault, f"not a safetensors file of {len(data)} bytes: {error}")
    if found.keys() != expected.keys():
        missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
        fault = Fault.MISSING_TENSOR if missing else Fault.EXTRA_TENSOR
        return EvidenceError(fault, f"wrong tensors in a checkpoint: missing {missing}, unexpected {extra}")
    for name, type_ in expected.items():
        if found[name] != type_:
            fault = Fault.WRONG_SHAPE if found[name].element is type_.element else Fault.WRONG_DTYPE
            shown = f"{found[name].element.name} {found[name].shape}"
            return EvidenceError(fault, f"tensor {name} is {shown}, expected {type_.element.name} {type_.shape}")
    problem = "a checkpoint in another than the canonical encoding: metadata, gaps or another order"
    return EvidenceError(Fault.MALFORMED, problem)


def _is_short(data: bytes, expected: Mapping[str, ArrayType]) -> bool:
    """Whether bytes that don't parse end before the header that they announce and the tensors that are expected."""
    header = int.from_bytes(data[:8], "little") if len(data) >= 8 else 0
    tensors = sum(type_.nbytes for type_ in expected.values())
    return header <= safetensors_format.HEADER_LIMIT and len(data) < 8 + header + tensors
