"""Every operation against torch's own, one thread each.

`PYTHONPATH=tests python -m lab.benchmarks.operation_speed` writes the ratios.

Arguments have about a million elements (fewer where an operation looks at all pairs of them). Ours is the program of
one call, run as a replay runs it; both run alternately in one process and are timed by what the thread spent.
"""

import functools
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lab.benchmarks.figure import side_by_side, torch_threads
from lab.benchmarks.operation_calls import Call, calls
from lab.json_rows import json_rows
from pol.arithmetic.primitives import Words
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.torch_executor import ALLOWED, results_of
from pol.graph.aten_graph import Argument, AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref, TorchDType
from pol.graph.capture import to_words
from pol.graph.lowering import lower
from pol.graph.step_program import Component, StepProgram

LEAST, BUDGET = 3, 0.15
"""Calls, and seconds of ours."""


def type_of(tensor: Tensor) -> AtenType:
    """Of a graph's input or result."""
    return AtenType(_name(tensor.dtype), tuple(tensor.shape))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def program_of(operation: str, call: Call) -> tuple[StepProgram, list[Words], list[int]]:
    """The program of one call, whose tensors are its constants; these, and the nodes that are the results.

    Its state is one number.
    """
    keywords = call[-1] if isinstance(call[-1], dict) else {}
    given = [item for item in call if not isinstance(item, dict)]
    leaves = [leaf for item in given for leaf in (item if isinstance(item, list) else [item])]
    tensors = [item for item in leaves if isinstance(item, Tensor)]
    numbers = iter(range(1, 1 + len(tensors)))

    def plain(item: Any) -> Argument:
        if isinstance(item, Tensor):
            return Ref(next(numbers))
        if isinstance(item, torch.dtype):
            return TorchDType(_name(item))
        return tuple(map(plain, item)) if isinstance(item, list) else item

    inputs = (
        AtenInput(InputRole.STATE, "s", AtenType("float32", ()), Component.PARAMETER),
        *(AtenInput(InputRole.CONSTANT, f"c{i}", type_of(tensor)) for i, tensor in enumerate(tensors)),
        AtenInput(InputRole.STEP, "step", AtenType("int64", ())),
    )
    results = results_of(operation, given, keywords)
    arguments = tuple(plain(item) for item in given)
    pairs = tuple(sorted((key, plain(value)) for key, value in keywords.items()))
    node = AtenNode(operation, arguments, pairs, tuple(map(type_of, results)), "it", "")
    observed = tuple((f"out{i}", Ref(len(inputs), i)) for i in range(len(results)))
    program, names = lower(AtenGraph(inputs, (node,), (Ref(0),), observed))
    return program, [to_words("c", tensor) for tensor in tensors], list(names.observed.values())


def runner(operation: str, call: Call) -> Callable[[], object]:
    """A call that computes the operation with our kernels."""
    program, constants, observed = program_of(operation, call)
    executor = CpuExecutor(program, constants, threads=1, observed=observed)
    own = [to_words("s", torch.zeros(()))]
    return lambda: executor.advance(own, 0)


def ratio(operation: str, call: Call) -> float:
    """Our median time over torch's."""
    keywords = call[-1] if isinstance(call[-1], dict) else {}
    given = [item for item in call if not isinstance(item, dict)]
    torchs = functools.partial(ALLOWED[operation], *given, **keywords)
    ours, theirs = side_by_side(runner(operation, call), torchs, LEAST, time.thread_time, warm=1, budget=BUDGET)
    return ours / theirs


def measure(names: set[str]) -> Mapping[str, float]:
    """Ratios of these operations, or of all that have a call here."""
    with torch_threads():
        chosen = {name: call for name, call in calls().items() if not names or name in names}
        return {name: round(ratio(name, call), 2) for name, call in chosen.items()}


if __name__ == "__main__":
    path = Path("docs/operations.json")
    document = json.loads(path.read_text())
    document["speed"] = document.get("speed", {}) | measure(set(sys.argv[1:]))
    path.write_text(json_rows(document, sort_keys=True))
