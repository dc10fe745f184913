"""Tensors as arrays of bytes and back, copied only where torch needs it (docs/spec/complete_state.md, "Arrays")."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from pol.commitments.array import Array, ArrayType, ElementType
from pol.errors import ProtocolError, UnsupportedError

ELEMENT_TYPES: Mapping[torch.dtype, ElementType] = {
    torch.float32: ElementType.F32,
    torch.int32: ElementType.I32,
    torch.float64: ElementType.F64,
    torch.bfloat16: ElementType.BF16,
    torch.float16: ElementType.F16,
    torch.int64: ElementType.I64,
    torch.int16: ElementType.I16,
    torch.int8: ElementType.I8,
    torch.uint8: ElementType.U8,
    torch.bool: ElementType.BOOL,
    torch.uint16: ElementType.U16,
    torch.uint32: ElementType.U32,
    torch.uint64: ElementType.U64,
    torch.complex64: ElementType.C64,
    torch.float8_e4m3fn: ElementType.F8_E4M3,
    torch.float8_e5m2: ElementType.F8_E5M2,
    torch.float8_e8m0fnu: ElementType.F8_E8M0,
}
DTYPES: Mapping[ElementType, torch.dtype] = {element: dtype for dtype, element in ELEMENT_TYPES.items()}

NUMPY: Mapping[str, ElementType] = {
    "<f4": ElementType.F32, "<f8": ElementType.F64, "<f2": ElementType.F16, "<c8": ElementType.C64,
    "|i1": ElementType.I8, "<i2": ElementType.I16, "<i4": ElementType.I32, "<i8": ElementType.I64,
    "|u1": ElementType.U8, "<u2": ElementType.U16, "<u4": ElementType.U32, "<u8": ElementType.U64,
    "|b1": ElementType.BOOL,
}  # fmt: skip
_NUMPY_DTYPES = {element: np.dtype(code) for code, element in NUMPY.items()}


def of_tensor(tensor: Tensor, path: str) -> Array:
    """The bytes of a tensor: its own memory if it is dense and on the processor, else a copy.

    Raises:
        UnsupportedError: a tensor without dense elements of a known type; the message names ``path``.
    """
    tensor = tensor.detach()
    if type(tensor) not in (Tensor, torch.nn.Parameter) and hasattr(tensor, "to_local"):
        raise UnsupportedError(f"{path} is spread over several processes: record it with pol.integrations.distributed")
    if tensor.is_meta or tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        kind = "a meta tensor" if tensor.is_meta else f"a tensor of layout {tensor.layout}"
        raise UnsupportedError(
            f"{path} is {kind}: only dense tensors with elements have a form; call .to_dense() first"
        )
    if tensor.dtype not in ELEMENT_TYPES:
        raise UnsupportedError(f"{path} has the dtype {tensor.dtype}, which has no form: convert it first")
    type_ = ArrayType(ELEMENT_TYPES[tensor.dtype], tuple(tensor.shape))
    if not tensor.numel():
        return Array(type_, np.empty(0, np.uint8))
    dense = tensor.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return Array(type_, dense.view(torch.uint8).numpy())


def to_tensor(array: Array) -> Tensor:
    """A tensor with a copy of the bytes, on the processor."""
    dtype = DTYPES[array.type.element]
    if not array.type.nbytes:
        return torch.empty(array.type.shape, dtype=dtype)
    return torch.from_numpy(array.data.copy()).view(dtype).reshape(array.type.shape)


def order_of(value: object) -> list[int]:
    """The dimensions from the outermost in memory, if a tensor lies densely, but not row by row; else empty."""
    if type(value) is not Tensor or value.layout != torch.strided or value.is_contiguous():
        return []
    strides = value.stride()
    order = sorted(range(value.dim()), key=lambda dimension: -strides[dimension])
    return order if value.permute(order).is_contiguous() else []


def in_order(tensor: Tensor, order: list[int]) -> Tensor:
    """The tensor in memory as `order_of` says. Raises ProtocolError: it isn't an order of the tensor's dimensions."""
    if sorted(order) != list(range(tensor.dim())):
        raise ProtocolError(f"{order} isn't an order of the {tensor.dim()} dimensions of an optimizer's tensor")
    places = sorted(range(tensor.dim()), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(places)


def of_numpy(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], path: str) -> Array:
    """The bytes of a NumPy array.

    Raises:
        UnsupportedError: objects, texts, times, or a byte order or size without a form.
    """
    element = NUMPY.get(values.dtype.str)
    if element is None:
        raise UnsupportedError(f"{path} is a NumPy array of {values.dtype}, which has no form: convert it first")
    dense = np.ascontiguousarray(values).reshape(-1)
    return Array(ArrayType(element, values.shape), dense.view(np.uint8) if dense.size else np.empty(0, np.uint8))


def to_numpy(array: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """A NumPy array with a copy of the bytes; ProtocolError for an element type that NumPy lacks."""
    dtype = _NUMPY_DTYPES.get(array.type.element)
    if dtype is None:
        raise ProtocolError(f"NumPy has no elements of type {array.type.element.name}")
    return array.data.copy().view(dtype).reshape(array.type.shape)
