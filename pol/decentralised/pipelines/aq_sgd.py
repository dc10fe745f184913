"""AQ-SGD on a pipeline: a message is the quantized change of an activation since its sample was seen last.

Wang et al., Fine-tuning Language Models over Slow Networks using Activation Compression with Guarantees, 2206.01299.
Both sides keep what the receiver knows of each sample, in a slot of their state: the two slots have to have one root.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pol.decentralised.parts.quantization import dequantized, flat, quantized
from pol.decentralised.pipelines.activation_codec import ActivationCodec, Sample, Slots
from pol.decentralised.pipelines.pipeline import HEAD, Pipeline, forward, pipeline_plan
from pol.decentralised.pipelines.pipeline_steps import SEEN_IN, SEEN_OUT
from pol.decentralised.processes.local_processes import local_key
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.message import slots_of
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store


class AqSgd(ActivationCodec):
    """int8 of the change to the buffer; gradients are int8 as they are."""

    def buffer(self, rows: int, like: Tensor) -> Tensor:
        """Zeros: the first change of a sample is its activation."""
        return torch.zeros(rows, *like.shape[1:])

    def encode(self, hidden: Tensor, seen: Tensor | None, sample: Sample) -> tuple[Slots, Tensor | None]:
        """The change of each activation of the micro-batch."""
        assert seen is not None
        packed, scale = quantized(flat([hidden - seen.index_select(0, sample.rows)]))
        message = {"packed": packed, "scale": scale}
        return message, self.decode(message, seen, sample)[1]

    def decode(self, message: Slots, seen: Tensor | None, sample: Sample) -> tuple[Tensor, Tensor | None]:
        """What the receiver knows after the change."""
        assert seen is not None
        before = seen.index_select(0, sample.rows)
        hidden = before + _numbers(message, before)
        return hidden, seen.index_put((sample.rows,), hidden)

    def encode_gradient(self, gradient: Tensor, sample: Sample) -> Slots:
        """int8 of a gradient."""
        packed, scale = quantized(flat([gradient]))
        return {"packed": packed, "scale": scale}

    def decode_gradient(self, message: Slots, sample: Sample) -> Tensor:
        """The gradient of the rows of a micro-batch."""
        return _numbers(message, torch.empty(sample.shape))


def aq_sgd_plan(store: Store, options: Pipeline, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of a training through two stages, one worker each, stored."""
    return pipeline_plan(store, options, coordinator, nonce, AqSgd())


def fixed_roster(plan: RoundsPlan, round_: int, present: list[int], parts: int) -> Roster:
    """The roster of local workers, one a stage: a buffer belongs to a pair of workers, so that routes don't change."""
    members = tuple(Member(local_key(number).name, number, role=f"stage {number}") for number in present)
    return Roster(plan.digest, round_, members, routes=(tuple(range(len(present))),) * parts)


def buffers_out_of_step(rounds: LoggedRounds) -> list[tuple[ClaimEntry, ClaimEntry]]:
    """The claims of a sender and its receiver after which their buffers have other roots; nothing is replayed.

    One of the two has lied, which their claims' replay says.
    """
    plan = rounds.plan
    slots = {
        name: slots_of(load_phase(rounds.store, plan.phases[plan.phase_index(name, 2)]).names, [buffer])[0]
        for name, buffer in ((forward(0), SEEN_OUT), (HEAD, SEEN_IN))
    }
    found: dict[tuple[int, int], dict[str, ClaimEntry]] = {}
    for entry in rounds.claims.values():
        name = plan.phases[entry.claim.phase].name
        if name in slots:
            found.setdefault((entry.claim.round, entry.claim.part), {})[name] = entry
    pairs = [(both[forward(0)], both[HEAD]) for both in found.values() if len(both) == len(slots)]
    return [
        (sender, receiver)
        for sender, receiver in pairs
        if rounds.end(sender)[slots[forward(0)]].root != rounds.end(receiver)[slots[HEAD]].root
    ]


def _numbers(message: Slots, like: Tensor) -> Tensor:
    return dequantized(message["packed"], message["scale"])[: like.numel()].view(like.shape)
