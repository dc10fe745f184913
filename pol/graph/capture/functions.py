"""Captures a function of tensors as a step program: a merge, a message, or a step that no model and optimizer give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback
from torch.nn.attention import SDPBackend, sdpa_kernel

from pol.errors import UnsupportedError
from pol.graph.aten_graph import AtenGraph, AtenInput, InputRole, Ref
from pol.graph.capture.assemble import to_words
from pol.graph.capture.replacements.torch_functions import ReplacedFunctions
from pol.graph.capture.tracing.aten_recorder import AtenRecorder, tensor_type
from pol.graph.capture.tracing.decompositions import decompositions
from pol.graph.capture.tracing.provenance import PHASE
from pol.graph.capture.tracing.random_operations import CounterRandomness, seed_words
from pol.graph.capture.tracing.trace import quiet, traced, without_writes
from pol.graph.captured_step import Capture
from pol.graph.lowering import lower
from pol.graph.step_program import Component

Tensors: TypeAlias = Mapping[str, Tensor]
NOTHING = "nothing"
"""The constant of a function that has none: a zero."""
StepFunction: TypeAlias = Callable[[dict[str, Tensor], dict[str, Tensor], Tensor], Tensors]
"""``function(state, constants, step)``: next values of slots, and observed values under other names."""


def capture_function(
    function: StepFunction,
    state: Tensors,
    constants: Tensors | None = None,
    seed: int = 0,
    components: Mapping[str, Component] | None = None,
) -> Capture:
    """Capture a function of a state as a step program; slots that it doesn't return keep their value.

    ``state`` and ``constants`` hold tensors by name, at least one slot; ``step`` is an int64 tensor without dimensions.
    ``seed`` decides what the function draws. ``components`` are those of slots that aren't parameters.
    The function runs under a trace, on copies: it may use autograd, and has no effect but its result.

    Raises:
        UnsupportedError: an operation without a definition, or a slot that changes its type.
    """
    # A program has at least one constant.
    given, known = dict(state), dict(constants or {NOTHING: torch.zeros(1, dtype=torch.int64)})
    if not given:
        raise UnsupportedError("there is no state: give the tensors that the function changes")
    returned: list[str] = []

    def call(slots: list[Tensor], values: list[Tensor], number: Tensor, key: Tensor) -> list[Tensor]:
        own = dict(zip(given, (tensor.clone() for tensor in slots), strict=True))
        with ReplacedFunctions(), CounterRandomness(number, key), fx_traceback.annotate({PHASE: "forward"}):
            results = function(own, dict(zip(known, values, strict=True)), number)
        if not all(torch.is_tensor(item) for item in results.values()):
            raise UnsupportedError("the function has to return tensors by name: the slots that it changes")
        returned[:] = list(results)
        return [tensor.detach() for tensor in results.values()]

    key, number = seed_words(seed), torch.zeros((), dtype=torch.int64)
    slots, values = ([tensor.detach() for tensor in part.values()] for part in (given, known))
    with (
        quiet(),
        torch.enable_grad(),
        fx_traceback.preserve_node_meta(),
        sdpa_kernel(SDPBackend.MATH),
        torch.backends.mkldnn.flags(enabled=False),
    ):
        first = traced(lambda s, v, n: call(s, v, n, key), [slots, values, number], None, lambda: "the function")
        graph = without_writes(first, [*slots, *values, number], decompositions(), lambda: "the function")
    kinds = dict(components or {})
    entries = [
        *(
            AtenInput(InputRole.STATE, name, tensor_type(name, tensor), kinds.get(name, Component.PARAMETER))
            for name, tensor in given.items()
        ),
        *(AtenInput(InputRole.CONSTANT, name, tensor_type(name, tensor)) for name, tensor in known.items()),
        AtenInput(InputRole.STEP, "step", tensor_type("step", number)),
    ]
    recorder = AtenRecorder(entries, key)
    results = dict(zip(returned, recorder.record(graph), strict=True))
    aten = _graph(recorder, results, list(given))
    program, names = lower(aten)
    tensors = dict(zip(known, values, strict=True))
    data = [*tensors.values(), *recorder.constants]
    words = [to_words(entry.name, tensor) for entry, tensor in zip(aten.constants, data, strict=True)]
    return Capture(aten, program, names, words, [to_words(name, tensor) for name, tensor in given.items()])


def _graph(recorder: AtenRecorder, results: Mapping[str, object], slots: list[str]) -> AtenGraph:
    references = {name: item for name, item in results.items() if isinstance(item, Ref)}
    if missing := sorted(set(results) - set(references)):
        raise UnsupportedError(f"{missing[0]} is a number: return a tensor")
    updates = {name: item for name, item in references.items() if name in slots}
    recorder.name({}, updates, {}, "")
    kept = {name: Ref(place) for place, name in enumerate(slots)}
    next_state = tuple(updates.get(name, kept[name]) for name in slots)
    observed = tuple((name, item) for name, item in references.items() if name not in slots)
    aten = AtenGraph(tuple(recorder.inputs), tuple(recorder.nodes), next_state, observed)
    for name, item in updates.items():
        if aten.type_of(item) != aten.inputs[slots.index(name)].type:
            raise UnsupportedError(
                f"slot {name} is {aten.inputs[slots.index(name)].type}, and the function returns {aten.type_of(item)}: "
                "a slot keeps its type"
            )
    return aten
