"""How a capture saves time and memory: tensors without numbers, one more trace only where it is needed."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.nn import functional
from torch.optim import AdamW

from lab.benchmarks.measured_models import Llama, LlamaSize, next_token_loss
from optimizer_training import LABELS, ORDER, X, captured, network
from pol.errors import UnsupportedError
from pol.graph.capture import Loop, capture, capture_shapes
from pol.graph.capture.optimizers.repeated_update import RepeatedUpdates
from pol.graph.capture.tracing.decompositions import decompositions
from pol.graph.capture.tracing.trace import quiet, traced, without_writes


@pytest.mark.parametrize(
    ("step", "runs"),
    [
        (lambda a, b: [functional.hardswish(a), functional.hardswish(b).mul(2)], 1),
        (lambda a, b: [functional.hardswish(a), functional.hardswish(b.t())], 2),
        (lambda a, b: [functional.hardswish(a), functional.hardswish(b[:1])], 2),
        (lambda a, b: [functional.hardswish(a).max(1)[0], functional.hardswish(a.max(1)[0]).add(1), b.clone()], 2),
        (lambda a, b: [functional.hardswish(a.mul_(2)), functional.hardswish(b.add_(1)), a], 2),
        (lambda a, b: [b[1:], functional.hardswish(b.add_(a)[1:]), functional.hardswish(b[1:].add(0))], 2),
    ],
)
def test_operations_of_a_kind_are_replaced_once(step: Callable[[Tensor, Tensor], list[Tensor]], runs: int) -> None:
    """Where nobody writes their memory."""
    replaced: list[torch.Size] = []

    def replacement(value: Tensor) -> Tensor:
        replaced.append(value.shape)
        return value * (value + 3).clamp(0, 6) / 6

    operands = torch.arange(6.0).reshape(3, 2) - 3, torch.tensor([[1.0, -2.0], [0.5, 4.0], [-1.0, 0.0]])
    with quiet(), fx_traceback.preserve_node_meta():
        first = traced(step, operands, None, str)
        graph = without_writes(
            first, operands, {**decompositions(), torch.ops.aten.hardswish.default: replacement}, str
        )
    assert len(replaced) == runs
    assert not any(
        node.target._schema.is_mutable
        for node in graph.graph.nodes
        if node.op == "call_function" and hasattr(node.target, "_schema")
    )
    graph.recompile()
    own = [tensor.clone() for tensor in operands]
    for found, expected in zip(graph(*operands), step(*own), strict=True):
        assert torch.allclose(found, expected, atol=1e-6)


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


WORDS, LENGTH = 17, 10


def llama() -> nn.Module:
    return Llama(LlamaSize(WORDS, layers=2, heads=4, key_heads=2, width=16, hidden=24))


def hugging_face_llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    size = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=WORDS, num_key_value_heads=2, max_position_embeddings=LENGTH, **size)
    return LlamaForCausalLM(config)


class Normed(nn.Module):
    """Buffers that change, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 8)
        self.norm = nn.BatchNorm1d(LENGTH)

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(self.norm(self.embed(x)), 0.25) @ self.embed.weight.T


def logits_loss(output: Any, target: Tensor) -> Tensor:
    return next_token_loss(output if isinstance(output, Tensor) else output.logits, target)


def texts() -> list[Tensor]:
    text = torch.randint(0, WORDS, (8, LENGTH + 1))
    return [text[:, :-1].contiguous(), text[:, 1:].contiguous()]


MODELS = {"llama": llama, "hugging face llama": hugging_face_llama, "batch norm and dropout": Normed}


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_the_program_needs_no_numbers(name: str) -> None:
    torch.manual_seed(1)
    loop, data, order = Loop(clip_norm=1.0), texts(), torch.arange(4).reshape(2, 2)
    model = MODELS[name]()
    whole = capture(model, logits_loss, torch.optim.AdamW(model.parameters()), data, order, loop, check=False)
    with torch.device("meta"):
        empty = MODELS[name]()
    optimizer = torch.optim.AdamW(empty.parameters())
    found = capture_shapes(empty, logits_loss, optimizer, data, order, loop)
    assert found.program.to_bytes() == whole.program.to_bytes()
    assert found.names == whole.names
    assert all(parameter.is_meta for parameter in empty.parameters())


def test_a_model_without_numbers_is_no_task() -> None:
    with torch.device("meta"):
        model = nn.Linear(4, 2)
    data, order = (torch.ones(4, 4), torch.ones(4, 2)), torch.zeros(1, 2, dtype=torch.int64)
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(UnsupportedError, match="on meta: capture takes dense tensors on the CPU"):
        capture(model, functional.mse_loss, optimizer, data, order, check=False)
    assert capture_shapes(model, functional.mse_loss, optimizer, data, order).program.slots
