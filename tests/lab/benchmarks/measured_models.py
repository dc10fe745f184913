"""Models whose training steps are measured: ordinary PyTorch code."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class GPTSize:
    """Sizes of a GPT; dropout is the probability that an activation is left out."""

    vocabulary: int = 65
    block: int = 256
    layers: int = 6
    heads: int = 6
    width: int = 384
    dropout: float = 0.0
    joint_bias: bool = True
    """One bias for queries, keys and values; by tolerance, with AdamW, no task with it is admitted (docs/adr/0039)."""


class _CausalAttention(nn.Module):
    """Attention of every position to itself and those before it."""

    def __init__(self, size: GPTSize) -> None:
        super().__init__()
        self.heads = size.heads
        self.probability = size.dropout
        self.joint = nn.Linear(size.width, 3 * size.width, bias=size.joint_bias)
        self.out = nn.Linear(size.width, size.width)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.joint(x).split(width, dim=2)
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in parts
        )
        probability = self.probability if self.training else 0.0
        y = functional.scaled_dot_product_attention(query, key, value, dropout_p=probability, is_causal=True)
        joined: Tensor = self.dropout(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return joined


class _GPTBlock(nn.Module):
    """Attention and a two-layer network, each added to its normalised input."""

    def __init__(self, size: GPTSize) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(size.width)
        self.attention = _CausalAttention(size)
        self.norm_2 = nn.LayerNorm(size.width)
        self.network = nn.Sequential(
            nn.Linear(size.width, 4 * size.width),
            nn.GELU(),
            nn.Linear(4 * size.width, size.width),
            nn.Dropout(size.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        y: Tensor = x + self.network(self.norm_2(x))
        return y


class GPT(nn.Module):
    """A decoder over tokens (batch, length) with learned positions; the head shares its weight with the embedding."""

    def __init__(self, size: GPTSize) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.block, size.width)
        self.dropout = nn.Dropout(size.dropout)
        self.blocks = nn.ModuleList(_GPTBlock(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        self.apply(_small_weights)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores (batch, length, vocabulary) of the next token."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.positions(positions))
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(self.norm(x))
        return scores


@dataclass(frozen=True)
class LlamaSize:
    """Sizes of a Llama; several heads of queries share one head of keys and values."""

    vocabulary: int = 256
    layers: int = 4
    heads: int = 8
    key_heads: int = 4
    width: int = 256
    hidden: int = 688
    base: float = 10000.0


class _Rotary(nn.Module):
    """Turns pairs of features by angles that grow with the position."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, features: int, longest: int, base: float) -> None:
        super().__init__()
        frequencies = base ** -(torch.arange(0, features, 2, dtype=torch.float32) / features)
        angles = torch.outer(torch.arange(longest, dtype=torch.float32), frequencies).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-2]
        first, second = x.chunk(2, dim=-1)
        return x * self.cosine[:length] + torch.cat((-second, first), dim=-1) * self.sine[:length]


class _GroupedAttention(nn.Module):
    """Causal attention with rotated queries and keys."""

    def __init__(self, size: LlamaSize, longest: int) -> None:
        super().__init__()
        self.features = size.width // size.heads
        self.query = nn.Linear(size.width, size.heads * self.features, bias=False)
        self.key = nn.Linear(size.width, size.key_heads * self.features, bias=False)
        self.value = nn.Linear(size.width, size.key_heads * self.features, bias=False)
        self.out = nn.Linear(size.width, size.width, bias=False)
        self.rotary = _Rotary(self.features, longest, size.base)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (
            layer(x).view(batch, length, -1, self.features).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        y = functional.scaled_dot_product_attention(
            self.rotary(query), self.rotary(key), value, is_causal=True, enable_gqa=True
        )
        joined: Tensor = self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return joined


class _LlamaBlock(nn.Module):
    """Attention and a gated network, each added to its normalised input."""

    def __init__(self, size: LlamaSize, longest: int) -> None:
        super().__init__()
        self.norm_1 = nn.RMSNorm(size.width, eps=1e-5)
        self.attention = _GroupedAttention(size, longest)
        self.norm_2 = nn.RMSNorm(size.width, eps=1e-5)
        self.gate = nn.Linear(size.width, size.hidden, bias=False)
        self.up = nn.Linear(size.width, size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, size.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        y = self.norm_2(x)
        z: Tensor = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        return z


class Llama(nn.Module):
    """A decoder over tokens (batch, length) with rotary positions and grouped-query attention."""

    def __init__(self, size: LlamaSize, longest: int = 256) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList(_LlamaBlock(size, longest) for _ in range(size.layers))
        self.norm = nn.RMSNorm(size.width, eps=1e-5)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        self.apply(_small_weights)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores (batch, length, vocabulary) of the next token."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(self.norm(x))
        return scores


def next_token_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of scores (batch, length, vocabulary) against tokens (batch, length)."""
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def _small_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


class _Residual(nn.Module):
    """Two convolutions whose result is added to the input; a 1x1 convolution fits the input to another size."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv2d(channels, outputs, 3, stride, padding=1, bias=False)
        self.norm_1 = nn.BatchNorm2d(outputs)
        self.conv_2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm_2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm_1(self.conv_1(x)))
        y = self.norm_2(self.conv_2(y)) + self.shortcut(x)
        return functional.relu(y)


class ResNet18(nn.Module):
    """Four stages of two residual blocks over images (batch, 3, height, width); scores of `classes`.

    `stem` is "small" for 32x32 images (a 3x3 convolution) or "large" for 224x224 (7x7 with stride, and a maximum).
    """

    def __init__(self, classes: int = 10, width: int = 64, stem: str = "small") -> None:
        super().__init__()
        small = stem == "small"
        self.conv = nn.Conv2d(3, width, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.pool: nn.Module = nn.Identity() if small else nn.MaxPool2d(3, 2, padding=1)
        widths = [width * 2**stage for stage in range(4)]
        blocks: list[nn.Module] = []
        channels = width
        for stage, outputs in enumerate(widths):
            blocks += [_Residual(channels, outputs, 1 if stage == 0 else 2), _Residual(outputs, outputs, 1)]
            channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        x = self.pool(functional.relu(self.norm(self.conv(x))))
        x = functional.adaptive_avg_pool2d(self.blocks(x), 1)
        scores: Tensor = self.head(x.flatten(1))
        return scores
