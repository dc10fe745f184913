"""Captures the initialization of a model as a step program, so that anybody can draw the same weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from pol.errors import UnsupportedError
from pol.graph.aten_graph import AtenGraph, AtenInput, InputRole, Ref
from pol.graph.capture.tracing.aten_recorder import AtenRecorder, tensor_type
from pol.graph.capture.tracing.decompositions import decompositions
from pol.graph.capture.tracing.random_operations import CounterRandomness, seed_words
from pol.graph.capture.tracing.step_inputs import AVERAGE
from pol.graph.capture.tracing.trace import quiet, traced, without_writes
from pol.graph.captured_step import Capture, CapturedInitialization
from pol.graph.lowering import lower
from pol.graph.step_program import Component


def capture_initialization(
    build: Callable[[], nn.Module], seed: int = 0, step: Capture | None = None, slots: Collection[str] | None = None
) -> CapturedInitialization:
    """What ``with TaskRandomness(seed).initialization(): build()`` draws, as a program.

    ``build`` makes the model and draws its parameters; it runs under a trace, and its draws touch none of torch's
    generators. With ``step``, the program gives the slots of this captured step instead of all parameters and buffers:
    averages of the weights begin with the weights, state of the optimizer that is one number everywhere is written,
    and what is zero is left out. ``slots`` chooses some of them, e.g. those that aren't taken from another training.

    Raises:
        UnsupportedError: a draw or an operation without a definition, or a slot that ``build`` doesn't give.
    """
    names: list[tuple[str, Component]] = []

    def built(key: Tensor, number: Tensor) -> list[Tensor]:
        with CounterRandomness(number, key):
            model = build()
        if not isinstance(model, nn.Module):
            raise UnsupportedError(f"what builds the model gives a {type(model).__name__}: return the module")
        found: list[tuple[str, Component, Tensor]] = [
            (name, Component.PARAMETER, tensor) for name, tensor in model.named_parameters()
        ]
        found += [(name, Component.BUFFER, tensor) for name, tensor in model.named_buffers() if not tensor.is_complex()]
        names[:] = [(name, component) for name, component, _ in found]
        return [tensor.detach() for _, _, tensor in found]

    words, number = seed_words(seed), torch.zeros((), dtype=torch.int64)
    with quiet(), torch.enable_grad():
        first = traced(built, [words, number], None, lambda: "initialization")
        given = dict(zip((name for name, _ in names), _outputs(first), strict=True))
        chosen = _chosen(dict(names), given, step, slots)
        entries = [
            AtenInput(InputRole.STATE, name, tensor_type(name, like), component)
            for name, (component, like, _) in chosen.items()
        ]

        def drawn(outputs: list[Tensor]) -> list[Tensor]:
            results = dict(zip(given, outputs, strict=True))
            return [
                results[source] if isinstance(source, str) else torch.full(like.shape, source, dtype=like.dtype)
                for _, like, source in chosen.values()
            ]

        states = [torch.zeros(like.shape, dtype=like.dtype) for _, like, _ in chosen.values()]
        # The model that is built has torch's bits.
        table = decompositions(only_exact=True)
        graph = without_writes(first, [*states, words, number], table, lambda: "initialization", drawn)
    inputs = [
        *entries,
        AtenInput(InputRole.CONSTANT, "seed", tensor_type("seed", words)),
        AtenInput(InputRole.STEP, "step", tensor_type("step", number)),
    ]
    recorder = AtenRecorder(inputs, words)
    outputs = recorder.record(graph)
    if recorder.constants:
        raise UnsupportedError(
            "the initialization reads a tensor from elsewhere: a provable one draws its numbers, or computes them from "
            "numbers in the code. Weights that were trained come from the training's proof or record"
        )
    written = {name: item for name, item in zip(chosen, outputs, strict=True) if isinstance(item, Ref)}
    recorder.name({}, written, {}, "")
    aten = AtenGraph(tuple(recorder.inputs), tuple(recorder.nodes), tuple(written.values()), ())
    program, _ = lower(aten)
    return CapturedInitialization(program, tuple(chosen), seed)


_Chosen = Mapping[str, tuple[Component, Tensor, "str | float"]]
"""By slot: its component, a tensor of its type, and its first value: a tensor of the model by name, or a number."""


def _chosen(
    components: Mapping[str, Component],
    given: Mapping[str, Tensor],
    step: Capture | None,
    slots: Collection[str] | None,
) -> _Chosen:
    if step is None:
        chosen: dict[str, tuple[Component, Tensor, str | float]] = {
            name: (components[name], given[name], name) for name in given if slots is None or name in slots
        }
        missing = sorted(set(slots or ()) - set(given))
    else:
        chosen, missing = {}, []
        for entry, words in zip(step.aten.slots, step.state, strict=True):
            if slots is not None and entry.name not in slots:
                continue
            component = entry.component or Component.BUFFER
            source = entry.name.removeprefix(AVERAGE)
            if source in given:
                chosen[entry.name] = (component, given[source], source)
            elif words.any():
                floats = words.view(np.float32) if entry.type.dtype in {"float32", "bfloat16"} else words.view(np.int32)
                if (words != words.reshape(-1)[0]).any():
                    missing.append(entry.name)
                like = torch.empty(entry.type.shape, dtype=getattr(torch, entry.type.dtype))
                chosen[entry.name] = (component, like, floats.reshape(-1)[0].item())
    if missing:
        raise UnsupportedError(f"what builds the model gives no {missing[0]}, and it isn't one number everywhere")
    if not chosen:
        raise UnsupportedError("there is nothing to initialize: every remaining slot is zero")
    return chosen


def _outputs(graph: GraphModule) -> Sequence[Tensor]:
    """Tensors of the types of what a graph gives."""
    output = next(node for node in graph.graph.nodes if node.op == "output")
    return [
        torch.empty(tuple(node.meta["val"].shape), dtype=node.meta["val"].dtype, device="meta")
        for node in output.args[0]
    ]
