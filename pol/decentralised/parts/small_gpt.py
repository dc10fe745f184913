"""A small GPT and its text, sums such as ``7+15=22;`` of a fixed generator: for reference trainers and demos."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from pol.decentralised.training_options import TrainingOptions
from pol.errors import ProtocolError

ALPHABET = "0123456789+=;"


@dataclass(frozen=True)
class Shape(TrainingOptions):
    """Sizes of the network; lengths in characters."""

    layers: int = 2
    width: int = 32
    heads: int = 4
    length: int = 16

    def __post_init__(self) -> None:
        """Raises ProtocolError for sizes that no network has."""
        super().__post_init__()
        if self.width % self.heads:
            raise ProtocolError(f"a width of {self.width} in {self.heads} heads: give a multiple of the heads")


SMALL = Shape()


class SmallGpt(nn.Module):
    """A decoder of characters; gives logits of shape (batch, length, characters)."""

    def __init__(self, shape: Shape = SMALL) -> None:
        super().__init__()
        self.tokens = nn.Embedding(len(ALPHABET), shape.width)
        self.places = nn.Parameter(torch.zeros(shape.length, shape.width))
        self.blocks = nn.ModuleList(_Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, len(ALPHABET), bias=False)

    def forward(self, text: Tensor) -> Tensor:
        """Logits of the next character at each place."""
        hidden = self.tokens(text) + self.places
        for block in self.blocks:
            hidden = block(hidden)
        logits: Tensor = self.head(self.norm(hidden))
        return logits


class _Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = nn.Linear(shape.width, 3 * shape.width)
        self.joined = nn.Linear(shape.width, shape.width)
        self.wide, self.narrow = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        parts = self.attention(self.norm1(hidden)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.joined(seen.transpose(1, 2).reshape(batch, length, width))
        narrowed: Tensor = self.narrow(functional.gelu(self.wide(self.norm2(hidden)), approximate="tanh"))
        return hidden + narrowed


def loss(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy of the next character."""
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def text_rows(rows: int, length: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows of text and of the characters that follow, int64, each of shape (rows, length)."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(0, 50, (rows * length, 2), generator=generator)
    text = "".join(f"{a}+{b}={a + b};" for a, b in numbers.tolist())
    codes = torch.tensor([ALPHABET.index(character) for character in text[: rows * length + 1]])
    return codes[:-1].view(rows, length).contiguous(), codes[1:].view(rows, length).contiguous()


def small_gpt(shape: Shape = SMALL, seed: int = 0) -> SmallGpt:
    """A network with weights of a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SmallGpt(shape)
