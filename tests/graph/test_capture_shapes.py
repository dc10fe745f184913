"""A model without numbers has the program of the same model with numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.benchmarks.measured_models import Llama, LlamaSize, next_token_loss
from pol.errors import UnsupportedError
from pol.graph.capture import Loop, capture, capture_shapes

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
