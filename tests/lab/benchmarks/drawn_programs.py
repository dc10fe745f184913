"""Drawn training steps of mixed operations, types and shapes, and whether a capture of them is another training.

The judge knows nothing of the self-check: it runs the user's eager step and the canonical one from the same state and
compares losses, gradients and next states. How far rounding may part them it learns from eager steps on operands, and
with results of operations, that are off by some roundings. A step next to a jump (a floor, a tie that rounding breaks)
parts once; a program that is another training parts again on other rows.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from lab.benchmarks.figure import Figure
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.stock_torch.defined_results import DefinedResults
from pol.graph.capture import Capture, Loop, capture

ROWS, BATCH, STEPS, WIDTH = 16, 4, 3, 6
COUNT = 2000
"""Programs that `pol bench capture` draws."""
Choose = Callable[[int], int]
"""A number below the given one: of a seeded generator, or of hypothesis."""
Layer = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From floats (rows, WIDTH), integers (rows, WIDTH) and a trained matrix (WIDTH, WIDTH) to floats (rows, WIDTH)."""


def _attention(x: Tensor, n: Tensor, w: Tensor) -> Tensor:
    y = (x @ w).reshape(1, 1, -1, WIDTH)
    return functional.scaled_dot_product_attention(y, y, y, is_causal=True).reshape(x.shape)


def _image(x: Tensor) -> Tensor:
    return x.reshape(-1, 1, 2, WIDTH // 2)


def _routed(x: Tensor, n: Tensor, w: Tensor) -> Tensor:
    values, places = (x @ w).softmax(-1).topk(2, -1)
    return torch.zeros_like(x).scatter(1, places, values) + x


LAYERS: Mapping[str, Layer] = {
    "linear": lambda x, n, w: x @ w,
    "residual": lambda x, n, w: x + torch.tanh(x @ w),
    "relu": lambda x, n, w: torch.relu(x @ w),
    "gelu": lambda x, n, w: functional.gelu(x),
    "gelu tanh": lambda x, n, w: functional.gelu(x, approximate="tanh"),
    "silu": lambda x, n, w: functional.silu(x),
    "elu": lambda x, n, w: functional.elu(x),
    "softplus": lambda x, n, w: functional.softplus(x),
    "hardtanh": lambda x, n, w: functional.hardtanh(x),
    "leaky": lambda x, n, w: functional.leaky_relu(x, 0.1),
    "exp": lambda x, n, w: torch.exp(-x.abs()),
    "log": lambda x, n, w: torch.log1p(x.abs()),
    "sqrt": lambda x, n, w: torch.sqrt(x * x + 0.5),
    "rsqrt": lambda x, n, w: x * torch.rsqrt(x * x + 1),
    "waves": lambda x, n, w: torch.sin(x) + torch.cos(2 * x),
    "power": lambda x, n, w: (x.abs() + 0.5) ** 1.5,
    "erf": lambda x, n, w: torch.erf(x),
    "reciprocal": lambda x, n, w: 1 / (x.abs() + 1),
    "floor": lambda x, n, w: x - torch.floor(x * 4) / 4,
    "round": lambda x, n, w: x + torch.round(x * 3),
    "whole quotient": lambda x, n, w: x + x.detach() // 0.25,
    "rest": lambda x, n, w: x + torch.remainder(x.detach(), 0.3),
    "fmod": lambda x, n, w: x + torch.fmod(x.detach(), -0.7),
    "cut quotient": lambda x, n, w: x + torch.div(x.detach(), 0.1, rounding_mode="trunc"),
    "sign": lambda x, n, w: x + torch.sign(x),
    "clamp": lambda x, n, w: x.clamp(-0.7, 0.9),
    "maximum": lambda x, n, w: torch.maximum(x, x @ w),
    "minimum": lambda x, n, w: torch.minimum(x, -x),
    "where": lambda x, n, w: torch.where(x > 0.1, x, x @ w),
    "masked": lambda x, n, w: x.masked_fill(n > 3, -2.0),
    "softmax": lambda x, n, w: torch.softmax(x @ w, -1),
    "log softmax": lambda x, n, w: torch.log_softmax(x, 0),
    "logsumexp": lambda x, n, w: x - torch.logsumexp(x, -1, keepdim=True),
    "layer norm": lambda x, n, w: functional.layer_norm(x, (WIDTH,), w[0], w[1]),
    "group norm": lambda x, n, w: functional.group_norm(x.unsqueeze(-1).expand(-1, -1, 2), 3).mean(-1),
    "batch norm": lambda x, n, w: functional.batch_norm(x, None, None, training=True),
    "norm": lambda x, n, w: x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + 1),
    "std": lambda x, n, w: x / (x.std(-1, keepdim=True) + 1),
    "variance": lambda x, n, w: x - x.var(0),
    "sum": lambda x, n, w: x + x.sum(0),
    "mean": lambda x, n, w: x - x.mean(-1, keepdim=True),
    "product": lambda x, n, w: x + (x * 0.5 + 1).prod(-1, keepdim=True),
    "cumsum": lambda x, n, w: x.cumsum(-1),
    "amax": lambda x, n, w: x - x.amax(-1, keepdim=True),
    "max": lambda x, n, w: x + x.max(-1, keepdim=True).values,
    "argmax": lambda x, n, w: x + x.argmax(-1, keepdim=True),
    "sort": lambda x, n, w: x.sort(-1).values @ w,
    "descending": lambda x, n, w: x + x.sort(0, descending=True).indices,
    "topk": lambda x, n, w: torch.cat([x.topk(3, -1).values, x.topk(3, -1, largest=False).values], -1),
    "router": _routed,
    "gather": lambda x, n, w: x.gather(1, n.remainder(WIDTH)),
    "scatter add": lambda x, n, w: torch.zeros_like(x).scatter_add(1, n.remainder(WIDTH), x),
    "index": lambda x, n, w: x[:, [3, 1, 0, 2, 5, 4]],
    "index add": lambda x, n, w: x.index_add(1, torch.tensor([0, 2, 2]), x[:, :3]),
    "embedding": lambda x, n, w: x + functional.embedding(n[:, 0].remainder(WIDTH), w),
    "one hot": lambda x, n, w: x + functional.one_hot(n.remainder(WIDTH), WIDTH).float().sum(1),
    "integers": lambda x, n, w: x + (n * 37 + 11).remainder(101).float() / 101,
    "hash": lambda x, n, w: x + ((n.remainder(2000) * 1000003).remainder(1009)).float() / 1009,
    "large integers": lambda x, n, w: x + (n * 1000003).remainder(1009).float() / 1009,
    "integer sums": lambda x, n, w: x + n.sum(-1, keepdim=True).remainder(17).float(),
    "bits": lambda x, n, w: x + ((n & 6) ^ n.abs()).remainder(8).float(),
    "integer quotient": lambda x, n, w: x + (n // 7).remainder(5).float(),
    "integer order": lambda x, n, w: x + n.sort(-1).indices.float(),
    "to integers": lambda x, n, w: x + (x.detach().clamp(-9, 9) * 3).long().float(),
    "bfloat16": lambda x, n, w: x + (x.bfloat16() @ w.bfloat16()).float(),
    "roll": lambda x, n, w: x.roll(2, -1) + x.flip(-1),
    "pad": lambda x, n, w: functional.pad(x, (1, -1), value=0.5) + x,
    "triangle": lambda x, n, w: x @ w.tril(1) + (x @ x.T).triu().sum(0)[:, None],
    "reshape": lambda x, n, w: x.reshape(2, -1).T.reshape(x.shape) @ w,
    "stack": lambda x, n, w: torch.stack([x, x @ w], 1).mean(1),
    "repeat": lambda x, n, w: x.repeat(1, 2)[:, ::2],
    "cut": lambda x, n, w: torch.cat([part.flip(-1) for part in torch.chunk(x, 3, -1)], -1),
    "convolution": lambda x, n, w: functional.conv1d(x.unsqueeze(1), w[:1, :3].unsqueeze(1), padding=1).squeeze(1),
    "max pool": lambda x, n, w: x + functional.max_pool1d(x.unsqueeze(1), 2).squeeze(1).repeat(1, 2),
    "average pool": lambda x, n, w: x + functional.avg_pool2d(_image(x), (2, 1)).reshape(len(x), -1).repeat(1, 2),
    "interpolation": lambda x, n, w: functional.interpolate(_image(x), scale_factor=2)[:, 0, ::2, ::2].reshape(x.shape),
    "attention": _attention,
    "dropout": lambda x, n, w: functional.dropout(x, 0.3),
    "noise": lambda x, n, w: x + 0.1 * torch.randn_like(x),
}
"""Layers by name; `detach` stands where torch has no gradient of its own or says that it's zero."""
OPTIMIZERS: Sequence[Callable[[Any], torch.optim.Optimizer]] = (
    lambda p: torch.optim.SGD(p, lr=0.05),
    lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda p: torch.optim.AdamW(p, lr=0.01),
    lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    lambda p: torch.optim.Adagrad(p, lr=0.05),
)
LOOPS = (Loop(), Loop(clip_norm=0.5), Loop(accumulation=2), Loop(clip_value=0.1), Loop(ema=0.9))


class DrawnModel(nn.Module):
    """Layers one after another, each with a matrix; between them a buffer that follows the activations."""

    running: Tensor

    def __init__(self, layers: Sequence[str], is_tied: bool) -> None:
        super().__init__()
        self.layers = layers
        size = (WIDTH, WIDTH)
        made = [torch.zeros(size) if is_tied else torch.randn(size) * 0.4 for _ in layers]
        self.weights = nn.ParameterList(nn.Parameter(weight) for weight in made)
        self.head = nn.Linear(WIDTH, 3)
        self.register_buffer("running", torch.zeros(WIDTH))

    def forward(self, floats: Tensor, integers: Tensor) -> Tensor:
        """Class scores."""
        value = floats
        for name, weight in zip(self.layers, self.weights, strict=True):
            value = LAYERS[name](value, integers, weight)
        self.running = self.running * 0.9 + value.detach().mean(0) * 0.1
        return self.head(value)  # type: ignore[no-any-return]  # torch declares Any


@dataclass(frozen=True)
class Drawn:
    """A step to capture: what it is called, and what builds it anew."""

    layers: tuple[str, ...]
    optimizer: int
    loop: int
    data: int
    is_tied: bool
    seed: int

    def build(self) -> tuple[DrawnModel, torch.optim.Optimizer, tuple[Tensor, ...], Tensor]:
        """Model, optimizer, data set and order; the same ones every time."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            model = DrawnModel(self.layers, self.is_tied)
            optimizer = OPTIMIZERS[self.optimizer](model.parameters())
            return model, optimizer, _data(self.data), torch.randint(0, ROWS, (STEPS, BATCH))

    def captured(self, check: bool = True) -> Capture:
        """The capture; UnsupportedError where it refuses."""
        model, optimizer, data, order = self.build()
        return capture(model, functional.cross_entropy, optimizer, data, order, LOOPS[self.loop], 7, check)


def drawn(choose: Choose, seed: int = 0) -> Drawn:
    """A step of 1 to 5 layers."""
    names = list(LAYERS)
    layers = tuple(names[choose(len(names))] for _ in range(1 + choose(5)))
    return Drawn(layers, choose(len(OPTIMIZERS)), choose(len(LOOPS)), choose(4), choose(4) == 0, seed)


def _data(kind: int) -> tuple[Tensor, ...]:
    """Ordinary numbers, ties and zeros, large whole numbers, or numbers of very different size."""
    floats, integers = torch.randn(ROWS, WIDTH), torch.randint(0, 9, (ROWS, WIDTH))
    if kind == 1:
        floats, integers = floats.round() / 2, torch.randint(0, 2, (ROWS, WIDTH))
    elif kind == 2:
        floats, integers = floats * 8, torch.randint(-(2**30), 2**30, (ROWS, WIDTH))
    elif kind == 3:
        floats = floats * torch.logspace(-6, 2, WIDTH)
    return floats, integers, torch.randint(0, 3, (ROWS,))


def is_another_training(step: Drawn, captured: Capture) -> bool:
    """Whether the canonical step parts from the eager one beyond rounding, on every step of the order."""
    return all(_parts(step, captured, number) for number in range(STEPS))


def _parts(step: Drawn, captured: Capture, number: int) -> bool:
    eager = _eager(step, number, None)
    # Step 0 on another row of the order: an optimizer that counts begins at its first step.
    place = captured.names.constants.index("order")
    constants = list(captured.constants)
    constants[place] = np.roll(constants[place], -number, axis=0)
    words, _ = CpuExecutor(captured.program, constants).advance(captured.state, 0)
    ours = {}
    for name, word, slot in zip(captured.names.slots, words, captured.program.slots, strict=True):
        ours[name] = word.view(np.float32 if slot.type.dtype == 1 else np.int32).astype(np.float64)
    near = [_eager(step, number, seed) for seed in range(3)]
    for seed in range(3):
        with _Rounded(seed):
            near.append(_eager(step, number, None))
    for name, value in eager.items():
        spread = max(float(np.abs(other[name] - value).max()) for other in near)
        allowed = 64 * spread + 2.0**-18 * float(np.abs(value).max())
        if not float(np.abs(ours[name] - value).max()) <= allowed:
            return bool(np.isfinite(value).all())
    return False


class _Rounded(TorchDispatchMode):
    """Every float32 number that an operation has rounded is off by a rounding more.

    What is equal but for rounding, as the elements of a row that an operation has filled, has a spread by it. What
    is only moved, and what has few bits, stays, and so do ties in the data.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch declares no types
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The results of an operation, rounded anew."""
        found = func(*args, **(kwargs or {}))
        if func.is_view or func._schema.is_mutable or func.namespace != "aten":
            return found
        given = [
            item.flatten() for item in tree_leaves(args) if isinstance(item, Tensor) and item.dtype == torch.float32
        ]
        known = torch.cat(given) if given else torch.empty(0)
        return tree_map_only(Tensor, lambda value: self._nudged(value, known), found)

    def _nudged(self, value: Tensor, known: Tensor) -> Tensor:
        if value.dtype != torch.float32 or torch.isin(value, known).all():
            return value
        has_few_bits = (value * 256).frac().eq(0) & value.abs().lt(2**15)
        nudge = 2.0**-23 * (2 * torch.rand(value.shape, generator=self._generator) - 1)
        return torch.where(has_few_bits, value, value * (1 + nudge))


def _eager(step: Drawn, number: int, nudge: int | None) -> dict[str, Any]:
    """The model and averages after one eager step on a row of the order; operands nudged or not."""
    from pol.training.task.task_randomness import TaskRandomness

    model, optimizer, (floats, integers, target), order = step.build()
    loop = LOOPS[step.loop]
    averages = {name: p.detach().clone() for name, p in model.named_parameters()} if loop.ema is not None else {}
    if nudge is not None:
        generator = torch.Generator().manual_seed(nudge)
        floats = floats * (1 + 2.0**-21 * (2 * torch.rand(floats.shape, generator=generator) - 1))
        for p in model.parameters():
            p.data *= 1 + 2.0**-21 * (2 * torch.rand(p.shape, generator=generator) - 1)
    with TaskRandomness(7).step(0), DefinedResults():
        for rows in order[number].reshape(loop.accumulation, -1):
            loss = functional.cross_entropy(model(floats[rows], integers[rows]), target[rows])
            (loss / loop.accumulation).backward()  # type: ignore[no-untyped-call]  # torch declares no types
    if loop.clip_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), loop.clip_norm)
    if loop.clip_value is not None:
        nn.utils.clip_grad_value_(model.parameters(), loop.clip_value)
    optimizer.step()
    found = {name: value.detach().numpy().astype(np.float64) for name, value in model.state_dict().items()}
    for name, average in averages.items():
        moved = average + (1 - (loop.ema or 0)) * (dict(model.named_parameters())[name].detach() - average)
        found[f"ema.{name}"] = moved.numpy().astype(np.float64)
    return found


@dataclass(frozen=True)
class Outcome:
    """Of drawn programs: how many were captured, refused with an error, and another training without one."""

    captured: int
    refused: int
    silent: tuple[Drawn, ...]
    operations: frozenset[str]


def outcome(count: int) -> Outcome:
    """Draw, capture and judge `count` programs, the same ones every time, on all processors."""
    captured = refused = 0
    silent: list[Drawn] = []
    operations: set[str] = set()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), initializer=_alone) as pool:
        for step, found, is_silent in pool.map(_judged, range(count), chunksize=16):
            captured += found is not None
            refused += found is None
            operations |= found or frozenset()
            silent += [step] if is_silent else []
    return Outcome(captured, refused, tuple(silent), frozenset(operations))


def _alone() -> None:
    torch.set_num_threads(1)


def _judged(seed: int) -> tuple[Drawn, frozenset[str] | None, bool]:
    """The program of a seed, its operations if it was captured, and whether that is another training."""
    generator = np.random.Generator(np.random.Philox(seed))
    step = drawn(lambda below: int(generator.integers(below)), seed)
    try:
        found = step.captured()
    except UnsupportedError:
        return step, None, False
    return step, frozenset(node.operation for node in found.aten.nodes), is_another_training(step, found)


def drawn_figures(count: int = COUNT) -> dict[str, Figure]:
    """Of drawn programs, those that were captured without an error and are another training than the user's."""
    found = outcome(count)
    return {
        "drawn_programs": Figure(count, "programs"),
        "drawn_programs_captured": Figure(found.captured, "programs"),
        "drawn_operations": Figure(len(found.operations), "operations"),
        "silent_differences": Figure(len(found.silent), "programs"),
    }
