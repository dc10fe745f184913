"""A small GPT trained on this repository's documentation, with products of float32 and of int8, both exact."""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

import pol
from lab.benchmarks.figure import ROOT, Figure
from lab.benchmarks.measured_models import GPT, GPTSize, next_token_loss
from pol.training.exact.int8_linear import with_int8_products

SIZE = GPTSize(vocabulary=128, block=64, layers=2, heads=4, width=128)
STEPS, BATCH, LAST = 400, 16, 50
"""Steps of a training, texts of a step, and the last steps over which losses are averaged."""


def int8_figures(steps: int = STEPS) -> dict[str, Figure]:
    """The mean loss of the last steps, and the time of all, beside those of float32."""
    floats, float_seconds = trained(steps, is_int8=False)
    integers, int8_seconds = trained(steps, is_int8=True)
    return {
        "int8_gpt_loss": _beside(_mean(integers), _mean(floats), "nats"),
        "int8_gpt_seconds": _beside(int8_seconds, float_seconds, "s"),
    }


def trained(steps: int, is_int8: bool) -> tuple[list[float], float]:
    """The loss of every step, and the seconds of all without the capture."""
    text = _text()
    draws = torch.Generator().manual_seed(1)
    with pol.TaskRandomness(2).initialization():
        model = GPT(SIZE)
    if is_int8:
        with_int8_products(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = pol.exact(model, next_token_loss, optimizer, pol.Loop(clip_norm=1.0), steps=steps)
    losses: list[float] = []
    began = time.perf_counter()
    for number in range(steps):
        starts = torch.randint(0, len(text) - SIZE.block - 1, (BATCH,), generator=draws)
        rows = torch.stack([text[start : start + SIZE.block + 1] for start in starts])
        losses.append(float(step(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())))
        if number == 0:
            began = time.perf_counter()
    return losses, time.perf_counter() - began


def _text() -> Tensor:
    """The guides and the specification, in ASCII."""
    pages = sorted([*(ROOT / "docs/guides").glob("*.md"), *(ROOT / "docs/spec").glob("*.md")])
    content = "".join(page.read_text() for page in pages).encode("ascii", "replace")
    return torch.tensor(list(content))


def _mean(losses: Sequence[float]) -> float:
    last = losses[-LAST:]
    return sum(last) / len(last)


def _beside(ours: float, peer: float, unit: str) -> Figure:
    return Figure(ours, unit, "products of float32", ours / peer)
