"""The step as a torch.fx module does what the native executor does, operation by operation."""

from dataclasses import replace

import pytest
import torch

from digits_training import loaded
from operation_samples import CASES, graph_of
from pol.errors import ProtocolError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.execution.stock_torch.torch_graph import to_module
from pol.training.task.task_training import to_tensor


@pytest.mark.parametrize("operation", CASES)
def test_every_operation_gives_what_the_executor_gives(operation: str) -> None:
    for case in CASES[operation]:
        graph, state = graph_of(operation, case)
        constant = torch.tensor(0.0)
        _, observed = NativeExecutor(graph).run(state, [constant], 3)
        found = to_module(graph)(*state, constant, torch.tensor(3))[len(state) :]
        for one, other in zip(observed.values(), found, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.contiguous().numpy(force=True).tobytes() == other.contiguous().numpy(force=True).tobytes()


def test_double_precision_lies_near_and_isn_t_the_same() -> None:
    task = loaded()
    constants = [to_tensor(e.type, words) for e, words in zip(task.aten.constants, task.constants, strict=True)]
    state = [to_tensor(e.type, words) for e, words in zip(task.aten.slots, task.initial_state, strict=True)]
    single, _ = NativeExecutor(task.aten).run(state, constants, 0)
    wide = [t.double() if t.dtype == torch.float32 else t for t in (*state, *constants)]
    double = to_module(task.aten, real=torch.float64)(*wide, torch.tensor(0))[: len(state)]
    assert all(t.dtype == torch.float64 for t in double)
    gap = max(float((a - b).abs().max()) for a, b in zip(single, double, strict=True))
    assert 1e-12 < gap < 1e-6


def test_what_isn_t_allowed_is_never_looked_up() -> None:
    graph, _ = graph_of("add.Tensor", CASES["add.Tensor"][0])
    for node in (
        replace(graph.nodes[0], operation="aten.set_.source_Tensor"),
        replace(graph_of("full.default", CASES["full.default"][0])[0].nodes[0], operation="os.system"),
    ):
        with pytest.raises(ProtocolError, match="allow-list"):
            to_module(replace(graph, nodes=(node,)))
