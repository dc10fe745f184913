"""Packed texts in recurrent layers, with lengths from the data: a step of all times, of which a text takes its own."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pol.errors import UnsupportedError
from step_comparison import LABELS, ORDER, compared_step

pytestmark = pytest.mark.slow

TEXTS = torch.randint(1, 9, (24, 5), generator=torch.Generator().manual_seed(3))
LENGTHS = torch.randint(1, 5, (24,), generator=torch.Generator().manual_seed(4))
TAGS = torch.where(torch.arange(5) < LENGTHS[:, None], TEXTS % 3, -100)
ORDERED = [5, 5, 4, 2, 2, 1]


class Reader(nn.Module):
    """An embedding, a recurrent layer, and a function of it, the texts and their lengths."""

    def __init__(self, layer: Callable[..., nn.Module], use: Callable[..., Any], width: int, **options: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 6)
        self.layer = layer(6, 4, batch_first=True, **options)
        self.head = nn.Linear(width, 3)
        self.use = use

    def forward(self, texts: Tensor, lengths: Tensor) -> Any:
        return self.use(self, self.embedding(texts), lengths)


def packed(values: Tensor, lengths: Any, is_sorted: bool = False) -> Any:
    return pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=is_sorted)


def last_states(model: Any, values: Tensor, lengths: Tensor) -> Tensor:
    _, (hidden, cell) = model.layer(packed(values, lengths))
    return model.head(torch.cat([hidden[-2], hidden[-1]], -1) + cell[0].repeat(1, 2))  # type: ignore[no-any-return]  # of nn.Module


def mean_output(model: Any, values: Tensor, lengths: Tensor) -> Tensor:
    outputs, found = pad_packed_sequence(model.layer(packed(values, lengths))[0], batch_first=True)
    return model.head(outputs.sum(1) / found[:, None] + outputs[:, -1])  # type: ignore[no-any-return]  # of nn.Module


def last_outputs(model: Any, values: Tensor, lengths: Tensor) -> Tensor:
    outputs, _ = pad_packed_sequence(model.layer(packed(values, lengths))[0], batch_first=True)
    return model.head(outputs[torch.arange(len(lengths)), lengths - 1])  # type: ignore[no-any-return]  # of nn.Module


def attention(model: Any, values: Tensor, lengths: Tensor) -> Tensor:
    sequence = model.layer(packed(values, lengths))[0]
    outputs, found = pad_packed_sequence(sequence, batch_first=True, total_length=6)
    scores = outputs.sum(-1).masked_fill(torch.arange(6) >= found[:, None], -1e9).softmax(1)
    return model.head((scores[..., None] * outputs).sum(1))  # type: ignore[no-any-return]  # of nn.Module


def constant(model: Any, values: Tensor, lengths: Tensor) -> Tensor:
    outputs, hidden = model.layer(packed(values, ORDERED, is_sorted=True))
    return model.head(pad_packed_sequence(outputs, batch_first=True)[0][:, 0] + hidden[-1])  # type: ignore[no-any-return]  # of nn.Module


def tags(model: Any, values: Tensor, lengths: Tensor) -> Tensor:
    return model.head(pad_packed_sequence(model.layer(packed(values, lengths))[0], True)[0])  # type: ignore[no-any-return]  # of nn.Module


def of_tags(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output.transpose(1, 2), target[:, : output.size(1)])


def flat(model: Any, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return model.head(model.layer(packed(values, lengths))[0].data), lengths


def of_flat(output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output[0], packed(target, output[1]).data)


CASES: dict[str, tuple[Any, Any, int, dict[str, Any]]] = {
    "last states": (nn.LSTM, last_states, 8, {"num_layers": 2, "bidirectional": True}),
    "mean output": (nn.GRU, mean_output, 4, {}),
    "last outputs": (nn.RNN, last_outputs, 4, {"bias": False, "nonlinearity": "relu"}),
    "attention": (nn.GRU, attention, 8, {"bidirectional": True}),
    "constant lengths": (nn.RNN, constant, 4, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step_of_packed_texts_is_that_of_torch(name: str) -> None:
    torch.manual_seed(2)
    layer, use, width, options = CASES[name]
    compared_step(Reader(layer, use, width, **options), nn.functional.cross_entropy, (TEXTS, LENGTHS, LABELS), ORDER)


def test_a_loss_of_the_tags_of_packed_texts_is_that_of_torch() -> None:
    torch.manual_seed(2)
    compared_step(Reader(nn.LSTM, tags, 4), of_tags, (TEXTS, LENGTHS, TAGS), ORDER)
    compared_step(Reader(nn.LSTM, flat, 4), of_flat, (TEXTS, LENGTHS, TEXTS % 3), ORDER)


def test_dropout_between_layers_of_packed_texts_is_refused() -> None:
    model = Reader(nn.GRU, mean_output, 4, num_layers=2, dropout=0.5)
    with pytest.raises(UnsupportedError, match="gru with dropout takes rows"):
        compared_step(model, nn.functional.cross_entropy, (TEXTS, LENGTHS, LABELS), ORDER)
