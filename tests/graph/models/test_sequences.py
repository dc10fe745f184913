"""Recurrent layers and attention with their options; what has another shape for other data is refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from own_loop import CLASSES, ROWS, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError

TIMES, WIDTH = 5, 8


class Last(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer
        self.out = nn.Linear(layer.hidden_size * (1 + layer.bidirectional), CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.layer(x)[0][:, -1])
        return scores


class Attention(nn.Module):
    """Heads of attention by a function of queries, keys and values."""

    def __init__(self, attend: Callable[..., Tensor], heads: int = 4, key_heads: int = 4) -> None:
        super().__init__()
        self.attend, self.heads, self.key_heads = attend, heads, key_heads
        self.query = nn.Linear(WIDTH, WIDTH)
        self.both = nn.Linear(WIDTH, 2 * key_heads * (WIDTH // heads))
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = self.both(x).unflatten(-1, (2, self.key_heads, -1)).permute(2, 0, 3, 1, 4)
        scores: Tensor = self.out(self.attend(query, key, value).transpose(1, 2).flatten(2).mean(1))
        return scores


class Heads(nn.Module):
    """torch's own layer of attention; `options` are those of its call."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.layer = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.layer(x, x, x, **self.options)[0].mean(1))
        return scores


def attended(**options: Any) -> Callable[..., Tensor]:
    return lambda *heads: functional.scaled_dot_product_attention(*heads, **options)


MASK = torch.tril(torch.ones(TIMES, TIMES)) > 0
BIAS = torch.randn(TIMES, TIMES, generator=torch.Generator().manual_seed(1))
MODELS: dict[str, Callable[[], nn.Module]] = {
    "lstm, deep, in both directions": lambda: Last(
        nn.LSTM(WIDTH, 4, num_layers=2, bidirectional=True, dropout=0.0, batch_first=True)
    ),
    "lstm with a projection": lambda: Last(nn.LSTM(WIDTH, 4, batch_first=True, bias=False)),
    "gru, deep, in both directions": lambda: Last(nn.GRU(WIDTH, 4, num_layers=2, bidirectional=True, batch_first=True)),
    "rnn": lambda: Last(nn.RNN(WIDTH, 4, nonlinearity="relu", batch_first=True)),
    "attention": Heads,
    "attention without weights": lambda: Heads(need_weights=False),
    "attention with a mask": lambda: Heads(attn_mask=~MASK, need_weights=False),
    "causal attention": lambda: Heads(attn_mask=~MASK, is_causal=True, need_weights=False),
    "causal heads": lambda: Attention(attended(is_causal=True)),
    "masked heads": lambda: Attention(attended(attn_mask=MASK)),
    "biased heads": lambda: Attention(attended(attn_mask=BIAS, scale=0.3)),
    "grouped heads": lambda: Attention(attended(enable_gqa=True, is_causal=True), key_heads=2),
}


@pytest.mark.parametrize(
    "name",
    chosen_rows.named(MODELS, "lstm with a projection", "rnn", "attention", "grouped heads", others=pytest.mark.slow),
)
def test_sequences_train_like_their_own_loop(name: str) -> None:
    torch.manual_seed(14)
    require_own_loop(MODELS[name](), functional.cross_entropy, [torch.randn(ROWS, TIMES, WIDTH), labels()])


@pytest.mark.parametrize("layer", chosen_rows.first([nn.GRU, nn.LSTM], 1, others=pytest.mark.slow))
def test_dropout_between_recurrent_layers_draws_the_numbers_of_the_task(layer: type[nn.RNNBase]) -> None:
    from pol.graph.capture import capture

    torch.manual_seed(15)
    model = Last(layer(WIDTH, 4, num_layers=2, dropout=0.5, batch_first=True))
    data = [torch.randn(ROWS, TIMES, WIDTH), labels()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = capture(model, functional.cross_entropy, optimizer, data, torch.tensor([[0, 1]]), check=False)
    assert any("bernoulli" in name.operation for name in found.names.nodes)


class Packed(nn.Module):
    """A recurrent layer over texts of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(WIDTH, 4, batch_first=True)
        self.out = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        scores: Tensor = self.out(self.layer(packed)[1][0][-1])
        return scores


def branched(x: Tensor) -> Tensor:
    found: Tensor = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, (x,))
    return found


def looped(x: Tensor) -> Tensor:
    from torch._higher_order_ops.while_loop import while_loop

    found: Tensor = while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))[1]
    return found


def flexible(*heads: Tensor) -> Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    found: Tensor = flex_attention(*heads)
    return found


class Function(nn.Module):
    """A function of a linear layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.layer = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.layer(x.mean(1)))


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "cond": (lambda: Function(branched), "torch.where"),
    "while_loop": (lambda: Function(looped), "for loop"),
    "flex_attention": (lambda: Attention(flexible), "scaled_dot_product_attention"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_higher_order_operations_are_refused_with_a_way_out(name: str) -> None:
    torch.manual_seed(16)
    make, advice = REFUSED[name]
    with pytest.raises(UnsupportedError, match=f"test_sequences.py:[0-9]+.*{advice}"):
        require_own_loop(make(), functional.cross_entropy, [torch.randn(ROWS, TIMES, WIDTH), labels()])


def test_packed_sequences() -> None:
    lengths = torch.randint(1, TIMES + 1, (ROWS,))
    require_own_loop(Packed(), functional.cross_entropy, [torch.randn(ROWS, TIMES, WIDTH), lengths, labels()])
