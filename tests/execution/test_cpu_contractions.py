"""Native matrix products and convolutions give the bits of the reference: odd sizes, bounds, groups, hostile words."""

from dataclasses import replace

import numpy as np
import pytest
import test_cpu_nodes

from lab.benchmarks.contractions import Layer, Read, convolutions, fold, product
from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.graph.node import Node
from pol.graph.tensor_type import DType

HOSTILE = np.array(
    [0, 0x80000000, 1, 0x80000001, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFA00001], np.uint32
)


def spoiled(tensors: tuple[Words, ...], how: str) -> list[Words]:
    """Copies with words that a kernel might treat otherwise than the definition."""
    numbers = np.random.default_rng(len(how))
    copies = [tensor.copy() for tensor in tensors]
    for copy in copies:
        words = copy.reshape(-1)
        match how:
            case "hostile":
                where = numbers.integers(0, words.size, max(words.size // 100, 1))
                words[where] = numbers.choice(HOSTILE, where.size)
            case "one infinity":
                words[numbers.integers(words.size)] = 0x7F800000
            case "underflow":  # products round to +0 and -0
                words[:] = (words.view(np.float32) * np.float32(1e-23)).view(np.uint32)
            case "zeros":
                words[:] = numbers.choice(HOSTILE[:2], words.size)
    return copies


def check(node: Node, tensors: list[Words], threads: tuple[int, ...] = (1, 2, 3)) -> None:
    test_cpu_nodes.check(node, 0, tensors, threads)


@pytest.mark.parametrize("how", ["plain", "hostile", "one infinity", "underflow", "zeros"])
@pytest.mark.parametrize(
    "layer",
    [
        Layer(9, 4, 5, 7, 3), Layer(8, 5, 7, 6, 3, 2), Layer(17, 3, 8, 9, 3), Layer(33, 8, 16, 6, 1, 2, 0),
        Layer(8, 3, 9, 14, 7, 2, 3), Layer(10, 20, 13, 4, 3, 2), Layer(3, 9, 10, 6, 3), Layer(8, 1, 1, 5, 3),
        Layer(32, 30, 14, 2, 3), Layer(5, 3, 40, 17, 3), Layer(2, 2, 33, 21, 5, 2, 2),
    ],
    ids=lambda layer: layer.name,
)  # fmt: skip
def test_convolution_and_its_gradients(layer: Layer, how: str) -> None:
    for case in convolutions(layer):
        for node in case.nodes:
            check(node, spoiled(case.operands, how))


@pytest.mark.parametrize("how", ["plain", "hostile"])
@pytest.mark.parametrize(
    ("left", "right"), [("bmk", "bkn"), ("bmk", "bnk"), ("kmb", "nbk"), ("mk", "kn"), ("km", "nk")]
)
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 5, 7), (2, 1, 70, 300), (3, 2, 16, 1), (1, 3, 9, 260), (5, 7, 15, 33), (1, 30, 40, 513),
        (1, 130, 33, 20), (1, 1, 100, 70), (3, 1, 33, 65), (1, 2, 131, 24), (4, 2, 300, 9), (1, 1, 32, 800),
    ],
    ids=str,
)  # fmt: skip
def test_matrix_product(sizes: tuple[int, int, int, int], left: str, right: str, how: str) -> None:
    named = dict(zip("bmnk", sizes, strict=True))
    if "b" not in left:
        del named["b"]
    case = product("", named, left, right)
    check(replace(case.nodes[0], init=0x3F800000 * (sizes[1] % 2)), spoiled(case.operands, how))


def of_integers(node: Node) -> Node:
    """The same product of integers: acc = ADD(acc, MUL(a, b)), or with the operands of ADD the other way round."""
    (step,) = node.body.instructions
    inputs = node.body.inputs
    sums = (step.c, inputs) if node.type.numel % 2 else (inputs, step.c)
    body = ScalarProgram(inputs, (), (Instruction(Op.MUL, step.a, step.b), Instruction(Op.ADD, *sums)))
    operands = tuple(replace(item, type=replace(item.type, dtype=DType.I32)) for item in node.operands)
    return replace(node, type=replace(node.type, dtype=DType.I32), operands=operands, body=body)


@pytest.mark.parametrize(
    ("left", "right"), [("bmk", "bkn"), ("bmk", "bnk"), ("kmb", "nbk"), ("mk", "kn"), ("km", "nk")]
)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 5, 7), (2, 1, 70, 300), (1, 3, 9, 260), (5, 7, 15, 33), (1, 130, 65, 20)], ids=str
)
def test_product_of_integers(sizes: tuple[int, int, int, int], left: str, right: str) -> None:
    named = dict(zip("bmnk", sizes, strict=True))
    if "b" not in left:
        del named["b"]
    case = product("", named, left, right)
    numbers = np.random.default_rng(6)
    node = replace(of_integers(case.nodes[0]), init=0xFFFFFFF0)
    for bits in (8, 16, 17, 32):
        ends = -(2 ** (bits - 1)), 2 ** (bits - 1)
        check(
            node, [numbers.integers(*ends, tensor.shape).astype(np.int32).view(np.uint32) for tensor in case.operands]
        )


@pytest.mark.parametrize("dilation", [1, 8])
def test_integers_with_bounds(dilation: int) -> None:
    node, tensors = grouped(7, dilation, 3)
    check(of_integers(node), spoiled(tensors, "plain"), (1, 2))


def grouped(fill: int, dilation: int, init: int = 0) -> tuple[Node, tuple[Words, ...]]:
    """8 images of 2 groups with 3 channels in and 4 out, 3x3 of 7x6 places, padded by the dilation."""
    sizes = {"n": 8, "g": 2, "o": 4, "y": 7, "x": 6, "c": 3, "k": 3, "l": 3}
    numbers = np.random.default_rng(fill % 97 + dilation)
    image, kernel = (
        numbers.standard_normal(shape).astype(np.float32).view(np.uint32) for shape in ((8, 6, 7, 6), (8, 3, 3, 3))
    )
    strides = {"n": 252, "g": 126, "c": 42, "y": 6, "x": 1, "k": 6 * dilation, "l": dilation}
    bounds = (({"y": 1, "k": dilation}, -dilation, 7), ({"x": 1, "l": dilation}, -dilation, 6))
    seen = Read(0, strides, -7 * dilation, bounds)
    weight = Read(1, {"g": 108, "o": 27, "c": 9, "k": 3, "l": 1})
    node = fold(sizes, "ngoyx", "ckl", (image, kernel), seen, weight)
    operands = (replace(node.operands[0], fill=fill), node.operands[1])
    return replace(node, operands=operands, init=init), (image, kernel)


@pytest.mark.parametrize("how", ["plain", "hostile", "underflow", "zeros"])
@pytest.mark.parametrize("dilation", [1, 2, 8])
@pytest.mark.parametrize("fill", [0, 0x80000000, 0x3F800000, 0x7F800000])
@pytest.mark.parametrize("init", [0, 0x80000000, 0x7FA00000])
def test_groups_dilation_and_what_stands_outside(how: str, dilation: int, fill: int, init: int) -> None:
    node, tensors = grouped(fill, dilation, init)
    check(node, spoiled(tensors, how), (1, 2))


def test_bounds_that_allow_reads_past_the_source() -> None:
    """The addresses, not only the bounds, decide what is the fill word."""
    node, tensors = grouped(0x3F800000, 1)
    image = node.operands[0]
    for shift in (-300, -1, 1, 300):
        moved = replace(image, address=replace(image.address, base=image.address.base + shift))
        check(replace(node, operands=(moved, node.operands[1])), list(tensors), (1, 2))


@pytest.mark.parametrize("how", ["plain", "hostile", "underflow"])
def test_both_operands_bounded(how: str) -> None:
    """The input gradient of a convolution of stride 2 as one node: remainders of the position are rows with bounds."""
    sizes = {"n": 9, "c": 7, "q": 4, "r": 2, "p": 5, "s": 2, "o": 6, "k": 2, "l": 2}
    numbers = np.random.default_rng(5)
    gradient, kernel = (
        numbers.standard_normal(shape).astype(np.float32).view(np.uint32) for shape in ((9, 6, 4, 5), (6, 7, 3, 3))
    )
    small = Read(
        0,
        {"n": 120, "o": 20, "q": 5, "k": -5, "p": 1, "l": -1},
        6,
        (({"q": 1, "k": -1}, 1, 4), ({"p": 1, "l": -1}, 1, 5)),
    )
    weight = Read(
        1, {"o": 63, "c": 9, "r": 3, "k": 6, "s": 1, "l": 2}, -4, (({"r": 1, "k": 2}, -1, 3), ({"s": 1, "l": 2}, -1, 3))
    )
    node = fold(sizes, "ncqrps", "okl", (gradient, kernel), small, weight)
    check(node, spoiled((gradient, kernel), how))
