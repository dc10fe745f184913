"""Replaces torch's random operations by draws from a counter-based generator, which a step program can hold.

The draws are operations of their own, `pol::uniform`, `pol::normal`, `pol::bernoulli` and `pol::integers`
(docs/spec/randomness.md). Here they have shapes only; pol.execution.stock_torch.torch_random implements them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import traceback as fx_traceback
from torch.utils._python_dispatch import TorchDispatchMode

from pol.errors import UnsupportedError
from pol.graph.capture.tracing.drawn_distributions import DISTRIBUTIONS
from pol.graph.capture.tracing.provenance import SOURCE
from pol.graph.lowering import advice

LIBRARY = torch.library.Library("pol", "DEF")  # type: ignore[no-untyped-call]  # torch declares no types
DTYPES: Mapping[str, torch.dtype] = {
    "uniform": torch.float32,
    "normal": torch.float32,
    "bernoulli": torch.bool,
    "integers": torch.int64,
}
"""The dtype of each draw, by the name of its operation."""
_PARAMETERS = {
    "uniform": "float low, float high",
    "normal": "float mean, float std",
    "bernoulli": "float p",
    "integers": "int low, int high",
}
IN_BACKWARD = (
    "draws random numbers in the backward pass that are not those of the forward pass: leave preserve_rng_state=True "
    "of torch.utils.checkpoint, and no hook that draws"
)
OWN_SEED = (
    "the model or the loss sets the seed of torch's generator: leave that out, the random numbers of a task come from "
    "its seed, and are the same in every run"
)
_MARK = 0x706F6C << 32
"""The seed of torch's generator while draws are counted: this mark, and the next ordinal below it."""


def _shaped(name: str) -> Callable[..., Tensor]:
    def shaped(
        step: Tensor, seed: Tensor, ordinal: int, shape: Sequence[int], *_: object, device: Any = None
    ) -> Tensor:
        return torch.empty(tuple(shape), dtype=DTYPES[name], device=device or step.device)

    return shaped


for _name, _parameters in _PARAMETERS.items():
    LIBRARY.define(  # type: ignore[no-untyped-call]  # torch declares no types
        f"{_name}(Tensor step, Tensor seed, int ordinal, SymInt[] shape, {_parameters}, *, Device? device=None)"
        " -> Tensor",
        tags=(torch.Tag.pt2_compliant_tag,),
    )
    torch.library.register_fake(f"pol::{_name}", _shaped(_name), lib=LIBRARY)


def seed_words(seed: int) -> Tensor:
    """The constant tensor `seed` of a task: the low and the high word of 64 bits, as int32.

    Raises UnsupportedError unless the seed is an integer of 64 bits.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise UnsupportedError(f"the seed is a {type(seed).__name__}: it has to be an integer") from None
    if not 0 <= number < 2**64:
        raise UnsupportedError(f"the seed {number} is not in 0 .. 2^64-1")
    words = [number % 2**32, number >> 32]
    return torch.tensor([word - 2**32 if word >= 2**31 else word for word in words], dtype=torch.int32)


class CounterRandomness(TorchDispatchMode):
    """While active, every random operation of torch is a draw of one step: the first has ordinal 0, the next 1, ...

    The next ordinal stands in the state of torch's own generator, which is put back at the end: code that keeps and
    restores that state (torch.utils.checkpoint, torch.random.fork_rng) draws the same numbers again, as in torch.

    `step` is an int64 scalar, `seed` the two words of a seed. Raises UnsupportedError, in a capture with the user's
    line, for an operation that has no draw, for an explicit generator, and in a backward pass that repeats no draw.
    """

    def __init__(self, step: Tensor, seed: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types
        self.ordinal = 0
        """The next one, while the mode is not active."""
        self._step = step
        self._seed = seed
        self._drawn: dict[int, tuple[Any, ...]] = {}
        self._outside: list[Tensor] = []

    def __enter__(self) -> Self:
        self._outside.append(torch.default_generator.get_state())
        torch.default_generator.manual_seed(_MARK + self.ordinal)
        return super().__enter__()  # type: ignore[no-any-return, no-untyped-call]  # torch declares no types

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch declares no types
        ordinal = self._next()
        torch.default_generator.set_state(self._outside.pop())
        if ordinal is None and error[0] is None:
            raise _refusal(OWN_SEED)
        self.ordinal = self.ordinal if ordinal is None else ordinal

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, or its draw."""
        keywords = kwargs or {}
        if not _may_draw(func):
            return func(*args, **keywords)
        rule = _RULES.get(str(func))
        given = _bound(func, args, keywords)
        if rule is None and not draws(func, given):
            return func(*args, **keywords)
        if given.get("generator") is not None:
            raise _refusal(
                f"{func} draws from a torch.Generator of its own: leave the generator out, the numbers of a task come "
                "from its seed"
            )
        if rule is None:
            raise _refusal(f"{func} draws random numbers in a way that has no definition: {advice.RANDOM}")
        return rule(self, given)

    def draw(self, name: str, shape: Sequence[int], device: Any, *parameters: float) -> Tensor:
        """The next draw: `pol::name` of the given shape."""
        operation = getattr(torch.ops.pol, name).default
        ordinal = self._next()
        if ordinal is None:
            raise _refusal(OWN_SEED)
        call = (name, tuple(shape), parameters)
        if torch._C._current_graph_task_id() == -1:
            self._drawn[ordinal] = call
        elif self._drawn.get(ordinal) != call:
            raise _refusal(f"{operation} {IN_BACKWARD}")
        torch.default_generator.manual_seed(_MARK + ordinal + 1)
        drawn: Tensor = operation(self._step, self._seed, ordinal, list(shape), *parameters, device=device)
        return drawn

    def _next(self) -> int | None:
        """The ordinal in the state of torch's generator; None where the code has set another seed."""
        ordinal = torch.default_generator.initial_seed() - _MARK
        return ordinal if 0 <= ordinal < 1 << 32 else None


@cache  # a trace asks about four times for each operation
def _may_draw(operation: OpOverload) -> bool:
    return str(operation) in _RULES or torch.Tag.nondeterministic_seeded in operation.tags


def draws(operation: OpOverload, given: Mapping[str, Any]) -> bool:
    """Whether an operation of torch draws random numbers; fused attention counts only where it drops out."""
    if torch.Tag.nondeterministic_seeded not in operation.tags:
        return False
    return "_scaled_dot_product" not in str(operation) or bool(given.get("dropout_p", 0.0))


def _refusal(what: str) -> UnsupportedError:
    line = (fx_traceback.get_current_meta().get("custom") or {}).get(SOURCE)
    return UnsupportedError(f"{line} -- {what}" if line else what)


def _bound(operation: OpOverload, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their names, defaults included."""
    schema = operation._schema.arguments
    given = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    given |= {argument.name: value for argument, value in zip(schema, args, strict=False)}
    return given | dict(keywords)


_Rule = Callable[[CounterRandomness, Mapping[str, Any]], Any]


def _created(name: str, *parameters: str | float) -> _Rule:
    """A new tensor: of `size`, or like `self`."""

    def rule(mode: CounterRandomness, given: Mapping[str, Any]) -> Tensor:
        like = given.get("self")
        shape = given["size"] if like is None else like.shape
        device = given.get("device") or (None if like is None else like.device)
        default = torch.int64 if name == "integers" else torch.get_default_dtype()
        dtype = given.get("dtype")
        if not isinstance(dtype, torch.dtype):  # a schema states its default as a number
            dtype = default if like is None else like.dtype
        device = torch.get_default_device() if device is None else device
        drawn = mode.draw(name, shape, device, *(given[p] if isinstance(p, str) else p for p in parameters))
        return _as(drawn, dtype)

    return rule


def _filled(name: str, *parameters: str | float) -> _Rule:
    """An existing tensor gets new numbers."""
    create = _created(name, *parameters)

    def rule(mode: CounterRandomness, given: Mapping[str, Any]) -> Tensor:
        target: Tensor = given["self"]
        return target.copy_(create(mode, {**given, "dtype": None, "device": None}))

    return rule


def _as(drawn: Tensor, dtype: torch.dtype) -> Tensor:
    return drawn if drawn.dtype == dtype else drawn.to(dtype)


def _by_probabilities(mode: CounterRandomness, shape: Sequence[int], p: Tensor) -> Tensor:
    return mode.draw("uniform", shape, p.device, 0.0, 1.0) < p


def _bernoulli(mode: CounterRandomness, given: Mapping[str, Any]) -> Tensor:
    p: Tensor = given["self"]
    return _by_probabilities(mode, p.shape, p).to(p.dtype)


def _bernoulli_in_place(mode: CounterRandomness, given: Mapping[str, Any]) -> Tensor:
    target: Tensor = given["self"]
    return target.copy_(_by_probabilities(mode, target.shape, given["p"]).to(target.dtype))


def _normal_of_tensors(mode: CounterRandomness, given: Mapping[str, Any]) -> Tensor:
    mean, std = given["mean"], given["std"]
    tensors = [item for item in (mean, std) if isinstance(item, Tensor)]
    shape = torch.broadcast_tensors(*tensors)[0].shape  # type: ignore[no-untyped-call]  # torch declares no types
    drawn = mode.draw("normal", shape, tensors[0].device, 0.0, 1.0)
    numbers: Tensor = _as(drawn, tensors[0].dtype) * std + mean
    return numbers


def _dropout(mode: CounterRandomness, given: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    values, p = given["input"], given["p"]
    if given["train"] is False:
        return values.clone(), torch.ones_like(values, dtype=torch.bool)
    mask = mode.draw("bernoulli", values.shape, values.device, 1.0 - p)
    return values * (mask.to(values.dtype) * (1.0 / (1.0 - p) if p < 1.0 else 0.0)), mask


_RULES: Mapping[str, _Rule] = {
    **DISTRIBUTIONS,
    "aten.rand.default": _created("uniform", 0.0, 1.0),
    "aten.rand_like.default": _created("uniform", 0.0, 1.0),
    "aten.uniform.default": _created("uniform", "from", "to"),
    "aten.uniform_.default": _filled("uniform", "from", "to"),
    "aten.randn.default": _created("normal", 0.0, 1.0),
    "aten.randn_like.default": _created("normal", 0.0, 1.0),
    "aten.normal_functional.default": _created("normal", "mean", "std"),
    "aten.normal_.default": _filled("normal", "mean", "std"),
    "aten.normal.float_float": _created("normal", "mean", "std"),
    **dict.fromkeys(
        (f"aten.normal.{overload}" for overload in ("Tensor_float", "float_Tensor", "Tensor_Tensor")),
        _normal_of_tensors,
    ),
    "aten.bernoulli.default": _bernoulli,
    "aten.bernoulli.p": _created("bernoulli", "p"),
    "aten.bernoulli_.float": _filled("bernoulli", "p"),
    "aten.bernoulli_.Tensor": _bernoulli_in_place,
    "aten.randint.default": _created("integers", 0, "high"),
    "aten.randint.low": _created("integers", "low", "high"),
    "aten.randint_like.default": _created("integers", 0, "high"),
    "aten.randint_like.low_dtype": _created("integers", "low", "high"),
    "aten.random_.from": _filled("integers", "from", "to"),
    "aten.random_.to": _filled("integers", 0, "to"),
    "aten.native_dropout.default": _dropout,
}
"""The draw of each random operation of torch."""
