"""What stands in a training loop for what an exact step doesn't compute on the way; every use of it is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from torch import Tensor

from pol.errors import UnsupportedError
from pol.graph.capture.guards.reachable_objects import is_plain

_OUTPUT = (
    "the output of the model is not computed in own_loop(), and only the loss can take it: name the loss by `with "
    "step.own_loop() as loss:` and call loss(model(x), target); put what happens in between into the model or the "
    "loss, and evaluate under torch.no_grad()"
)
_GRADIENT = (
    "an exact step keeps no gradients: leave out the line that reads or changes them, and give pol.Loop what it does "
    "(clip_norm, clip_value, accumulation), or another optimizer's parameters to the step's optimizer as a group; call "
    "zero_grad() without set_to_none=False, and once before each backward()"
)
_OPERATORS = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "pow", "rpow", "matmul"),
    *("rmatmul", "neg", "pos", "abs", "invert", "and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge", "bool", "int"),
    *("float", "index", "len", "iter", "getitem", "setitem", "contains", "str", "repr", "format", "call", "array"),
)


class UnknownGradient(Tensor):
    """Stands in ``.grad`` of a parameter from backward() to zero_grad()."""

    @classmethod
    def of(cls, parameter: Tensor) -> UnknownGradient:
        """The stand-in for the gradient of a parameter."""
        made: UnknownGradient = Tensor._make_wrapper_subclass(cls, parameter.shape, dtype=parameter.dtype)
        return made

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        """Refuse a function of torch."""
        raise UnsupportedError(_GRADIENT)

    @classmethod
    def __torch_dispatch__(cls, *given: Any, **named: Any) -> NoReturn:
        """Refuse an operation that autograd begins: another gradient is added."""
        raise UnsupportedError(_GRADIENT)


class DeferredOutput:
    """Stands for the output of the model, until the loss takes it.

    Args:
        loss: computes the loss of the output and a target.
        function: is called with the output for this loss, if it's one of torch's own functions.
    """

    is_waiting = True
    """Whether no loss has taken it. Until then not even its class is told: a loop may do something else for a tuple."""

    def __init__(self, loss: Callable[..., Any], function: object) -> None:
        object.__setattr__(self, "_call", (loss, function))

    def __getattribute__(self, name: str) -> Any:
        if name != "__torch_function__" and object.__getattribute__(self, "is_waiting"):
            raise UnsupportedError(_OUTPUT)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> NoReturn:
        raise _UnknownAttributeError(_OUTPUT)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Compute the loss if it is this function; refuse any other."""
        for output in args[:1]:
            if type(output) is cls:
                loss, function = object.__getattribute__(output, "_call")
                if func is function:
                    return loss(*_arguments(func, args, kwargs or {}))
        raise UnsupportedError(_OUTPUT)


class _UnknownAttributeError(UnsupportedError, AttributeError):
    """Also what `hasattr` expects, for tools that look at all objects of a program."""


def _refuse(output: DeferredOutput, *given: object) -> NoReturn:
    raise UnsupportedError(_OUTPUT)


for _name in _OPERATORS:
    setattr(DeferredOutput, f"__{_name}__", _refuse)


def _arguments(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call of a loss function of torch without those that are at their defaults."""
    signature = inspect.signature(function)
    bound = signature.bind(*given, **named).arguments
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    return [value for name, value in bound.items() if not _is_default(value, defaults[name])]


def _is_default(value: object, default: object) -> bool:
    return value is default or (is_plain(default) and is_plain(value) and value == default)
