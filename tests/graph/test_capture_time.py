"""How a capture saves time: nothing of the user's process stays changed, and only what needs it is traced again."""

import gc
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.nn import functional
from torch.optim import AdamW

from optimizer_training import LABELS, ORDER, X, captured, network
from pol.errors import UnsupportedError
from pol.graph.capture import capture
from pol.graph.capture.optimizers.repeated_update import RepeatedUpdates
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


def test_updates_of_a_kind_are_traced_once() -> None:
    """Shapes, kinds and operands that are one tensor tell updates apart; results may be operands."""
    generator = torch.manual_seed(5)
    one, two, three = (torch.randn(3, generator=generator) for _ in range(3))
    wide, table = torch.randn(2, 3, generator=generator), torch.randn(1, generator=generator)
    updates = [
        ("a", one, two), ("a", three, one), ("a", wide, wide), ("b", two, one), ("a", two, two), ("a", one, one),
        ("a", two, three),
    ]  # fmt: skip
    traced: list[str] = []

    def stepped(repeats: bool, entry: Tensor, *tensors: Tensor) -> list[Tensor]:
        place = {id(tensor): tensors[number] for number, tensor in enumerate((one, two, three, wide))}
        repeated = RepeatedUpdates()
        found: list[Tensor] = []
        for kind, first, second in updates:

            def update(value: Tensor, state: Tensor, kind: str = kind) -> list[Tensor]:
                traced.append(kind)
                moved = value * 0.5 + state if kind == "a" else value - state
                return [moved * entry, state, entry.reshape(()), value.sum().detach()]

            operands = [place[id(first)], place[id(second)]]
            found += repeated.run(kind, update, operands) if repeats else update(*operands)
        return found

    graphs = []
    for repeats in (True, False):
        traced.clear()
        graph = make_fx(partial(stepped, repeats), tracing_mode="fake")(table, one, two, three, wide)
        assert len(traced) == (4 if repeats else len(updates))
        places = {node: number for number, node in enumerate(graph.graph.nodes)}
        graphs.append([(str(node.target), map_arg(node.args, places.__getitem__)) for node in graph.graph.nodes][5:])
        found = graph(table, one, two, three, wide)
        for value, expected in zip(found, stepped(False, table, one, two, three, wide), strict=True):
            assert torch.equal(value, expected)
    assert graphs[0] == graphs[1]


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
