"""Matrix products and convolutions against torch: one node of a step program each, beside the ATen call it stands for.

Both run on one thread of the same process, alternately, and are timed by what the thread spent; torch writes a product
into memory that it is given, so that fresh pages count for neither side.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lab.benchmarks.figure import Figure, side_by_side, torch_threads
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Affine, Bound, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

PEER = "torch, one thread"
MULTIPLY_ADD = ScalarProgram(3, (), (Instruction(Op.FFMA, 1, 2, 0),))
BUDGET = 0.5  # seconds of measuring per case and side, about
ROUNDS = 5  # at least

Index = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """One fold, its operands, the ATen call that computes the same, and how many multiply-adds either does.

    `copies` of the node stand in one program where a single one is over before Python notices.
    """

    name: str
    nodes: tuple[Node, ...]
    operands: tuple[Words, ...]
    peer: Callable[[], object]
    work: int
    copies: int = 1


@dataclass(frozen=True)
class Read:
    """`tensor[base + sum stride * index]` with strides by index name; bounds are (strides, base, limit)."""

    tensor: int
    strides: Index
    base: int = 0
    bounds: Sequence[tuple[Index, int, int]] = field(default_factory=tuple)


def fold(sizes: Index, out: str, over: str, tensors: Sequence[Words], left: Read, right: Read) -> Node:
    """out[...] = fold over `over` of FFMA(left, right, accumulator), indices by one-letter names."""

    def affine(base: int, strides: Index) -> Affine:
        return Affine(base, (0, *(strides.get(name, 0) for name in out + over)))

    operands = tuple(
        Operand(
            Source.CONSTANT,
            read.tensor,
            TensorType(DType.F32, tensors[read.tensor].shape),
            affine(read.base, read.strides),
            bounds=tuple(Bound(affine(base, strides), limit) for strides, base, limit in read.bounds),
        )
        for read in (left, right)
    )
    inputs = (Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1))
    type_ = TensorType(DType.F32, tuple(sizes[name] for name in out))
    return Node(type_, operands, inputs, MULTIPLY_ADD, tuple(sizes[name] for name in over))


def _dense(sizes: Index, layout: str) -> dict[str, int]:
    strides, stride = {}, 1
    for name in reversed(layout):
        strides[name] = stride
        stride *= sizes[name]
    return strides


def _random(*shape: int) -> Words:
    return np.random.default_rng(math.prod(shape)).standard_normal(shape).astype(np.float32).view(np.uint32)


def product(name: str, sizes: Index, left: str, right: str, copies: int = 1) -> Case:
    """out[b, m, n] = sum over k of left * right; a layout names the order of the stored dimensions."""
    import torch

    tensors = tuple(_random(*(sizes[letter] for letter in layout)) for layout in (left, right))
    out = "bmn" if "b" in sizes else "mn"
    node = fold(sizes, out, "k", tensors, Read(0, _dense(sizes, left)), Read(1, _dense(sizes, right)))
    batch = out[:-2]
    a, b = (
        torch.from_numpy(tensor.view(np.float32)).permute([layout.index(letter) for letter in order])
        for tensor, layout, order in zip(tensors, (left, right), (batch + "mk", batch + "kn"), strict=True)
    )
    result = torch.empty([sizes[letter] for letter in out])
    multiply = torch.bmm if batch else torch.mm

    def peer() -> None:
        for _ in range(copies):
            multiply(a, b, out=result)

    return Case(name, (node,), tensors, peer, math.prod(sizes.values()), copies)


def matrix_products() -> Iterator[Case]:
    """Square matrices, and the layers of transformers with both of their gradients."""
    for n in (256, 512, 1024, 2048):
        yield product(f"{n}^3", {"m": n, "n": n, "k": n}, "mk", "kn")
    for tokens, inputs, outputs in (
        (2048, 384, 384),
        (2048, 384, 1536),
        (2048, 1536, 384),
        (512, 768, 3072),
        (1024, 768, 768),
    ):
        layer = f"{tokens}x{inputs}x{outputs}"
        yield product(f"linear {layer}", {"m": tokens, "n": outputs, "k": inputs}, "mk", "nk")
        yield product(f"input gradient {layer}", {"m": tokens, "n": inputs, "k": outputs}, "mk", "kn")
        yield product(f"weight gradient {layer}", {"m": outputs, "n": inputs, "k": tokens}, "km", "kn")
    yield product("vocabulary 512x384x8192", {"m": 512, "n": 8192, "k": 384}, "mk", "nk")


def batched_products() -> Iterator[Case]:
    """Causal self-attention of 48 heads over 256 tokens, 64 numbers a head: forward, and the four gradients."""
    scores = {"b": 48, "m": 256, "n": 256, "k": 64}
    values = {"b": 48, "m": 256, "n": 64, "k": 256}
    yield product("scores", scores, "bmk", "bnk")
    yield product("values", values, "bmk", "bkn")
    yield product("probability gradient", scores, "bmk", "bnk")
    yield product("value gradient", values, "bkm", "bkn")
    yield product("query gradient", values, "bmk", "bkn")
    yield product("key gradient", values, "bkm", "bkn")


def small_products() -> Iterator[Case]:
    """Products too small or too narrow for the usual blocking."""
    for n in (16, 32, 64):
        yield product(f"{n}^3", {"m": n, "n": n, "k": n}, "mk", "kn", 4096 // n)
    for m in (1, 2, 4, 8):
        yield product(f"{m}x768x768", {"m": m, "n": 768, "k": 768}, "mk", "nk", 16)
        yield product(f"{m}x768x768 plain", {"m": m, "n": 768, "k": 768}, "mk", "kn", 16)
    yield product("64x10x512", {"m": 64, "n": 10, "k": 512}, "mk", "nk", 64)


@dataclass(frozen=True)
class Layer:
    """A square convolution without bias: batch, channels in and out, input edge, kernel edge, stride, padding."""

    n: int
    c: int
    o: int
    edge: int
    kernel: int
    stride: int = 1
    padding: int = 1

    @property
    def out(self) -> int:
        """Edge of the output."""
        return (self.edge + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def name(self) -> str:
        """Input, output channels, kernel and stride."""
        return f"{self.n}x{self.c}x{self.edge}x{self.edge} to {self.o}, {self.kernel}x{self.kernel}/{self.stride}"


RESNET_LAYERS = (
    Layer(32, 3, 64, 32, 3),
    Layer(32, 64, 64, 32, 3),
    Layer(32, 64, 128, 32, 3, 2),
    Layer(32, 64, 128, 32, 1, 2, 0),
    Layer(32, 128, 128, 16, 3),
    Layer(32, 128, 256, 16, 3, 2),
    Layer(32, 256, 256, 8, 3),
    Layer(32, 256, 512, 8, 3, 2),
    Layer(32, 512, 512, 4, 3),
)


def convolutions(layer: Layer) -> Iterator[Case]:
    """Forward, input gradient (not of the first layer) and weight gradient of one layer; images are NCHW."""
    import torch

    x, w, g = (
        _random(layer.n, layer.c, layer.edge, layer.edge),
        _random(layer.o, layer.c, layer.kernel, layer.kernel),
        _random(layer.n, layer.o, layer.out, layer.out),
    )
    tx, tw, tg = (torch.from_numpy(tensor.view(np.float32)) for tensor in (x, w, g))
    work = layer.n * layer.c * layer.o * layer.out**2 * layer.kernel**2
    convolution = torch.ops.aten.convolution.default
    backward = torch.ops.aten.convolution_backward.default
    edges = [layer.stride] * 2, [layer.padding] * 2, [1, 1], False, [0, 0], 1

    def gradient(which: int) -> Callable[[], object]:
        return lambda: backward(tg, tx, tw, [0], *edges, [which == 0, which == 1, False])

    yield Case(
        f"{layer.name} forward", (_forward(layer, (x, w)),), (x, w), lambda: convolution(tx, tw, None, *edges), work
    )
    if layer.c > 3:
        yield Case(f"{layer.name} input gradient", (_input_gradient(layer, (g, w)),), (g, w), gradient(0), work)
    yield Case(f"{layer.name} weight gradient", (_weight_gradient(layer, (x, g)),), (x, g), gradient(1), work)


def _sizes(layer: Layer) -> dict[str, int]:
    """By index: image n, input channel c, output channel o, input place i j, kernel place k l, output place y x."""
    edges = {"i": layer.edge, "j": layer.edge, "k": layer.kernel, "l": layer.kernel, "y": layer.out, "x": layer.out}
    return {"n": layer.n, "c": layer.c, "o": layer.o, **edges}


def _image(layer: Layer, tensor: int) -> Read:
    """The input at the place that kernel place (k, l) meets from output place (y, x); zero in the padding."""
    sizes = _sizes(layer)
    s, p, inner = layer.stride, layer.padding, _dense(sizes, "ncij")
    strides = {**inner, "y": s * inner["i"], "x": s, "k": inner["i"], "l": 1}
    bounds = (({"y": s, "k": 1}, -p, layer.edge), ({"x": s, "l": 1}, -p, layer.edge)) if p else ()
    return Read(tensor, {k: v for k, v in strides.items() if k not in "ij"}, -p * (inner["i"] + 1), bounds)


def _forward(layer: Layer, tensors: Sequence[Words]) -> Node:
    sizes = _sizes(layer)
    return fold(sizes, "noyx", "ckl", tensors, _image(layer, 0), Read(1, _dense(sizes, "ockl")))


def _weight_gradient(layer: Layer, tensors: Sequence[Words]) -> Node:
    sizes = _sizes(layer)
    return fold(sizes, "ockl", "nyx", tensors, _image(layer, 0), Read(1, _dense(sizes, "noyx")))


def _input_gradient(layer: Layer, tensors: Sequence[Words]) -> Node:
    """Input place s * i + a meets output place i + last - k at kernel place a + p + s * (k - last)."""
    s, p, sizes = layer.stride, layer.padding, _sizes(layer)
    image, kernel = _dense(sizes, "noyx"), _dense(sizes, "ockl")
    last = (s - 1 + p) // s
    terms = last + (layer.kernel - 1 - p) // s + 1
    here = {**sizes, "i": -(-layer.edge // s), "a": s, "j": -(-layer.edge // s), "b": s, "k": terms, "l": terms}
    first = p - s * last
    g = Read(
        0,
        {"n": image["n"], "o": image["o"], "i": image["y"], "k": -image["y"], "j": 1, "l": -1},
        last * (image["y"] + 1),
        (({"i": 1, "k": -1}, last, layer.out), ({"j": 1, "l": -1}, last, layer.out)),
    )
    w = Read(
        1,
        {"o": kernel["o"], "c": kernel["c"], "a": kernel["k"], "k": s * kernel["k"], "b": 1, "l": s},
        first * (kernel["k"] + 1),
        (({"a": 1, "k": s}, first, layer.kernel), ({"b": 1, "l": s}, first, layer.kernel)),
    )
    return fold(here, "nciajb", "okl", tensors, g, w)


def executor(case: Case, threads: int = 1) -> CpuExecutor:
    """An executor of a program that is nothing but the case."""
    nodes = case.nodes * case.copies
    slot = Slot(Component.BUFFER, nodes[0].type, 0)
    constants = tuple(TensorType(DType.F32, tensor.shape) for tensor in case.operands)
    return CpuExecutor(StepProgram((slot,), constants, nodes), case.operands, threads)


@dataclass(frozen=True)
class Timing:
    """Median seconds of a case on both sides."""

    ours: float
    peer: float
    rate: float
    """Ours in floating-point operations per nanosecond; a multiply-add is two."""

    @property
    def ratio(self) -> float:
        """Ours over the peer's."""
        return self.ours / self.peer


def measure(case: Case) -> Timing:
    """Both sides alternately until the budget is spent."""
    run, state = executor(case), [np.zeros(case.nodes[0].type.shape, np.uint32)]
    ours, peer = side_by_side(lambda: run.run(state, 0), case.peer, ROUNDS, time.thread_time, 3, BUDGET)
    return Timing(ours, peer, 2 * case.work * case.copies / ours / 1e9)


def contraction_figures() -> dict[str, Figure]:
    """Ratios over all shapes of a kind, and the rate of every single one."""
    kinds: Mapping[str, Iterable[Case]] = {
        "matmul": matrix_products(),
        "bmm": batched_products(),
        "small matmul": small_products(),
        "conv": (case for layer in RESNET_LAYERS for case in convolutions(layer)),
    }
    with torch_threads():
        found = {kind: {case.name: measure(case) for case in cases} for kind, cases in kinds.items()}
    ratios = {kind: [timing.ratio for timing in timings.values()] for kind, timings in found.items()}
    convolved = found["conv"].values()
    summary = {
        "matmul_ratio_geomean": statistics.geometric_mean(ratios["matmul"]),
        "matmul_ratio_worst": max(ratios["matmul"]),
        "conv_ratio": sum(timing.ours for timing in convolved) / sum(timing.peer for timing in convolved),
        "bmm_ratio_worst": max(ratios["bmm"]),
        "small_matmul_ratio_worst": max(ratios["small matmul"]),
    }
    return {name: Figure(ratio, "times", PEER, ratio) for name, ratio in summary.items()} | {
        f"{kind} {name}": Figure(timing.rate, "GFLOP/s", PEER, timing.ratio)
        for kind, timings in found.items()
        for name, timing in timings.items()
    }
