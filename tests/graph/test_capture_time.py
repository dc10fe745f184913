"""How a capture saves time: nothing of the user's process stays changed, and only what needs it is traced twice."""

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional
from torch.optim import AdamW

from optimizer_training import LABELS, ORDER, X, captured, network
from pol.errors import UnsupportedError
from pol.graph.capture import capture
from pol.graph.capture.tracing.decompositions import decompositions
from pol.graph.capture.tracing.functional_tail import FunctionalTail
from pol.graph.capture.tracing.provenance import PHASE


@pytest.mark.parametrize(
    ("phase", "update", "copied"),
    [
        ("update", lambda a, b: [a.mul(2).add(b), b], ["mul", "add"]),
        ("update", lambda a, b: [b, a.mul(2).mul_(3).add(b)], ["add"]),
        ("update", lambda a, b: [a.mul(2).view(3, 1).add(b)], ["add"]),
        ("update", lambda a, b: [functional.hardswish(a.mul(2).add(b))], []),
        ("backward", lambda a, b: [a.mul(2).add(b)], []),
    ],
)
def test_the_end_of_an_update_that_is_functional_is_copied(
    phase: str, update: Callable[[Tensor, Tensor], list[Tensor]], copied: list[str]
) -> None:
    def annotated(*given: Tensor) -> list[Tensor]:
        with fx_traceback.annotate({PHASE: phase}):
            return update(*given)

    operands = torch.arange(3.0), torch.tensor([1.0, -2.0, 0.5])
    with fx_traceback.preserve_node_meta():
        first = make_fx(annotated, tracing_mode="fake")(*operands)
    tail = FunctionalTail.of(first.graph, {**decompositions(), torch.ops.aten.hardswish.default: functional.hardswish})
    assert [str(node.target).split(".")[1] for node in tail.nodes] == copied
    second = make_fx(torch.func.functionalize(tail.head(first)))(*operands)
    tail.append_to(second.graph)
    second.recompile()
    for found, expected in zip(second(*operands), update(operands[0].clone(), operands[1]), strict=True):
        assert torch.equal(found, expected)


def test_threads_and_garbage_collection_are_as_before() -> None:
    def refused(output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target) * float(output.sum())

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        model = network()
        captured(model, AdamW(model.parameters()))
        assert torch.get_num_threads() == 2
        assert gc.isenabled()
        with pytest.raises(UnsupportedError):
            capture(model, refused, AdamW(model.parameters()), (X, LABELS), ORDER)
        assert gc.isenabled()
        gc.disable()
        captured(model, AdamW(model.parameters()))
        assert not gc.isenabled()
    finally:
        gc.enable()
        torch.set_num_threads(before)
