"""The step programs of a pipeline: a stage's forward pass, the last stage's both passes, backward passes, updates."""

from __future__ import annotations

import torch
from torch import Tensor

from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.flat_adam import MOMENTS, adam_start, adam_step
from pol.decentralised.parts.gpt_stages import GptStage
from pol.decentralised.pipelines.activation_codec import ActivationCodec, Sample, Slots
from pol.graph.capture.functions import StepFunction, capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component

SEEN_IN, SEEN_OUT = "seen.in", "seen.out"
"""Buffers of codecs, of what was received and of what was sent."""


class PipelineSteps:
    """Captures the programs of the stages; a micro-batch's rows are ``order[step]``.

    ``text`` and ``following`` are int64 tensors (rows, length), ``order`` int64 (micro-batches, batch).
    """

    def __init__(
        self, stages: list[GptStage], text: Tensor, following: Tensor, order: Tensor, codec: ActivationCodec
    ) -> None:
        self._stages, self._codec = stages, codec
        self._text, self._following, self._order = text, following, order
        self._like = stages[0].vector().new_zeros(order.shape[1], text.shape[1], _width_of(stages))

    def forward(self, number: int) -> Capture:
        """Weights, and what has come in, to what goes out."""
        codec, stage = self._codec, self._stages[number]

        def step(state: Slots, known: Slots, at: Tensor) -> Slots:
            sample = self._sample(known, at)
            given, kept = self._given(number, state, sample)
            message, seen = codec.encode(stage.run(state["weights"], given), state.get(SEEN_OUT), sample)
            return {**_named("out", message), **kept, **_buffer(SEEN_OUT, seen)}

        return self._captured(number, step, {**self._incoming(number), **self._outgoing()})

    def head(self) -> Capture:
        """The last stage: loss, gradient of its weights, gradient of what has come in."""
        codec, number = self._codec, len(self._stages) - 1
        stage = self._stages[number]

        def step(state: Slots, known: Slots, at: Tensor) -> Slots:
            sample = self._sample(known, at)
            given, kept = self._given(number, state, sample)
            weights, given = (tensor.detach().requires_grad_() for tensor in (state["weights"], given))
            loss = small_gpt.loss(stage.run(weights, given), known["following"].index_select(0, sample.rows))
            gradient, back = torch.autograd.grad(loss, [weights, given])
            kept.pop("given", None)
            sent = codec.encode_gradient(back, sample)
            return {**_named("back", sent), **kept, "gradient": gradient, "loss": loss.detach()}

        state = {**self._incoming(number), **self._backward_message("back")}
        state.pop("given", None)
        return self._captured(number, step, {**state, "gradient": torch.zeros_like(stage.vector()), "loss": _zero()})

    def backward(self, number: int) -> Capture:
        """What a stage before the last one makes of the gradient that comes back; it repeats its forward pass."""
        codec, stage = self._codec, self._stages[number]

        def step(state: Slots, known: Slots, at: Tensor) -> Slots:
            sample = self._sample(known, at)
            weights = state["weights"].detach().requires_grad_()
            given = sample.known["text"].index_select(0, sample.rows) if not number else state["given"].detach()
            back = codec.decode_gradient(_unnamed("from", state), sample)
            wanted = [weights, given.requires_grad_()] if number else [weights]
            gradients = torch.autograd.grad(stage.run(weights, given), wanted, back)
            sent = _named("back", codec.encode_gradient(gradients[1], sample)) if number else {}
            return {**sent, "gradient": gradients[0]}

        state = {**self._backward_message("from"), "gradient": torch.zeros_like(stage.vector())}
        if number:
            state |= {"given": self._like, **self._backward_message("back")}
        return self._captured(number, step, state)

    def update(self, number: int, parts: int, rate: float) -> Capture:
        """AdamW with the mean of the gradients of all micro-batches, in their order."""
        weights = self._stages[number].vector()

        def step(state: Slots, _: Slots, __: Tensor) -> Slots:
            total = state["gradient.0"]
            for part in range(1, parts):
                total = total + state[f"gradient.{part}"]
            return adam_step(state["weights"], total * (1 / parts), state, rate)

        gradients = {f"gradient.{part}": torch.zeros_like(weights) for part in range(parts)}
        kinds = dict.fromkeys(MOMENTS, Component.OPTIMIZER) | dict.fromkeys(gradients, Component.BUFFER)
        state = {"weights": weights, **adam_start(weights), **gradients}
        return capture_function(step, state, components=kinds)

    def _captured(self, number: int, step: StepFunction, state: Slots) -> Capture:
        known = {"text": self._text, "following": self._following, "order": self._order, **self._codec.constants()}
        kinds = dict.fromkeys(state, Component.BUFFER)
        return capture_function(step, {"weights": self._stages[number].vector(), **state}, known, components=kinds)

    def _given(self, number: int, state: Slots, sample: Sample) -> tuple[Tensor, Slots]:
        """What a stage computes with, and the slots that keep what it has received."""
        if not number:
            return sample.known["text"].index_select(0, sample.rows), {}
        given, seen = self._codec.decode(_unnamed("in", state), state.get(SEEN_IN), sample)
        return given, {"given": given, **_buffer(SEEN_IN, seen)}

    def _incoming(self, number: int) -> Slots:
        if not number:
            return {}
        kept = {"given": self._like, **_buffer(SEEN_IN, self._first_buffer())}
        return {**_named("in", self._message()), **kept}

    def _outgoing(self) -> Slots:
        return {**_named("out", self._message()), **_buffer(SEEN_OUT, self._first_buffer())}

    def _first_buffer(self) -> Tensor | None:
        return self._codec.buffer(len(self._text), self._like)

    def _message(self) -> Slots:
        return _zeros(self._codec.encode(self._like, self._first_buffer(), self._first_sample())[0])

    def _backward_message(self, prefix: str) -> Slots:
        return _named(prefix, _zeros(self._codec.encode_gradient(self._like, self._first_sample())))

    def _first_sample(self) -> Sample:
        return self._sample(
            {"text": self._text, "order": self._order, **self._codec.constants()}, _zero().to(torch.int64)
        )

    def _sample(self, known: Slots, at: Tensor) -> Sample:
        rows = known["order"].index_select(0, at.reshape(1)).squeeze(0)
        return Sample(rows, at, known, self._like.shape)


def _width_of(stages: list[GptStage]) -> int:
    """Numbers of an activation for each character."""
    tokens = stages[0].tokens
    assert tokens is not None
    return tokens.embedding_dim


def _named(prefix: str, message: Slots) -> Slots:
    return {f"{prefix}.{name}": tensor for name, tensor in message.items()}


def _unnamed(prefix: str, state: Slots) -> Slots:
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in state.items() if name.startswith(start)}


def _buffer(name: str, seen: Tensor | None) -> Slots:
    return {} if seen is None else {name: seen}


def _zeros(message: Slots) -> Slots:
    return {name: torch.zeros_like(tensor) for name, tensor in message.items()}


def _zero() -> Tensor:
    return torch.zeros(())
