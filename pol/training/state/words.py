"""Arrays as the words of a step program and back (docs/spec/documents.md, "ATen graph", defines words)."""

from __future__ import annotations

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.array import Array, ArrayType, ElementType
from pol.errors import ProtocolError

I32_RANGE = (-(2**31), 2**31 - 1)
_NARROW = {ElementType.I16: "<i2", ElementType.I8: "<i1", ElementType.U8: "<u1"}


def to_words(array: Array, name: str) -> Words:
    """The words that hold an array: its own bytes where they are words, so they must not change while they are used."""
    element, shape, data = array.type.element, array.type.shape, array.data
    if element in (ElementType.F32, ElementType.I32):
        words = data.view("<u4")
    elif element is ElementType.BF16:
        words = data.view("<u2").astype(np.uint32) << np.uint32(16)
    elif element is ElementType.BOOL:
        words = data.astype(np.uint32)
    elif element in _NARROW:
        words = data.view(_NARROW[element]).astype(np.int32).view(np.uint32)
    elif element is ElementType.I64:
        integers = data.view("<i8")
        if integers.size and not I32_RANGE[0] <= int(integers.min()) <= int(integers.max()) <= I32_RANGE[1]:
            raise ProtocolError(f"{name} holds integers that don't fit in 32 bits")
        words = integers.astype(np.int32).view(np.uint32)
    else:
        raise ProtocolError(f"{name} has elements of type {element.name}, which no step program holds")
    return words.reshape(shape)


def of_words(words: Words, element: ElementType) -> Array:
    """The array of this element type that words hold. Raises ProtocolError: a type without words."""
    flat = np.ascontiguousarray(words).reshape(-1)
    if element in (ElementType.F32, ElementType.I32):
        data = flat.view(np.uint8)
    elif element is ElementType.BF16:
        data = (flat >> np.uint32(16)).astype("<u2").view(np.uint8)
    elif element is ElementType.BOOL:
        data = (flat != 0).astype(np.uint8)
    elif element in _NARROW:
        data = flat.view(np.int32).astype(_NARROW[element]).view(np.uint8)
    elif element is ElementType.I64:
        data = flat.view(np.int32).astype("<i8").view(np.uint8)
    else:
        raise ProtocolError(f"elements of type {element.name} have no words")
    return Array(ArrayType(element, words.shape), data)
