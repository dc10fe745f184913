"""Traces a step in torch, with gradients by autograd, into a network."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions
from torch.fx import Node as Traced
from torch.fx.experimental.proxy_tensor import make_fx

from pol.errors import OperationalError, ProtocolError
from pol.zk.circuits import CIRCUIT, NETWORK, STEP, folder
from pol.zk.fixed_point import quantize
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork, broadcast

aten = torch.ops.aten

_CHANGES_NOTHING = {
    aten.alias.default,
    aten.detach.default,
    aten.clone.default,
    aten._to_copy.default,
    aten.expand.default,
}
_UNARY = {
    aten.reciprocal.default: (NetworkOp.RECIPROCAL,),
    aten.sqrt.default: (NetworkOp.SQRT,),
    aten.rsqrt.default: (NetworkOp.SQRT, NetworkOp.RECIPROCAL),
}
_LIKE = {aten.full_like.default: None, aten.ones_like.default: 1.0, aten.zeros_like.default: 0.0}
_RESHAPES = {
    aten.view.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.reshape.default,
    aten._unsafe_view.default,
}


def trace(step: Callable[..., Tensor], inputs: dict[str, tuple[int, ...]], scale: int) -> StepNetwork:
    """The network of ``step(*inputs)``, whose first input and result are the vector that it trains.

    Raises ProtocolError for an operation that no circuit has, by its name.
    """
    generator = torch.Generator().manual_seed(0)
    samples = [torch.rand(shape, generator=generator) for shape in inputs.values()]

    def differentiated(*tensors: Tensor) -> Tensor:
        theta, *rest = tensors
        with torch.enable_grad():
            return step(theta.detach().requires_grad_(), *rest).detach()

    graph = make_fx(differentiated, decomposition_table=dict(core_aten_decompositions()))(*samples).graph
    result = graph.output_node().args[0]
    needed = _needed(result)
    writer = _NetworkWriter(scale)
    for (name, shape), traced in zip(inputs.items(), graph.find_nodes(op="placeholder"), strict=True):
        writer.of[traced] = writer.input(name, shape)
    for traced in graph.nodes:
        if traced in needed and traced.op == "get_attr":
            raise ProtocolError(f"the step reads the tensor {traced.target} from outside: make it an input")
        if traced in needed and traced.op == "call_function":
            writer.of[traced] = writer.call(traced)
    return writer.network(writer.node(result))


def _needed(result: Any) -> set[Traced]:
    """The nodes that a result is computed from, without tensors of which only the shape is used."""
    needed: set[Traced] = set()
    waiting = [result]
    while waiting:
        traced = waiting.pop()
        if traced not in needed:
            needed.add(traced)
            waiting += [] if traced.target in _LIKE else traced.all_input_nodes
    return needed


class _NetworkWriter:
    """Collects nodes. A value is the number of a node, or a tensor that is the same in every step."""

    def __init__(self, scale: int) -> None:
        self.scale = scale
        self.of: dict[Traced, int | Tensor] = {}
        self.names: list[str] = []
        self.nodes: list[NetworkNode] = []
        self._known: dict[NetworkNode, int] = {}
        self._factor: dict[int, tuple[int, Tensor]] = {}

    def input(self, name: str, shape: tuple[int, ...]) -> int:
        self.names.append(name)
        self.nodes.append(NetworkNode(NetworkOp.INPUT, tuple(shape)))
        return len(self.nodes) - 1

    def add(
        self, kind: NetworkOp, shape: Sequence[int], *operands: int, axis: int = 0, begin: int = 0, bits: int = 0
    ) -> int:
        return self._number(NetworkNode(kind, tuple(shape), operands, (), axis, begin, bits))

    def node(self, value: Any) -> int:
        if isinstance(value, Traced):
            value = self.of[value]
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return self.constant(value)

    def constant(self, value: Tensor) -> int:
        array = value.detach().to(torch.float64).numpy()
        shape = array.shape or (1,)
        # A tensor of equal numbers is one number, broadcast.
        if array.size > 1 and (array == array.ravel()[0]).all():
            array, shape = array.ravel()[:1], (1,)
        return self._number(
            NetworkNode(NetworkOp.CONSTANT, shape, (), tuple(int(x) for x in quantize(array, self.scale).ravel()))
        )

    def network(self, result: int) -> StepNetwork:
        """The network of the nodes that the result needs, in order, the result last."""
        needed = {result, *range(len(self.names))}
        for number in range(len(self.nodes) - 1, -1, -1):
            if number in needed:
                needed.update(self.nodes[number].operands)
        order = [*sorted(needed - {result}), result]
        place = {number: position for position, number in enumerate(order)}
        nodes = []
        for number in order:
            node = self.nodes[number]
            operands = tuple(place[operand] for operand in node.operands)
            nodes.append(replace(node, operands=operands))
        return StepNetwork(self.scale, tuple(self.names), tuple(nodes))

    def _number(self, node: NetworkNode) -> int:
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return self._known[node]

    def call(self, traced: Traced) -> int | Tensor:
        target: Any = traced.target
        if target in _LIKE:
            value = traced.args[1] if target is aten.full_like.default else _LIKE[target]
            return torch.full(tuple(traced.meta["val"].shape), float(cast(float, value)))
        arguments = [self._resolve(argument) for argument in traced.args]
        if not any(isinstance(argument, _NodeNumber) for argument in _flat(arguments)):
            result: Tensor = target(*arguments, **traced.kwargs)
            return result
        shape = tuple(traced.meta["val"].shape) or (1,)
        return self._written(target, arguments, shape)

    def _resolve(self, argument: Any) -> Any:
        if isinstance(argument, Traced):
            value = self.of[argument]
            return value if isinstance(value, Tensor) else _NodeNumber(value)
        if isinstance(argument, list | tuple):
            return [self._resolve(part) for part in argument]
        return argument

    def _at(self, value: Any) -> int:
        if isinstance(value, _NodeNumber):
            return value.number
        return self.constant(value if isinstance(value, Tensor) else torch.tensor(float(value)))

    def _written(self, target: Any, arguments: list[Any], shape: tuple[int, ...]) -> int:
        first = arguments[0]
        if target in _CHANGES_NOTHING:
            return self._at(first)
        if target in {aten.mul.Tensor, aten.mul.Scalar}:
            return self._multiplied(first, arguments[1], shape)
        if target in {aten.add.Tensor, aten.sub.Tensor}:
            kind = NetworkOp.ADD if target is aten.add.Tensor else NetworkOp.SUB
            a, b = self._at(first), self._at(arguments[1])
            if kind is NetworkOp.ADD and a == b and a in self._factor:
                return self._multiplied(first, 2.0, shape)
            return self.add(kind, broadcast(self.nodes[a].shape, self.nodes[b].shape), a, b)
        if target is aten.rsub.Scalar:
            b = self._at(arguments[1])
            return self.add(NetworkOp.SUB, shape, b, self._at(first))
        if target is aten.neg.default:
            return self._multiplied(first, -1.0, shape)
        if target in {aten.div.Tensor, aten.div.Scalar}:
            return self._divided(first, arguments[1], shape)
        if target in _UNARY:
            place = self._at(first)
            for operation in _UNARY[target]:
                place = self.add(operation, self.nodes[place].shape, place)
            return place
        if target is aten.pow.Tensor_Scalar and arguments[1] in {2, 3}:
            square = self._multiplied(first, first, shape)
            return square if arguments[1] == 2 else self._multiplied(_NodeNumber(square), first, shape)
        if target is aten.relu.default:
            return self.add(NetworkOp.GATE, self.nodes[self._at(first)].shape, self._at(first), self._at(first))
        if target is aten.le.Scalar and arguments[1] == 0:
            return self._at(first)
        if target is aten.where.self:
            return self._selected(*arguments)
        if target is aten.mm.default:
            return self.add(NetworkOp.MATMUL, shape, self._at(first), self._at(arguments[1]))
        if target is aten.sum.dim_IntList:
            return self._summed(self._at(first), arguments[1], shape)
        if target is aten.mean.dim:
            place = self._at(first)
            count = np.prod([self.nodes[place].shape[axis] for axis in arguments[1]])
            return self._multiplied(_NodeNumber(self._summed(place, arguments[1], shape)), 1.0 / float(count), shape)
        return self._moved(target, arguments, shape)

    def _moved(self, target: Any, arguments: list[Any], shape: tuple[int, ...]) -> int:
        if target is aten.cat.default:
            return self.add(NetworkOp.CONCAT, shape, *(self._at(part) for part in arguments[0]))
        place = self._at(arguments[0])
        before = self.nodes[place].shape
        if target in _RESHAPES:
            return place if before == shape else self.add(NetworkOp.RESHAPE, shape, place)
        if target in {aten.permute.default, aten.t.default, aten.transpose.int} and len(shape) == 2:
            return self.add(NetworkOp.TRANSPOSE, (before[1], before[0]), place)
        if target is aten.slice.Tensor:
            axis, begin = arguments[1] if len(arguments) > 1 else 0, arguments[2] if len(arguments) > 2 else 0
            if before == shape:
                return place
            if axis % len(before) == len(before) - 1:
                return self.add(NetworkOp.SLICE, shape, place, begin=begin or 0)
        raise ProtocolError(f"no circuit has the operation {target}: write the step with those of docs/spec/zk.md")

    def _multiplied(self, a: Any, b: Any, shape: tuple[int, ...]) -> int:
        """A product; constant factors are multiplied with each other first."""
        if not isinstance(a, _NodeNumber):
            a, b = b, a
        if isinstance(b, _NodeNumber):
            places = self._at(a), self._at(b)
            return self.add(NetworkOp.MUL, broadcast(*(self.nodes[place].shape for place in places)), *places)
        factor = b if isinstance(b, Tensor) else torch.tensor(float(b), dtype=torch.float64)
        place = self._at(a)
        if factor.numel() == 1 or bool((factor == factor.ravel()[0]).all()):
            factor = factor.ravel()[0].to(torch.float64)
            if place in self._factor:
                place, before = self._factor[place]
                factor = factor * before
        if factor.ndim == 0 and float(factor) == 1.0:
            return place
        mantissa, exponent = math.frexp(float(factor)) if factor.ndim == 0 else (0.0, 0)
        if mantissa == 0.5 and exponent < 1:
            result = self.add(NetworkOp.SHIFT, self.nodes[place].shape, place, bits=1 - exponent)
            self._factor[result] = (place, factor)
            return result
        other = self.constant(factor)
        result = self.add(NetworkOp.MUL, broadcast(self.nodes[place].shape, self.nodes[other].shape), place, other)
        if factor.ndim == 0:
            self._factor[result] = (place, factor)
        return result

    def _divided(self, a: Any, b: Any, shape: tuple[int, ...]) -> int:
        if not isinstance(b, _NodeNumber):
            inverse = 1.0 / (b.to(torch.float64) if isinstance(b, Tensor) else float(b))
            return self._multiplied(a, inverse, shape)
        divisor = self._at(b)
        if divisor in self._factor:
            divisor, factor = self._factor[divisor]
            a = _NodeNumber(self._multiplied(a, 1.0 / float(factor), shape))
        inverse_of = self.add(NetworkOp.RECIPROCAL, self.nodes[divisor].shape, divisor)
        return self._multiplied(a, _NodeNumber(inverse_of), shape)

    def _selected(self, condition: Any, if_so: Any, otherwise: Any) -> int:
        """``where(x <= 0, 0, y)``, the derivative of a ReLU."""
        if not isinstance(condition, _NodeNumber) or isinstance(if_so, _NodeNumber) or float(if_so) != 0.0:
            raise ProtocolError("no circuit has a choice other than that of a ReLU: zero where x <= 0")
        kept, by = self._at(otherwise), self._at(condition)
        return self.add(NetworkOp.GATE, broadcast(self.nodes[kept].shape, self.nodes[by].shape), kept, by)

    def _summed(self, place: int, axes: Sequence[int], shape: tuple[int, ...]) -> int:
        rank = len(self.nodes[place].shape)
        for axis in sorted(axis % rank for axis in axes):
            before = self.nodes[place].shape
            if before[axis] > 1:
                after = tuple(1 if other == axis else size for other, size in enumerate(before))
                place = self.add(NetworkOp.SUM, after, place, axis=axis)
        return place if self.nodes[place].shape == shape else self.add(NetworkOp.RESHAPE, shape, place)


class _NodeNumber:
    """The number of a node, to tell it from numbers that are arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


def _flat(arguments: Any) -> list[Any]:
    if isinstance(arguments, list | tuple):
        return [part for argument in arguments for part in _flat(argument)]
    return [arguments]


SCALE = 20
"""Numbers of the circuits are multiples of 2**-20."""


def step_module(place: Path) -> ModuleType:
    """The module that defines a circuit's step. It is executed, so it has to be trusted.

    Raises OperationalError if there is none.
    """
    spec = importlib.util.spec_from_file_location(f"circuit_{place.name}", place / STEP)
    if spec is None or spec.loader is None or not (place / STEP).is_file():
        raise OperationalError(f"there is no {place / STEP}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def network_of(place: Path) -> StepNetwork:
    """The network of a circuit's step."""
    module = step_module(place)
    return trace(module.step, module.INPUTS, SCALE)


def main(arguments: list[str]) -> int:
    """Number of files that differ, which are written unless `--check` is given."""
    differing = 0
    for place in sorted(path.parent for path in folder().glob(f"*/{CIRCUIT}")):
        data = network_of(place).to_json()
        file = place / NETWORK
        if not file.is_file() or file.read_bytes() != data:
            differing += 1
            print(f"{file} {'differs from its step' if '--check' in arguments else 'written'}")
            if "--check" not in arguments:
                file.write_bytes(data)
    return differing if "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
