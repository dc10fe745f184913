"""Gradient checkpointing runs modules again in the backward pass; a capture holds both runs."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import GPT2Config, GPT2LMHeadModel

from pol.errors import UnsupportedError
from pol.graph.capture import Capture, Loop, capture

torch.manual_seed(1)
INPUTS, LABELS = torch.randn(12, 4), torch.arange(12) % 3
ORDER = torch.arange(12).reshape(3, 4)


class Net(nn.Module):
    """Two layers and what lies between them, recomputed or not."""

    def __init__(self, between: nn.Module, recompute: bool = True) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.first, self.between, self.last = nn.Linear(4, 6), between, nn.Linear(6, 3)
        self.recompute = recompute

    def block(self, x: Tensor) -> Tensor:
        return torch.tanh(self.between(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(checkpoint(self.block, x, use_reentrant=False) if self.recompute else self.block(x))


def captured(model: nn.Module, loop: Loop = Loop()) -> Capture:  # noqa: B008  # immutable
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER, loop)


@pytest.mark.parametrize("loop", [Loop(), Loop(accumulation=2), Loop(precision="bf16-mixed")])
def test_a_checkpointed_layer_is_captured_as_the_same_training(loop: Loop) -> None:
    torch.manual_seed(3)
    between = nn.Linear(6, 6)
    result = captured(Net(between), loop)
    assert result.program == captured(Net(between, recompute=False), loop).program


def test_statistics_move_twice_as_in_torch() -> None:
    result = captured(Net(nn.BatchNorm1d(6)))  # the self-check compares buffers too
    assert "between.running_mean" in result.names.slots


def test_checkpointed_dropout_is_refused_by_its_name() -> None:
    with pytest.raises(
        UnsupportedError, match=r"random numbers in the backward pass.*leave out torch\.utils\.checkpoint"
    ):
        captured(Net(nn.Dropout(0.5)))


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
def test_gradient_checkpointing_of_hugging_face() -> None:
    torch.manual_seed(4)
    config = GPT2Config(
        vocab_size=11, n_positions=4, n_embd=8, n_layer=1, n_head=2, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0
    )
    model = GPT2LMHeadModel(config)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    tokens = torch.randint(0, 11, (6, 4))

    def loss(output: object, target: Tensor) -> Tensor:
        return functional.cross_entropy(output.logits.flatten(0, 1), target.flatten())  # type: ignore[attr-defined]

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    capture(model, loss, optimizer, (tokens, tokens), torch.arange(6).reshape(3, 2), check=False)
