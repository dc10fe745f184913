"""Disputes about steps of Llama-1B and Llama-8B, computed from their programs: nobody here could execute one.

The models have no numbers (torch's meta device). A step's time is its work at the measured speed of a small GPT.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lab.benchmarks.dispute_memory import gpt
from lab.benchmarks.figure import Figure
from lab.benchmarks.measured_models import next_token_loss
from pol.dispute.dispute_needs import DisputeNeeds
from pol.dispute.dispute_seconds import Speeds, dispute_seconds
from pol.dispute.encoding.move_gas import gas_of
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import CapturedShapes, capture_shapes
from pol.graph.work_estimate import step_work
from pol.roles.party.machine import MachineSpeeds, time_work

TOKENS, INTERVAL = 4096, 10
"""Of one text in a batch; steps of a segment."""
GB = 1e9


@dataclass(frozen=True)
class Size:
    """The shape of a Llama."""

    width: int
    layers: int
    hidden: int
    tied: bool
    heads: int = 32
    key_heads: int = 8
    vocabulary: int = 128_256


SIZES: Mapping[str, Size] = {
    "llama_1b": Size(2048, 16, 8192, tied=True),
    "llama_8b": Size(4096, 32, 14_336, tied=False),
}


def captured(size: Size, tokens: int = TOKENS) -> CapturedShapes:
    """A step of AdamW on one text, with the transformers library's own model."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        intermediate_size=size.hidden,
        num_attention_heads=size.heads,
        num_key_value_heads=size.key_heads,
        vocab_size=size.vocabulary,
        max_position_embeddings=tokens,
        tie_word_embeddings=size.tied,
        use_cache=False,
    )
    with torch.device("meta"):
        model: nn.Module = LlamaForCausalLM(config)
    texts = torch.zeros(1, tokens, dtype=torch.int64)

    def loss(output: Any, target: Tensor) -> Tensor:
        return next_token_loss(output.logits, target)

    order = torch.zeros(1, 1, dtype=torch.int64)
    return capture_shapes(model, loss, torch.optim.AdamW(model.parameters()), (texts, texts), order)


def seconds_of_work() -> float:
    """Of one work unit of a step on this machine."""
    known = gpt(check=False)
    executor = CpuExecutor(known.program, known.constants, threads=0)
    seconds = time_work(lambda: executor.advance(known.state, 0), time.perf_counter)
    return seconds / step_work(known.program)


def llama_figures() -> dict[str, Figure]:
    """Moves, calldata, gas, memory and time of a dispute about a segment of ten steps."""
    figures: dict[str, Figure] = {}
    unit, machine = seconds_of_work(), MachineSpeeds.measured(time.perf_counter)
    for name, size in SIZES.items():
        program = captured(size).program
        needs = DisputeNeeds(program, INTERVAL)
        step = step_work(program) * unit
        taken = dispute_seconds(needs, Speeds(step, machine.hashing, machine.folding))
        _, proof = needs.dearest_proof
        found = {
            "nodes": Figure(len(program.nodes), "nodes"),
            "moves": Figure(needs.moves, "moves"),
            **{f"moves_{each.level.name.lower()}": Figure(each.moves, "moves") for each in needs.levels},
            "largest_calldata": Figure(max(each.calldata for each in needs.levels), "bytes"),
            "dearest_move_gas": Figure(gas_of(needs.dearest_move), "gas"),
            "dearest_proof_gas": Figure(gas_of(proof), "gas"),
            "longest_fold": Figure(needs.longest_fold.terms, "terms"),
            "trace": Figure(needs.trace_bytes / GB, "GB of all outputs of a step"),
            "state": Figure(needs.state_bytes / GB, "GB"),
            "segment_states": Figure(INTERVAL * needs.state_bytes / GB, "GB that are hashed"),
            "held": Figure(needs.memory / GB, "GB at the worst moment"),
            "largest_node": Figure(needs.node_bytes / GB, "GB of an output and its operands"),
            "step_seconds": Figure(step, "s, extrapolated from a GPT of 10 million parameters"),
            "replay_seconds": Figure(taken.replay, "s before the first move, or after a restart"),
            "trace_seconds": Figure(taken.trace, "s to execute and hash the disputed step"),
            "trace_hash_seconds": Figure(taken.trace - step, "s of it to hash"),
            "proof_seconds": Figure(taken.proof, "s to hash what a proof shows"),
            "fold_seconds": Figure(taken.fold, "s to follow the longest fold"),
            "side_seconds": Figure(taken.all, "s of all moves of one side"),
        }
        figures |= {f"{name}_{part}": figure for part, figure in found.items()}
    return figures


def write_program(name: str, file: Path) -> None:
    """Write the step program of a model, for ``pol explain FILE --dispute``."""
    file.write_bytes(captured(SIZES[name]).program.to_bytes())


if __name__ == "__main__":
    import sys

    write_program(sys.argv[1], Path(sys.argv[2]))
