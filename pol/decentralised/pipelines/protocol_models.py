"""Activations in a subspace, as in Protocol Models: the sender projects onto a basis and sends the coefficients.

Ramasinghe et al. (Pluralis), Protocol Models: Scaling Decentralized Training with Communication-Efficient Model
Parallelism, 2506.01260. What a fixed embedding gives for each character is known to both sides and isn't sent. The
bases are constants of the plan: one for some micro-batches, each a little turned against the one before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.activation_codec import ActivationCodec, Sample, Slots
from pol.decentralised.pipelines.pipeline import Pipeline, pipeline_plan
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

BASES = "bases"
TURN = 0.05


class Subspace(ActivationCodec):
    """``rank`` coefficients instead of a whole activation; a basis lasts for ``lasts`` micro-batches."""

    def __init__(self, options: Pipeline, rank: int, lasts: int) -> None:
        first = gpt_stages(options.shape, options.stages)[0]
        assert first.tokens is not None
        assert first.places is not None
        count = -(-options.rounds * options.parts // lasts)
        self._lasts = lasts
        self._constants = {
            BASES: turned_bases(count, options.shape.width, rank),
            "anchor.tokens": first.tokens.weight.detach(),
            "anchor.places": first.places.detach(),
        }

    def constants(self) -> Slots:
        """The bases, and the fixed part of activations."""
        return self._constants

    def encode(self, hidden: Tensor, seen: Tensor | None, sample: Sample) -> tuple[Slots, Tensor | None]:
        """Coefficients of what the anchor doesn't give."""
        return {"coefficients": (hidden - _anchor(sample)) @ self._basis(sample)}, seen

    def decode(self, message: Slots, seen: Tensor | None, sample: Sample) -> tuple[Tensor, Tensor | None]:
        """The activation in the subspace."""
        return message["coefficients"] @ self._basis(sample).T + _anchor(sample), seen

    def encode_gradient(self, gradient: Tensor, sample: Sample) -> Slots:
        """The gradient of the coefficients."""
        return {"coefficients": gradient @ self._basis(sample)}

    def decode_gradient(self, message: Slots, sample: Sample) -> Tensor:
        """The gradient of the activation before its projection."""
        return message["coefficients"] @ self._basis(sample).T

    def _basis(self, sample: Sample) -> Tensor:
        number = torch.div(sample.step, self._lasts, rounding_mode="floor")
        return sample.known[BASES].index_select(0, number.reshape(1)).squeeze(0)


def turned_bases(count: int, width: int, rank: int) -> Tensor:
    """Orthonormal bases (count, width, rank), each a little turned against the one before."""
    generator = torch.Generator().manual_seed(7)
    basis = torch.linalg.qr(torch.randn(width, rank, generator=generator)).Q
    bases = [basis]
    while len(bases) < count:
        basis = torch.linalg.qr(basis + TURN * torch.randn(width, rank, generator=generator)).Q
        bases.append(basis)
    return torch.stack(bases)


def protocol_models_plan(
    store: Store, options: Pipeline, coordinator: str, nonce: bytes, rank: int = 16, lasts: int = 4
) -> RoundsPlan:
    """The plan of a training whose stages exchange coefficients, stored."""
    return pipeline_plan(store, options, coordinator, nonce, Subspace(options, rank, lasts))


def _anchor(sample: Sample) -> Tensor:
    text = sample.known["text"].index_select(0, sample.rows)
    return torch.nn.functional.embedding(text, sample.known["anchor.tokens"]) + sample.known["anchor.places"]
