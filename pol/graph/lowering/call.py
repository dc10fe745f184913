"""The arguments of one ATen operation, by position or keyword, with their types checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pol.errors import ProtocolError, UnsupportedError
from pol.graph.aten_graph import WORD_TYPES, Argument, AtenNode, AtenType, Ref
from pol.graph.lowering.emitter import Emitter
from pol.graph.lowering.values import Value, View
from pol.graph.tensor_type import DType


@dataclass(frozen=True)
class Call:
    """An operation to lower. The accessors raise ProtocolError for an argument of another kind."""

    emitter: Emitter
    node: AtenNode
    values: Mapping[Ref, Value]
    types: Mapping[Ref, AtenType]

    @property
    def output(self) -> AtenType:
        """The type of the first output."""
        return self.node.outputs[0]

    @property
    def dtype(self) -> DType:
        """The word type of the first output."""
        return WORD_TYPES[self.output.dtype]

    def argument(self, position: int, name: str = "", default: Argument = None) -> Argument:
        """The argument as it stands, or the default."""
        if position < len(self.node.arguments):
            return self.node.arguments[position]
        return dict(self.node.keywords).get(name, default)

    def operand(self, position: int) -> Value | float:
        """A tensor or a number."""
        return self.as_operand(self.argument(position))

    def as_operand(self, value: Argument) -> Value | float:
        """An argument that is a tensor or a number."""
        return self.values[value] if isinstance(value, Ref) else _number(value)

    def operands(self) -> list[Value | float]:
        """All arguments by position, tensors or numbers."""
        return [self.as_operand(argument) for argument in self.node.arguments]

    def tensor(self, position: int) -> Value:
        """A tensor."""
        value = self.argument(position)
        if not isinstance(value, Ref):
            raise ProtocolError(f"argument {position} of {self.node.operation} is not a tensor: {value!r}")
        return self.values[value]

    def shaped(self, position: int, shape: Sequence[int]) -> Value:
        """A tensor of this shape; ProtocolError for another one: torch's kernels read all its words, if they exist."""
        value = self.tensor(position)
        if value.shape != tuple(shape):
            raise ProtocolError(f"argument {position} of {self.node.operation} has shape {value.shape}, not {shape}")
        return value

    def floats(self, position: int) -> View:
        """A float32 tensor as words in memory; UnsupportedError for another one."""
        value = self.tensor(position)
        if value.dtype is not DType.F32:
            raise self.unsupported("only float32 is defined")
        return self.emitter.view(value)

    def tensors(self, position: int) -> tuple[Value, ...]:
        """A list of tensors."""
        value = self.argument(position)
        if not isinstance(value, tuple) or not value or not all(isinstance(item, Ref) for item in value):
            raise ProtocolError(f"argument {position} of {self.node.operation} is not a list of tensors: {value!r}")
        return tuple(self.values[item] for item in value if isinstance(item, Ref))

    def torch_dtype(self, position: int) -> str:
        """The torch dtype of a tensor argument."""
        value = self.argument(position)
        if not isinstance(value, Ref):
            raise ProtocolError(f"argument {position} of {self.node.operation} is not a tensor: {value!r}")
        return self.types[value].dtype

    def integer(self, position: int, name: str = "", default: int | None = None) -> int:
        """An integer."""
        value = self.argument(position, name, default)
        if type(value) is not int:
            raise ProtocolError(f"argument {position} of {self.node.operation} is not an integer: {value!r}")
        return value

    def number(self, position: int, name: str = "", default: float | None = None) -> float:
        """A number; integers stay integers."""
        return _number(self.argument(position, name, default))

    def integers(self, position: int, name: str = "", default: Sequence[int] = ()) -> tuple[int, ...]:
        """A list of integers, or one integer; the default stands also for None."""
        value = self.argument(position, name)
        if value is None:
            return tuple(default)
        if type(value) is int:
            return (value,)
        if not isinstance(value, tuple):
            raise ProtocolError(f"argument {position} of {self.node.operation} is not a list: {value!r}")
        result = [item for item in value if type(item) is int]
        if len(result) != len(value):
            raise ProtocolError(f"argument {position} of {self.node.operation} holds more than integers: {value!r}")
        return tuple(result)

    def flag(self, position: int, name: str = "", default: bool = False) -> bool:
        """A boolean."""
        value = self.argument(position, name, default)
        if not isinstance(value, bool):
            raise ProtocolError(f"argument {position} of {self.node.operation} is not a boolean: {value!r}")
        return value

    def chosen(self, results: Sequence[Value], position: int) -> tuple[Value, ...]:
        """Those of the results that a mask of booleans asks for: the others are no outputs of the node."""
        mask = self.argument(position)
        if not isinstance(mask, tuple) or len(mask) != len(results):
            raise ProtocolError(f"argument {position} of {self.node.operation} is not a mask: {mask!r}")
        return tuple(result for result, is_wanted in zip(results, mask, strict=True) if is_wanted)

    def unsupported(self, what: str) -> UnsupportedError:
        """An error that names the operation and the user's line."""
        return UnsupportedError(f"{self.node.source or self.node.name} -- {self.node.operation}: {what}")


def _number(value: Argument) -> float:
    if not isinstance(value, bool | int | float):
        raise ProtocolError(f"a number is needed, not {value!r}")
    return value
