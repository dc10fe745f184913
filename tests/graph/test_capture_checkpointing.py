"""Gradient checkpointing runs modules again in the backward pass; a capture holds both runs."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)
from transformers import GPT2Config, GPT2LMHeadModel

import chosen_rows
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.graph.capture import Capture, Loop, capture
from pol.training.task.task_randomness import TaskRandomness

torch.manual_seed(1)
INPUTS, LABELS = torch.randn(12, 4), torch.arange(12) % 3
ORDER = torch.arange(12).reshape(3, 4)


class Net(nn.Module):
    """Two layers and what lies between them, recomputed or not."""

    def __init__(self, between: nn.Module, recompute: bool | str = True) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.first, self.between, self.last = nn.Linear(4, 6), between, nn.Linear(6, 3)
        self.recompute = recompute

    def block(self, x: Tensor) -> Tensor:
        return torch.tanh(self.between(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        if not self.recompute:
            return self.last(self.block(x))  # type: ignore[no-any-return]  # torch: Any
        reentrant = self.recompute == "reentrant"
        return self.last(checkpoint(self.block, x.clone().requires_grad_(reentrant), use_reentrant=reentrant))  # type: ignore[no-any-return]  # torch: Any


def captured(model: nn.Module, loop: Loop = Loop()) -> Capture:  # noqa: B008  # immutable
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER, loop)


def assert_same_bits(result: Capture) -> None:
    fast = CpuExecutor(result.program, result.constants).run(result.state, 1)
    slow = ReferenceExecutor(result.program, result.constants).run(result.state, 1)
    assert all(np.array_equal(one, other) for one, other in zip(fast, slow, strict=True))


@pytest.mark.parametrize(
    "loop", chosen_rows.first([Loop(accumulation=2), Loop(), Loop(precision="bf16-mixed")], 1, others=pytest.mark.slow)
)
def test_a_checkpointed_layer_is_captured_as_the_same_training(loop: Loop) -> None:
    torch.manual_seed(3)
    between = nn.Linear(6, 6)
    result = captured(Net(between), loop)
    assert result.program == captured(Net(between, recompute=False), loop).program


def test_statistics_move_twice_as_in_torch() -> None:
    result = captured(Net(nn.BatchNorm1d(6)))  # the self-check compares buffers too
    assert "between.running_mean" in result.names.slots


class Sequence(nn.Module):
    """`checkpoint_sequential` in two segments, or the layers one after another."""

    def __init__(self, recompute: bool) -> None:
        super().__init__()
        torch.manual_seed(2)
        layers = [nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 6), nn.Dropout(0.2), nn.Linear(6, 3)]
        self.layers, self.recompute = nn.Sequential(*layers), recompute

    def forward(self, x: Tensor) -> Tensor:
        if not self.recompute:
            return self.layers(x)  # type: ignore[no-any-return]  # torch: Any
        return checkpoint_sequential(self.layers, 2, x.requires_grad_(), use_reentrant=True)  # type: ignore[no-any-return]  # torch: Any


@pytest.mark.parametrize("recompute", ["plain", "reentrant"])
@pytest.mark.parametrize("loop", chosen_rows.first([Loop(accumulation=2), Loop()], 1, others=pytest.mark.slow))
def test_a_recomputation_draws_the_numbers_of_the_forward_pass(recompute: str, loop: Loop) -> None:
    """The self-check compares with torch's own recomputation."""
    expected = captured(Net(nn.Dropout(0.5), False), loop)
    assert captured(Net(nn.Dropout(0.5), recompute), loop).program == expected.program


def test_segments_of_a_sequence_are_the_same_training() -> None:
    result, expected = captured(Sequence(True)), captured(Sequence(False))
    assert result.program == expected.program
    assert_same_bits(result)


def test_a_reentrant_checkpoint_without_an_input_that_requires_a_gradient_trains_nothing() -> None:
    class First(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(checkpoint(self.block, x, use_reentrant=True))

    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        result = captured(First(nn.Linear(6, 6)))
    outputs = ReferenceExecutor(result.program, result.constants).run(result.state, 0)
    after = dict(zip(result.names.slots, next_state(result.program, outputs), strict=True))
    before = dict(zip(result.names.slots, result.state, strict=True))
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {"last.weight", "last.bias"}


def test_draws_of_ones_own_loop_repeat_where_backward_is_inside() -> None:
    model, plain = Net(nn.Dropout(0.5)), Net(nn.Dropout(0.5), False)
    gradients = []
    for net in (model, plain):
        with TaskRandomness(3).step(1):
            functional.cross_entropy(net(INPUTS), LABELS).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        gradients.append(net.first.weight.grad)
    assert torch.equal(*gradients)


def test_a_selective_checkpoint_is_the_same_training() -> None:
    def policy(_: object, operation: object, *__: object, **___: object) -> CheckpointPolicy:
        keeps = operation == torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    class Selective(Net):
        def forward(self, x: Tensor) -> Tensor:
            contexts = partial(create_selective_checkpoint_contexts, policy)
            return self.last(checkpoint(self.block, x, use_reentrant=False, context_fn=contexts))  # type: ignore[no-any-return]  # torch: Any

    assert captured(Selective(nn.Dropout(0.5))).program == captured(Net(nn.Dropout(0.5), False)).program


def test_a_recomputation_that_draws_other_numbers_is_refused() -> None:
    class Forgets(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(checkpoint(self.block, x, use_reentrant=False, preserve_rng_state=False))

    with pytest.raises(UnsupportedError, match=r"backward pass that are not those.*preserve_rng_state=True"):
        captured(Forgets(nn.Dropout(0.5)))


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
@pytest.mark.parametrize("reentrant", chosen_rows.first([True, False], 1, others=pytest.mark.slow))
def test_gradient_checkpointing_of_hugging_face(reentrant: bool) -> None:
    torch.manual_seed(4)
    config = GPT2Config(
        vocab_size=11, n_positions=4, n_embd=8, n_layer=1, n_head=2, embd_pdrop=0.1, attn_pdrop=0.1, resid_pdrop=0.1
    )
    model = GPT2LMHeadModel(config)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    tokens = torch.randint(0, 11, (6, 4))

    def loss(output: object, target: Tensor) -> Tensor:
        return functional.cross_entropy(output.logits.flatten(0, 1), target.flatten())  # type: ignore[attr-defined]

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    capture(model, loss, optimizer, (tokens, tokens), torch.arange(6).reshape(3, 2), check=False)
