"""The small GPT cut into stages, each with its weights in one vector."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call

from pol.decentralised.parts import small_gpt


class GptStage(nn.Module):
    """Some blocks of a network; the first stage has its embeddings, too, the last one its head."""

    def __init__(self, gpt: small_gpt.SmallGpt, number: int, stages: int) -> None:
        super().__init__()
        count = len(gpt.blocks)
        blocks = list(gpt.blocks)[number * count // stages : (number + 1) * count // stages]
        self.blocks = nn.ModuleList(blocks)
        self.block_size = sum(parameter.numel() for block in blocks for parameter in block.parameters())
        is_first, is_last = number == 0, number == stages - 1
        self.tokens = gpt.tokens if is_first else None
        self.places = gpt.places if is_first else None
        self.norm = gpt.norm if is_last else None
        self.head = gpt.head if is_last else None

    def forward(self, given: Tensor) -> Tensor:
        """Text (batch, length) or activations (batch, length, width) in; activations or logits out."""
        hidden = given
        if self.tokens is not None and self.places is not None:
            hidden = self.tokens(given) + self.places
        for block in self.blocks:
            hidden = block(hidden)
        if self.norm is not None and self.head is not None:
            hidden = self.head(self.norm(hidden))
        return hidden

    def vector(self) -> Tensor:
        """All weights, those of the blocks first: they stand at the same place in the vectors of all stages."""
        return torch.cat([parameter.detach().reshape(-1) for parameter in self._ordered().values()])

    def _ordered(self) -> dict[str, nn.Parameter]:
        return dict(sorted(self.named_parameters(), key=lambda item: not item[0].startswith("blocks.")))

    def run(self, weights: Tensor, given: Tensor) -> Tensor:
        """`forward` with weights in a vector."""
        named = self._ordered()
        pieces = torch.split(weights, [math.prod(parameter.shape) for parameter in named.values()])
        parts = {
            name: piece.view(parameter.shape) for (name, parameter), piece in zip(named.items(), pieces, strict=True)
        }
        result: Tensor = functional_call(self, parts, (given,))
        return result


def gpt_stages(shape: small_gpt.Shape, stages: int) -> list[GptStage]:
    """The stages of the network of a seed."""
    gpt = small_gpt.small_gpt(shape)
    return [GptStage(gpt, number, stages) for number in range(stages)]
