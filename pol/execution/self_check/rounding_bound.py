"""How far rounding can move the results of one ATen operation, measured with torch in binary64."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from pol.execution.self_check.operation_classes import (
    BATCH_NORM_BACKWARD,
    EXACT,
    GROUP_NORM_BACKWARD,
    LAYER_NORM_BACKWARD,
    LOG_SOFTMAX_BACKWARD,
    SHARES,
    SOFTMAX_BACKWARD,
    SUMS,
    UNSTABLE,
)
from pol.execution.stock_torch.torch_executor import NativeExecutor, resolved, results_of
from pol.graph.aten_graph import Argument, AtenGraph, AtenNode, Ref, references

COUNT = 1_048_583
"""How many numbers are drawn: a prime, so that the rows of a matrix get different ones."""


class DrawnErrors:
    """Uniform numbers from -1 to 1, the same for the same seed and the same sequence of calls."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self._draws, state = _drawn(seed, dtype)
        self._generator = torch.Generator()
        self._generator.set_state(state)

    def applied(self, tensor: Tensor, size: float) -> Tensor:
        """A tensor of floats whose elements have relative errors of at most `size`."""
        moved = tensor.to(self._draws.dtype, memory_format=torch.contiguous_format, copy=True)
        for part, draws in self._parts(moved.view(-1)):
            part.addcmul_(part, draws, value=size)
        return moved.to(tensor.dtype)

    def _parts(self, flat: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        begin = int(torch.randint(COUNT, (), generator=self._generator))
        done = 0
        while done < len(flat):
            count = min(COUNT - begin, len(flat) - done)
            yield flat[done : done + count], self._draws[begin : begin + count]
            done, begin = done + count, 0


@lru_cache(maxsize=2)  # a self-check asks for the same ones again and again
def _drawn(seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The numbers, and the state of the generator behind them."""
    generator = torch.Generator().manual_seed(seed)
    draws = torch.empty(COUNT, dtype=dtype).uniform_(-1.0, 1.0, generator=generator)
    return draws, generator.get_state()


BINARY32_UNIT, BFLOAT16_UNIT = 2.0**-23, 2.0**-7
_SAFETY = 16
_DRAWS = 4
_NUDGE = 2.0**-20


class RoundingBound:
    """How far roundings of the operands and within the operation can move its results."""

    def __init__(self, node: AtenNode, values: Mapping[Ref, Tensor], terms: int) -> None:
        self._node, self._terms = node, math.sqrt(terms)
        refs = list(references(node.all_arguments))
        wide = {ref: values[ref].double() if values[ref].is_floating_point() else values[ref] for ref in refs}
        self._short = wide if any(values[ref].dtype == torch.bfloat16 for ref in refs) else None
        self._reach = _reach(node, wide)
        self._slope = _slope_of_sums(node, wide) if node.operation in SUMS and not node.keywords else None
        self._slope = self._slope or _drawn_slope(node, wide)

    def is_beyond(self, output: int, canonical: Tensor, native: Tensor, is_drawn: bool) -> Tensor:
        """A mask of the elements whose difference is more than rounding explains.

        Of bfloat16, torch rounds partial sums as well, on each processor other ones: without AVX-512 those over samples
        and over places of the kernel in the gradients of a convolution; everywhere those over rows in a layer norm's,
        over equal tokens in an embedding's, over windows in a pooling's. Such a sum stops growing at 256 equal terms,
        so that no bound covers it which an error would not pass. What is far from torch's result has therefore to be
        the operation in binary64, rounded once.
        """
        unit = BFLOAT16_UNIT if native.dtype == torch.bfloat16 else BINARY32_UNIT
        beyond = self._is_beyond(output, canonical, native, is_drawn, unit)
        if bool(beyond.any()) and self._exact is not None:
            once = self._exact[output].to(native.dtype)
            beyond &= self._is_beyond(output, canonical, once, is_drawn, BINARY32_UNIT, last=unit)
        return beyond

    @cached_property
    def _exact(self) -> list[Tensor] | None:
        return None if self._short is None else _in_binary64(self._node, self._short)

    def _is_beyond(
        self, output: int, canonical: Tensor, native: Tensor, is_drawn: bool, unit: float, last: float = 0.0
    ) -> Tensor:
        """The mask for roundings to `unit` within the operation and one to `last` at its end."""
        one, other = canonical.double(), native.double()
        size = torch.maximum(one.abs(), other.abs())
        if self._slope is None:
            finite = other[torch.isfinite(other)]
            scale = finite.abs().max() if finite.numel() else torch.zeros((), dtype=torch.float64)
            return torch.isfinite(other) & ~((one - other).abs() <= _SAFETY * self._terms * unit * scale)
        slope = self._slope[output]
        allowed = last * size + _SAFETY * (
            unit * size + BINARY32_UNIT * self._terms * (slope + torch.minimum(one.abs(), other.abs()))
        )
        if self._reach is not None and output == 0:
            allowed = allowed + _SAFETY * unit * self._reach
        far = ~((one - other).abs() <= allowed)
        # Where the exact result is not finite, torch differs between machines; one finite result of the two is wrong.
        mixed = torch.isfinite(one) != torch.isfinite(other)
        small = torch.where(torch.isfinite(one), one.abs(), other.abs()) < 1e37
        return torch.where(torch.isfinite(slope), far, mixed & small & is_drawn)


def _reach(node: AtenNode, operands: Mapping[Ref, Tensor]) -> Tensor | None:
    """The size of the terms that cancel within an operation, for its first result; None if none do."""
    tensors = [operands[argument] for argument in node.arguments if isinstance(argument, Ref)]
    extent = node.arguments[2] if len(node.arguments) > 2 else None
    if node.operation == LOG_SOFTMAX_BACKWARD:
        gradient, result = tensors
        assert isinstance(extent, int)
        return gradient.abs() + result.exp() * gradient.sum(extent, keepdim=True).abs()
    if node.operation == SOFTMAX_BACKWARD:
        gradient, result = tensors
        assert isinstance(extent, int)
        return result.abs() * (gradient.abs() + (gradient * result).abs().sum(extent, keepdim=True))
    if node.operation == LAYER_NORM_BACKWARD:
        weight = node.arguments[5]
        gradient, x, mean, inverse, *_ = tensors
        assert isinstance(extent, tuple)
        dims = tuple(range(-len(extent), 0))
        return _reach_of_norm(gradient, _weight(weight, operands), x, mean, inverse, dims)
    if node.operation == BATCH_NORM_BACKWARD and node.arguments[7]:
        gradient, x, *_ = tensors
        mean, inverse = tensors[-2:]  # of the batch; running ones may stand before
        each = (1, -1, *[1] * (x.dim() - 2))  # of a channel
        dims = tuple(place for place in range(x.dim()) if place != 1)
        factor = _weight(node.arguments[2], operands).reshape(each)
        return _reach_of_norm(gradient, factor, x, mean.reshape(each), inverse.reshape(each), dims)
    if node.operation == GROUP_NORM_BACKWARD:
        gradient, x, mean, inverse = tensors[:4]
        rows, channels, groups = x.shape[0], x.shape[1], mean.numel() // x.shape[0]
        factor = _weight(node.arguments[4], operands).expand(channels).reshape(1, groups, -1, 1)
        apart = [tensor.reshape(rows, groups, channels // groups, -1) for tensor in (gradient, x)]
        mean, inverse = mean.reshape(rows, groups, 1, 1), inverse.reshape(rows, groups, 1, 1)
        return _reach_of_norm(apart[0], factor, apart[1], mean, inverse, (2, 3)).reshape(x.shape)
    if node.operation not in UNSTABLE:
        return None
    return sum((operand.abs() for operand in operands.values()), torch.ones(()))


def _reach_of_norm(
    gradient: Tensor, weight: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, dims: tuple[int, ...]
) -> Tensor:
    terms, normalized = (gradient * weight).abs(), ((x - mean) * inverse).abs()
    return inverse * (
        terms + terms.mean(dims, keepdim=True) + normalized * (terms * normalized).mean(dims, keepdim=True)
    )


def _weight(argument: Argument, operands: Mapping[Ref, Tensor]) -> Tensor:
    return operands[argument] if isinstance(argument, Ref) else torch.ones((), dtype=torch.float64)


def _slope_of_sums(node: AtenNode, operands: Mapping[Ref, Tensor]) -> list[Tensor] | None:
    """How far random errors of the products move their sum: the root of the sum of their squares."""
    squares = {ref: value.square() if value.is_floating_point() else value for ref, value in operands.items()}
    sums = _in_binary64(node, squares)
    return sums and [total.sqrt_() for total in sums]


def _drawn_slope(node: AtenNode, operands: Mapping[Ref, Tensor]) -> list[Tensor] | None:
    """How far drawn errors of the operands move the results; None if torch has no binary64 for the operation."""
    exact = _in_binary64(node, operands)
    if exact is None:
        return None
    slopes = [torch.zeros_like(value) for value in exact]
    errors = DrawnErrors(0, torch.float64)
    for _ in range(_DRAWS):
        drawn = {ref: errors.applied(v, _NUDGE) if v.is_floating_point() else v for ref, v in operands.items()}
        moved = _in_binary64(node, drawn, 1.0 + _NUDGE if node.operation in SHARES else 1.0)
        if moved is None:
            raise AssertionError("an operation that took binary64 takes it again")
        for slope, there, here in zip(slopes, moved, exact, strict=True):
            torch.maximum(slope, (there - here).abs_().div_(_NUDGE), out=slope)
    return slopes


def _in_binary64(node: AtenNode, operands: Mapping[Ref, Tensor], factor: float = 1.0) -> list[Tensor] | None:
    """The results of the operation on these operands, or None if torch has none in binary64.

    Numbers among the arguments are multiplied by the factor.
    """

    def argument(given: Argument) -> Any:
        if isinstance(given, float):
            return given * factor
        return resolved(
            given, lambda ref: operands[ref], lambda dtype: torch.float64 if dtype.is_floating_point else dtype
        )

    arguments = [argument(item) for item in node.arguments]
    keywords = {name: argument(item) for name, item in node.keywords}
    try:
        return [tensor.double() for tensor in results_of(node.operation, arguments, keywords)]
    except (RuntimeError, TypeError, NotImplementedError):
        return None


UNIT = 2.0**-22
"""Relative change of an operand, four times the rounding of binary32, since both executions have errors."""
BFLOAT_UNIT = 2.0**-8
"""The same for bfloat16, one unit: a sum close to a tie is rounded either way."""
_LONGEST = 512
"""The most terms that torch or a program adds one after another; longer folds are split."""


class NoisyExecutor(NativeExecutor):
    """Steps of an ATen graph whose operands have drawn relative errors; `terms` are the lengths of its folds."""

    def __init__(self, graph: AtenGraph, terms: Mapping[str, int], seed: int) -> None:
        super().__init__(graph)
        self._terms = terms
        self._errors = DrawnErrors(seed, torch.float32)

    def call(self, node: AtenNode, values: Mapping[int, tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The results of operands with drawn relative errors."""
        if node.operation in EXACT or not any(type_.dtype in {"float32", "bfloat16"} for type_ in node.outputs):
            return super().call(node, values)
        size = UNIT * math.sqrt(min(self._terms.get(node.name, 1), _LONGEST))
        refs = references(node.all_arguments)
        moved = {
            number: tuple(self._moved(tensor, size) for tensor in values[number]) for number in {r.value for r in refs}
        }
        return super().call(node, moved)

    def _moved(self, tensor: Tensor, size: float) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        if tensor.dtype == torch.bfloat16:
            size = max(size, BFLOAT_UNIT)
        return self._errors.applied(tensor, size)
