"""Checks that a trace is the whole step: no other random numbers, no other writes, the same in every run."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.optim import Optimizer

from pol.errors import UnsupportedError
from pol.graph.capture.guards.mutation_guard import Snapshot, way_out
from pol.graph.capture.optimizers import RULES
from pol.graph.capture.optimizers.traced_optimizer import READS, no_rule
from pol.graph.capture.tracing.aten_recorder import data_dependent
from pol.graph.capture.tracing.provenance import PHASE, ROLE, SOURCE
from pol.graph.capture.tracing.random_operations import IN_BACKWARD
from pol.graph.lowering import advice
from pol.graph.refusals import Report, refuse

ATTENTION = "aten._scaled_dot_product"
"""torch tags fused attention as random even without dropout; the lowering refuses it with better advice."""


def require_pure(
    graph: GraphModule,
    snapshot: Snapshot,
    state: Mapping[str, Tensor],
    optimizers: Sequence[Optimizer],
    report: Report = refuse,
) -> None:
    """Raises UnsupportedError, with the user's line, for an operation with an effect outside of the graph.

    `state` holds the parameters and buffers that are inputs of the graph: nothing may read them in another way.
    """
    memory = {tensor.untyped_storage()._cdata: name for name, tensor in state.items()}
    outside: dict[Node, Tensor] = {}
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(graph, str(node.target))
            if isinstance(tensor, FakeTensor):
                report(unstable())
                continue
            name = memory.get(tensor.untyped_storage()._cdata)
            if name is not None:
                report(
                    UnsupportedError(
                        f"{_users_line(node)} -- {name} is used past its module, and its changes would be lost: read "
                        "it as an attribute of the model, not from a list, a dict or a variable"
                    )
                )
            outside[node] = tensor
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        operation = str(node.target)
        if operation == "aten._local_scalar_dense.default" and node.users:
            if _phase(node) == "update":
                report(no_rule(_without_rule(optimizers), READS))
            else:
                report(data_dependent(_line(node), operation))
        if torch.Tag.nondeterministic_seeded in node.target.tags and not operation.startswith(ATTENTION):
            if _phase(node) == "backward":
                report(UnsupportedError(f"{_line(node)} -- {operation} {IN_BACKWARD}"))
            else:
                report(advice.random(_line(node), operation))
        for argument, is_written in _aliased(node):
            if argument not in outside:
                continue
            if is_written:
                name = snapshot.name_of(outside[argument])
                if name.startswith("optimizer") or _phase(node) == "update":
                    what = f"its step changes {name or 'a tensor'}, which is no state of a parameter"
                    report(no_rule(_without_rule(optimizers), what))
                else:
                    report(_written(node, name))
            outside[node] = outside[argument]


def _written(node: Node, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"{_line(node)} -- {node.target} writes into {name or 'a tensor outside of the model'}, which is neither a "
        f"parameter nor a buffer of the model: {way_out(name)}"
    )


def _without_rule(optimizers: Sequence[Optimizer]) -> Optimizer:
    """The optimizer whose own step was traced."""
    return next((item for item in optimizers if type(item) not in RULES), optimizers[0])


def require_batch_kept(graph: GraphModule, report: Report = refuse) -> None:
    """Raises UnsupportedError, with the user's line, for an operation that writes into the inputs or the target."""
    batch: set[Node] = set()
    for node in graph.graph.nodes:
        role = str((node.meta.get("custom") or {}).get(ROLE, ""))
        if role.startswith("batch.") and role != "batch.rows":
            batch.add(node)
        if node.target is operator.getitem and node.args[0] in batch:
            batch.add(node)
        for argument, is_written in _aliased(node):
            if argument not in batch:
                continue
            if is_written:
                report(
                    UnsupportedError(
                        f"{_line(node)} -- {node.target} writes into a tensor of the batch, which would be another one "
                        "if it's given again: write an operation that makes a new tensor, or change a copy, "
                        "x = x.clone()"
                    )
                )
            batch.add(node)


def unstable(made: Iterable[str] = ()) -> UnsupportedError:
    """The refusal of a step that is another one when it runs again; ``made`` are attributes with tensors of a step."""
    if names := ", ".join(made):
        return UnsupportedError(
            f"the step differs from run to run, and reads attribute {names}, which the run before has made: "
            f"{way_out(names)}, or run the model once on a batch before you capture it, if it's a cache"
        )
    return UnsupportedError(
        "the step differs from run to run: the model or the loss reads something that changes besides "
        "parameters, buffers and the data (a counter, the time, a generator). Make it a buffer with register_buffer, "
        "or put it into the data set; a cache of tensors (functools.lru_cache) fills when you run the model once before"
    )


def _aliased(node: Node) -> Iterator[tuple[Node, bool]]:
    """Arguments that the result is a view of or that the operation writes into, and whether it writes."""
    target = node.target
    if isinstance(target, OpOverload):
        for parameter, argument in zip(target._schema.arguments, node.args, strict=False):
            if parameter.alias_info is not None and isinstance(argument, Node):
                yield argument, parameter.alias_info.is_write


def _phase(node: Node) -> str:
    return str((node.meta.get("custom") or {}).get(PHASE, ""))


def _line(node: Node) -> str:
    mark = node.meta.get("custom") or {}
    return str(mark.get(SOURCE, "the step"))


def _users_line(node: Node) -> str:
    return next((_line(user) for user in node.users), "the step")
