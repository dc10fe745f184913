"""Complex numbers as pairs of reals: every operation on complex tensors by operations on real ones.

A complex tensor of shape S is a real one of shape (*S, 2), as torch.view_as_real shows it, so writes in place and views
stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.utils._pytree import tree_any, tree_map

from pol.errors import UnsupportedError


@dataclass(frozen=True)
class Pairs:
    """A complex tensor as the real one of its pairs."""

    tensor: Tensor

    @property
    def real(self) -> Tensor:
        """The real parts, a view."""
        return self.tensor.select(-1, 0)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, a view."""
        return self.tensor.select(-1, 1)

    @property
    def rank(self) -> int:
        """The number of dimensions of the complex tensor."""
        return self.tensor.dim() - 1

    def axis(self, dim: int) -> int:
        """A dimension of the complex tensor, counted from the front."""
        return dim % max(self.rank, 1)


Operand: TypeAlias = "Pairs | Tensor | complex"
_MAKERS = frozenset(f"aten.{name}.default" for name in ("view_as_complex", "complex", "polar", "_fft_r2c"))
"""Operations that make complex numbers of real ones."""
COMPLEX = frozenset({torch.complex32, torch.complex64, torch.complex128})


def pairs_of(real: Tensor, imag: Tensor) -> Pairs:
    """Real and imaginary parts, broadcast, as pairs."""
    return Pairs(torch.stack(torch.broadcast_tensors(real, imag), -1))  # type: ignore[no-untyped-call]  # torch declares no types


def constant_pairs(graph: GraphModule) -> dict[str, Pairs]:
    """The complex tensors outside of a graph, by attribute."""
    names = {str(node.target) for node in graph.graph.nodes if node.op == "get_attr"}
    tensors = {name: getattr(graph, name) for name in names}
    return {
        name: Pairs(torch.view_as_real(tensor.detach().resolve_conj()).contiguous())
        for name, tensor in tensors.items()
        if isinstance(tensor, Tensor) and tensor.is_complex()
    }


def is_complex_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an operation reads or makes complex numbers."""
    return str(target) in _MAKERS or tree_any(_is_complex, (tuple(args), dict(kwargs)))


def _is_complex(value: object) -> bool:
    if isinstance(value, Pairs | complex):
        return True
    return value in COMPLEX if isinstance(value, torch.dtype) else False


def complex_call(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], source: str) -> Any:
    """The result of an operation on complex numbers; UnsupportedError, with the user's line, without a definition."""
    name = str(target).removeprefix("aten.")
    packet = name.partition(".")[0]
    rule = RULES.get(name) or RULES.get(packet)
    options = {key: value for key, value in kwargs.items() if key not in _PLACEMENT}
    if packet in LINEAR and options.get("dtype") in COMPLEX:
        del options["dtype"]
    if rule is not None:
        try:
            result = rule(*args, **options)
        except UnsupportedError as error:
            raise UnsupportedError(f"{source} -- {error}") from error
        if result is not NotImplemented:
            return result
    if packet in LINEAR:
        real, imag = (target(*tree_map(part, args), **tree_map(part, options)) for part in (_real_part, _imag_part))
        return pairs_of(real, imag) if isinstance(real, Tensor) else list(map(pairs_of, real, imag))
    raise UnsupportedError(
        f"{source} -- {target} of complex numbers has no definition in pol: compute with real and imaginary parts "
        "(torch.view_as_real), which are pairs of float32 numbers"
    )


def _real_part(value: Any) -> Any:
    return value.real if isinstance(value, Pairs) else value


def _imag_part(value: Any) -> Any:
    return value.imag if isinstance(value, Pairs) else value


_PLACEMENT = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking"})
LINEAR = frozenset(
    (
        "neg", "sum", "mean", "cumsum", "index_select", "gather", "constant_pad_nd", "slice_backward",
        "select_backward", "tril", "triu", "roll", "flip", "repeat", "index", "cat", "stack",
        "diagonal", "diagonal_backward", "index_add", "scatter_add", "index_put", "embedding",
        "embedding_dense_backward", "unsafe_split", "trace",
    )
)  # fmt: skip
"""Operations that treat real and imaginary parts alike and apart."""
Rule: TypeAlias = Callable[..., Any]
RULES: dict[str, Rule] = {}


F = TypeVar("F", bound=Rule)


def rule(*names: str) -> Callable[[F], F]:
    """Make the decorated function the rule of operations, by name with or without overload."""

    def entered(function: F) -> F:
        RULES.update(dict.fromkeys(names, function))
        return function

    return entered


def parts_of(value: Operand) -> tuple[Any, Any]:
    """Real and imaginary part; the latter is None for a real number."""
    if isinstance(value, Pairs):
        return value.real, value.imag
    if isinstance(value, complex):
        return value.real, value.imag if value.imag else None
    return value, None


def as_pairs(value: Operand, like: Tensor) -> Pairs:
    """A number or a real tensor as pairs."""
    if isinstance(value, Pairs):
        return value
    real, imag = (torch.full_like(like, part) if isinstance(part, int | float) else part for part in parts_of(value))
    return pairs_of(real, torch.zeros_like(real) if imag is None else imag)


def require_single(dtype: torch.dtype | None) -> None:
    """Raises UnsupportedError for complex numbers that aren't pairs of float32."""
    if dtype not in {None, torch.complex64}:
        raise UnsupportedError(
            f"{dtype} has no definition in pol: complex numbers are pairs of float32, torch.complex64"
        )
