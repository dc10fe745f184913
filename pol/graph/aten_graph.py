"""The captured step as a flat record of ATen operations: pure data, with its JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from pol.errors import ProtocolError
from pol.format_versions import other_version
from pol.graph.step_program import Component
from pol.graph.tensor_type import MAX_RANK, DType, TensorType

VERSION = 1
LOWERING_VERSION = 4
"""The version of the lowering from graph to step program; it rises when any graph would give another program."""
MAX_NESTING = 2
MAX_DIGITS = 20
NARROW = {"uint8": (0, 2**8 - 1), "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1)}
"""Integers of fewer bits than a word, with the least and the greatest: results wrap into this range."""
WORD_TYPES = {
    "float32": DType.F32,
    "bfloat16": DType.F32,
    **dict.fromkeys(("int64", "int32", "bool", *NARROW), DType.I32),
}
"""Which torch dtypes have words, and how a word holds them (docs/spec/commitments.md, "Tensor")."""


class InputRole(StrEnum):
    """The role of an input of the graph."""

    STATE = "state"
    CONSTANT = "constant"
    STEP = "step"


@dataclass(frozen=True)
class AtenType:
    """A tensor as torch sees it; the dtype is one of WORD_TYPES."""

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in WORD_TYPES:
            raise ProtocolError(f"a tensor of dtype {self.dtype!r} has no words; use {', '.join(WORD_TYPES)}")
        if len(self.shape) > MAX_RANK:
            raise ProtocolError(f"shape {self.shape} has more than {MAX_RANK} dimensions")
        TensorType(WORD_TYPES[self.dtype], self.shape)

    @property
    def words(self) -> TensorType:
        """The type of the tensor of words that holds it."""
        return TensorType(WORD_TYPES[self.dtype], self.shape)


@dataclass(frozen=True)
class Ref:
    """An output of an earlier value; inputs of the graph come first, then its nodes."""

    value: int
    output: int = 0


@dataclass(frozen=True)
class TorchDType:
    """A dtype passed as an argument."""

    name: str


Argument: TypeAlias = "Ref | TorchDType | bool | int | float | str | tuple[Argument, ...] | None"


@dataclass(frozen=True)
class AtenInput:
    """An input tensor: a slot of the state, a constant, or the step number (a scalar)."""

    role: InputRole
    name: str
    type: AtenType
    component: Component | None = None
    scale: int = 0


@dataclass(frozen=True)
class AtenNode:
    """One ATen operation, e.g. "aten.addmm.default", with a readable name and the user's line."""

    operation: str
    arguments: tuple[Argument, ...]
    keywords: tuple[tuple[str, Argument], ...]
    outputs: tuple[AtenType, ...]
    name: str
    source: str

    @property
    def all_arguments(self) -> tuple[Argument, ...]:
        """Arguments and values of keywords."""
        return (*self.arguments, *(value for _, value in self.keywords))


@dataclass(frozen=True)
class AtenGraph:
    """One optimizer step on tensors: inputs in the order state slots, constants, step; nodes in topological order.

    `next_state` gives the new value of every slot, `observed` the tensors to report (the loss).
    Raises ProtocolError if a reference does not point back or the state does not keep its types.
    """

    inputs: tuple[AtenInput, ...]
    nodes: tuple[AtenNode, ...]
    next_state: tuple[Ref, ...]
    observed: tuple[tuple[str, Ref], ...]

    def __post_init__(self) -> None:
        roles = [entry.role for entry in self.inputs]
        slots = len(self.slots)
        expected = [InputRole.STATE] * slots + [InputRole.CONSTANT] * (len(roles) - slots - 1) + [InputRole.STEP]
        if roles != expected:
            raise ProtocolError("the inputs of an ATen graph are its state slots, its constants and one step, in order")
        if self.inputs[-1].type != AtenType("int64", ()):
            raise ProtocolError("the step of an ATen graph is an int64 scalar")
        for position, node in enumerate(self.nodes):
            for reference in references(node.all_arguments):
                self._check(reference, len(self.inputs) + position)
        for reference in (*self.next_state, *(reference for _, reference in self.observed)):
            self._check(reference, len(self.inputs) + len(self.nodes))
        if [self.type_of(ref) for ref in self.next_state] != [entry.type for entry in self.slots]:
            raise ProtocolError("the next state of an ATen graph does not have the types of its state")
        if any((entry.role is InputRole.STATE) != (entry.component is not None) for entry in self.inputs):
            raise ProtocolError("exactly the state slots of an ATen graph have a component")
        if any(entry.scale and entry.role is not InputRole.STATE for entry in self.inputs):
            raise ProtocolError("only the state slots of an ATen graph have a scale")

    @property
    def slots(self) -> tuple[AtenInput, ...]:
        """The inputs that are state."""
        return tuple(entry for entry in self.inputs if entry.role is InputRole.STATE)

    @property
    def constants(self) -> tuple[AtenInput, ...]:
        """The inputs that are constants."""
        return tuple(entry for entry in self.inputs if entry.role is InputRole.CONSTANT)

    def type_of(self, reference: Ref) -> AtenType:
        """The type of a value."""
        if reference.value < len(self.inputs):
            return self.inputs[reference.value].type
        return self.nodes[reference.value - len(self.inputs)].outputs[reference.output]

    def to_dict(self) -> dict[str, Any]:
        """A document that canonical JSON can hold: numbers stand in strings, floats in hexadecimal."""
        return {
            "version": VERSION,
            "lowering": LOWERING_VERSION,
            "inputs": [_input_out(entry) for entry in self.inputs],
            "nodes": [_node_out(node) for node in self.nodes],
            "next_state": [_out(reference) for reference in self.next_state],
            "observed": {name: _out(reference) for name, reference in self.observed},
        }

    @classmethod
    def from_dict(cls, document: object) -> AtenGraph:
        """The graph in an untrusted document; ProtocolError unless it is well-formed."""
        if isinstance(document, dict):
            for member, known in (("version", VERSION), ("lowering", LOWERING_VERSION)):
                if document.get(member) != known:
                    raise ProtocolError(other_version(f"{member} of the ATen graph", document.get(member), known))
        fields = _object(document, {"version", "lowering", "inputs", "nodes", "next_state", "observed"})
        observed = fields["observed"]
        if not isinstance(observed, dict):
            raise ProtocolError("observed of an ATen graph is an object")
        return cls(
            tuple(_input_in(entry) for entry in _list(fields["inputs"])),
            tuple(_node_in(entry) for entry in _list(fields["nodes"])),
            tuple(_ref_in(entry) for entry in _list(fields["next_state"])),
            tuple((_string(name), _ref_in(entry)) for name, entry in observed.items()),
        )

    def _check(self, reference: Ref, limit: int) -> None:
        if not 0 <= reference.value < limit:
            raise ProtocolError(f"an ATen graph refers to value {reference.value} where only {limit} exist")
        first = reference.value < len(self.inputs)
        outputs = 1 if first else len(self.nodes[reference.value - len(self.inputs)].outputs)
        if not 0 <= reference.output < outputs:
            raise ProtocolError(f"value {reference.value} of an ATen graph has no output {reference.output}")


def references(arguments: tuple[Argument, ...]) -> Iterator[Ref]:
    """All references in arguments, nested ones too."""
    for argument in arguments:
        if isinstance(argument, Ref):
            yield argument
        elif isinstance(argument, tuple):
            yield from references(argument)


def _out(argument: Argument) -> Any:
    if isinstance(argument, Ref):
        return {"ref": [argument.value, argument.output]}
    if isinstance(argument, TorchDType):
        return {"dtype": argument.name}
    if isinstance(argument, tuple):
        return [_out(item) for item in argument]
    if isinstance(argument, float):
        return {"float": argument.hex()}
    if isinstance(argument, int) and not isinstance(argument, bool):
        return {"int": str(argument)}
    return argument


def _in(value: object, depth: int = 0) -> Argument:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, list) and depth < MAX_NESTING:
        return tuple(_in(item, depth + 1) for item in value)
    if not isinstance(value, dict) or len(value) != 1:
        raise ProtocolError(f"not an argument of an ATen operation: {value!r}")
    ((kind, content),) = value.items()
    if kind == "ref":
        return _ref_in(value)
    if kind == "dtype":
        return TorchDType(_string(content))
    number: int | float | None = None
    try:
        if kind == "float":
            number = float.fromhex(_string(content))
        elif kind == "int" and len(_string(content)) <= MAX_DIGITS:
            number = int(_string(content))
    except (ValueError, OverflowError) as error:
        raise ProtocolError(f"not a number: {content!r}") from error
    if number is None or _out(number) != value:
        raise ProtocolError(f"not an argument of an ATen operation: {value!r}")
    return number


def _ref_in(value: object) -> Ref:
    numbers = _list(_object(value, {"ref"})["ref"])
    if len(numbers) != 2:
        raise ProtocolError(f"a reference is [value, output], not {numbers!r}")
    return Ref(_integer(numbers[0]), _integer(numbers[1]))


def _type_out(type_: AtenType) -> dict[str, Any]:
    return {"dtype": type_.dtype, "shape": list(type_.shape)}


def _type_in(value: object) -> AtenType:
    fields = _object(value, {"dtype", "shape"})
    return AtenType(_string(fields["dtype"]), tuple(_integer(size) for size in _list(fields["shape"])))


def _input_out(entry: AtenInput) -> dict[str, Any]:
    component = None if entry.component is None else int(entry.component)
    return {
        "role": entry.role.value,
        "name": entry.name,
        "type": _type_out(entry.type),
        "component": component,
        "scale": entry.scale,
    }


def _input_in(value: object) -> AtenInput:
    fields = _object(value, {"role", "name", "type", "component", "scale"})
    try:
        role = InputRole(_string(fields["role"]))
        component = None if fields["component"] is None else Component(_integer(fields["component"]))
    except ValueError as error:
        raise ProtocolError(f"an input of an ATen graph is not well-formed: {error}") from None
    return AtenInput(role, _string(fields["name"]), _type_in(fields["type"]), component, _integer(fields["scale"]))


def _node_out(node: AtenNode) -> dict[str, Any]:
    return {
        "operation": node.operation,
        "arguments": [_out(argument) for argument in node.arguments],
        "keywords": {name: _out(argument) for name, argument in node.keywords},
        "outputs": [_type_out(type_) for type_ in node.outputs],
        "name": node.name,
        "source": node.source,
    }


def _node_in(value: object) -> AtenNode:
    fields = _object(value, {"operation", "arguments", "keywords", "outputs", "name", "source"})
    keywords = fields["keywords"]
    if not isinstance(keywords, dict):
        raise ProtocolError("keywords of an ATen operation are an object")
    return AtenNode(
        _string(fields["operation"]),
        tuple(_in(argument) for argument in _list(fields["arguments"])),
        tuple(sorted((_string(name), _in(argument)) for name, argument in keywords.items())),
        tuple(_type_in(type_) for type_ in _list(fields["outputs"])),
        _string(fields["name"]),
        _string(fields["source"]),
    )


def _object(value: object, keys: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != keys:
        raise ProtocolError(f"an object with exactly {sorted(keys)} is needed")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ProtocolError(f"a list is needed, not {type(value).__name__}")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ProtocolError(f"a string is needed, not {type(value).__name__}")
    return value


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ProtocolError(f"an integer is needed, not {type(value).__name__}")
    return value
