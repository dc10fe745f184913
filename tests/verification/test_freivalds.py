"""A step's products are checked by projection: what is off by more than the bound is found at the stated rate."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.benchmarks.freivalds_cost import in_one_thread
from lab.verification.freivalds import Method, Projection, StepCheck, draw_signs, project
from lab.verification.matrix_products import Product, find_product
from pol.arithmetic.primitives import Op, Words
from pol.commitments.keccak import keccak256
from pol.demo import digits
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor, CpuNode
from pol.execution.operand_sources import Sources
from pol.graph.capture import Capture
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType
from toy_program import one

Floats = NDArray[np.float64]


def entropy(number: int) -> bytes:
    return keccak256(number.to_bytes(4, "big"))


def matmul(rows: int, columns: int, terms: int) -> Node:
    first, second, last = (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), Input(InputKind.ACCUMULATOR))
    left = Operand(Source.STATE, 0, TensorType(DType.F32, (rows, terms)), Affine(0, (0, terms, 0, 1)))
    right = Operand(Source.STATE, 1, TensorType(DType.F32, (terms, columns)), Affine(0, (0, 0, 1, columns)))
    type_ = TensorType(DType.F32, (rows, columns))
    return Node(type_, (left, right), (first, second, last), one(Op.FFMA, 3), (terms,))


def program_of(node: Node) -> StepProgram:
    """The product alone; its operands are the state, and stay what they are."""
    nodes, slots = [node], []
    for index, operand in enumerate(node.operands):
        shape = operand.type.shape
        same = Operand(Source.STATE, index, operand.type, Affine(0, (0, shape[1], 1)))
        nodes.append(Node(operand.type, (same,), (Input(InputKind.OPERAND, 0),), one(Op.MOV, 1)))
        slots.append(Slot(Component.PARAMETER, operand.type, index + 1))
    return StepProgram(tuple(slots), (TensorType(DType.F32, ()),), tuple(nodes))


CONSTANTS = [np.zeros((), np.uint32)]


def words(numbers: NDArray[np.floating]) -> Words:
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32)


def product_of(node: Node) -> Product:
    product = find_product(node)
    assert product is not None
    return product


@cache
def trained() -> tuple[Capture, list[Words], list[Words]]:
    """The digits example, the state after 50 steps and the honest trace of the step that follows."""
    captured = digits.captured(0)
    executor = CpuExecutor(captured.program, captured.constants)
    state: Sequence[Words] = captured.state
    for step in range(50):
        state, _ = executor.advance(state, step)
    state = [tensor.copy() for tensor in state]
    return captured, state, [tensor.copy() for tensor in executor.run(state, 50)]


@cache
def checker() -> StepCheck:
    captured, _, _ = trained()
    return StepCheck(captured.program, captured.constants, least=0)


def forward_product() -> int:
    """The first product of the step: (32, 64) images times (64, 64) weights."""
    captured, _, _ = trained()
    return next(i for i, node in enumerate(captured.program.nodes) if find_product(node))


def forged(change: Callable[[Floats], None]) -> list[Words]:
    """A trace whose first product is changed and whose every later node is computed honestly from what stands there."""
    captured, state, honest = trained()
    outputs = [tensor.copy() for tensor in honest]
    target = forward_product()
    numbers = outputs[target].view(np.float32).astype(np.float64)
    change(numbers)
    outputs[target] = words(numbers)
    sources = Sources(state, captured.constants, outputs)
    for index in range(target + 1, len(outputs)):
        outputs[index] = CpuNode(captured.program.nodes[index]).run(50, sources)
    return outputs


def bounds_of_forward(block: int | None = None) -> Floats:
    captured, state, honest = trained()
    target = forward_product()
    product = product_of(captured.program.nodes[target])
    signs = draw_signs(entropy(0), target, block or min(product.rows, product.columns), 1)
    return project(product, 50, Sources(state, captured.constants, honest), honest[target], signs).bounds


def found(outputs: Sequence[Words], seeds: int, projections: int) -> float:
    """The share of seeds with which a forged trace is found, by the node that is forged."""
    _, state, _ = trained()
    wrong = [checker().check(state, 50, outputs, entropy(seed), projections).wrong for seed in range(seeds)]
    assert all(nodes in ((), (forward_product(),)) for nodes in wrong)
    return sum(map(bool, wrong)) / seeds


def test_an_honest_trace_passes() -> None:
    _, state, honest = trained()
    for seed in range(20):
        report = checker().check(state, 50, honest, entropy(seed), block=(None, 1, 7)[seed % 3])
        assert report.passed
        assert report.methods.count(Method.PROJECTED) == 5


def test_what_is_no_product_is_compared_bit_for_bit() -> None:
    captured, state, honest = trained()
    for index, node in enumerate(captured.program.nodes):
        if not find_product(node):
            outputs = [*honest[:index], honest[index] ^ np.uint32(1), *honest[index + 1 :]]
            assert checker().check(state, 50, outputs, entropy(1)).wrong[0] == index


def test_one_element_above_the_bound_is_found() -> None:
    bound = float(bounds_of_forward().max())

    def change(numbers: Floats) -> None:
        numbers[3, 5] += 2.02 * bound

    assert found(forged(change), 40, 1) == 1.0


def test_the_worst_pair_above_the_bound_is_found_at_the_stated_rate() -> None:
    """Equal errors of two elements of one projected row cancel for half of the signs: no pair does better."""
    bound = float(bounds_of_forward().max())

    def change(numbers: Floats) -> None:
        # The projected side is the smaller one, the 32 examples: a "row" is a column here.
        numbers[3, 5] += 50 * bound
        numbers[9, 5] += 50 * bound

    outputs = forged(change)
    assert 0.4 < found(outputs, 300, 1) < 0.6
    assert found(outputs, 300, 4) >= 1 - 2**-4 - 0.05
    assert found(outputs, 40, 20) == 1.0


def test_what_stays_below_the_bound_passes() -> None:
    """The limit of the method, stated in docs/spec/freivalds.md: only the game tells these from the truth."""
    bound = float(bounds_of_forward().min())

    def change(numbers: Floats) -> None:
        numbers[3, 5] += 0.5 * bound

    outputs = forged(change)
    assert not np.array_equal(outputs[forward_product()], trained()[2][forward_product()])
    assert found(outputs, 40, 20) == 0.0
    assert bounds_of_forward(block=1).mean() < bounds_of_forward().mean() / 16  # narrower blocks leave less room


def test_who_knows_the_entropy_passes_with_any_result() -> None:
    """Errors orthogonal to all signs: this is why the entropy comes after the commitment, from a beacon."""
    known, projections = entropy(7), 8
    signs = draw_signs(known, forward_product(), 32, projections)
    free = np.linalg.svd(signs.T)[2][-1]
    bound = float(bounds_of_forward().max())
    assert abs(signs.T @ free).max() < 1e-12

    def change(numbers: Floats) -> None:
        numbers[:, 5] += 1000 * bound * free

    _, state, _ = trained()
    outputs = forged(change)
    assert checker().check(state, 50, outputs, known, projections).passed
    assert found(outputs, 100, projections) >= 0.95


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_for_badly_scaled_numbers(seed: int) -> None:
    """Elements one by one, exponents from below the normal numbers up, sums that cancel."""
    random = np.random.default_rng(seed)
    node = matmul(12, 9, 200)
    spread = (10, 40, 126)[seed % 3]
    left, right = (
        random.standard_normal(shape) * 2.0 ** random.integers(-spread, min(spread, 50), shape)
        for shape in ((12, 200), (200, 9))
    )
    if seed >= 3:
        right[100:] = -right[:100] * (1 + 1e-7)
        left[:, 100:] = left[:, :100]
    state = [words(left), words(right)]
    output = CpuNode(node).run(0, Sources(state, [], []))
    projection = project(product_of(node), 0, Sources(state, [], []), output, draw_signs(entropy(seed), 0, 1, 1))
    assert projection.is_conclusive
    assert projection.passed
    assert not projection.exact
    assert (np.abs(projection.residuals[..., 0]) / projection.bounds).max() > 0.002  # the bound is no free pass


def test_products_of_integers_have_no_tolerance() -> None:
    random = np.random.default_rng(1)
    node = matmul(20, 16, 50)
    one_hot = np.eye(50)[random.integers(0, 50, 20)]
    state = [words(one_hot), words(random.integers(-1000, 1000, (50, 16)) * 2.0**-12)]
    check = StepCheck(program_of(node), CONSTANTS, least=0)
    honest = CpuExecutor(program_of(node), CONSTANTS).run(state, 0)
    report = check.check(state, 0, honest, entropy(0))
    assert report.passed
    assert report.methods[0] is Method.EXACT

    def rate(change: Callable[[NDArray[np.float32]], None], projections: int) -> float:
        outputs = [tensor.copy() for tensor in honest]
        change(outputs[0].view(np.float32))
        return sum(not check.check(state, 0, outputs, entropy(s), projections).passed for s in range(200)) / 200

    def least_possible(numbers: NDArray[np.float32]) -> None:
        numbers[2, 3] += np.float32(2.0**-12)

    def pair(numbers: NDArray[np.float32]) -> None:
        least_possible(numbers)
        numbers[2, 4] -= np.float32(2.0**-12)

    def no_multiple(numbers: NDArray[np.float32]) -> None:
        numbers[2, 3] = np.nextafter(numbers[2, 3], np.float32(np.inf))

    assert rate(least_possible, 1) == rate(no_multiple, 1) == 1.0
    assert 0.4 < rate(pair, 1) < 0.6
    assert rate(pair, 12) == 1.0


@pytest.mark.parametrize("poison", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_is_recomputed(poison: float) -> None:
    """A sum may overflow on the way although the exact one does not: no bound holds then."""
    random = np.random.default_rng(2)
    node = matmul(8, 8, 30)
    left, right = random.standard_normal((8, 30)), random.standard_normal((30, 8))
    left[1, 4], left[1, 5] = poison, -poison
    right[4], right[5] = 3.0, 3.0
    state = [words(left), words(right)]
    with np.errstate(all="ignore"):
        honest = CpuExecutor(program_of(node), CONSTANTS).run(state, 0)
    assert not np.isfinite(honest[0].view(np.float32)[1]).any()
    check = StepCheck(program_of(node), CONSTANTS, least=0)
    report = check.check(state, 0, honest, entropy(3))
    assert report.passed
    assert report.methods[0] is Method.RECOMPUTED
    with np.errstate(all="ignore"):
        finite = words(left.astype(np.float64) @ right)
    finite[1] = words(np.zeros(8))
    assert check.check(state, 0, [finite, *honest[1:]], entropy(3)).wrong == (0,)


@pytest.mark.parametrize("claim", [np.inf, np.nan])
def test_a_claim_that_is_not_finite_is_wrong(claim: float) -> None:
    def change(numbers: Floats) -> None:
        numbers[3, 5] = claim

    _, state, _ = trained()
    report = checker().check(state, 50, forged(change), entropy(0))
    assert report.wrong[0] == forward_product()
    assert report.methods[forward_product()] is Method.RECOMPUTED


def test_convolutions_are_products() -> None:
    """Windows read zeros around the image; forward, and both gradients, projected in the order of their coordinates."""
    from lab.benchmarks import training_bits

    captured = training_bits.cnn(2)
    honest = CpuExecutor(captured.program, captured.constants).run(captured.state, 0)
    check = StepCheck(captured.program, captured.constants, least=0)
    report = check.check(captured.state, 0, honest, entropy(0))
    assert report.passed
    for index, node in enumerate(captured.program.nodes):
        if any(operand.bounds for operand in node.operands) and (product := find_product(node)):
            assert min(product.rows, product.columns) >= 8
            assert report.methods[index] is Method.PROJECTED
            outputs = [tensor.copy() for tensor in honest]
            outputs[index].view(np.float32).flat[11] *= np.float32(1.5)
            assert index in check.check(captured.state, 0, outputs, entropy(0)).wrong


def test_signs_are_even_and_differ_between_nodes() -> None:
    signs = draw_signs(entropy(1), 4, 1000, 20)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.03
    assert abs(signs.T @ signs / 1000 - np.eye(20)).max() < 0.15
    assert not np.array_equal(signs, draw_signs(entropy(1), 5, 1000, 20))
    assert np.array_equal(signs[:10, :1], draw_signs(entropy(1), 4, 10, 1))


def test_bad_arguments_are_refused() -> None:
    _, state, honest = trained()
    for arguments in ({"entropy": b"1"}, {"projections": 0}, {"block": 0}, {"outputs": honest[1:]}, {"state": []}):
        given = {"state": state, "step": 50, "outputs": honest, "entropy": entropy(0)} | arguments
        with pytest.raises(ProtocolError):
            checker().check(**given)  # type: ignore[arg-type]  # on purpose


def test_an_inconclusive_bound_is_never_passed() -> None:
    nan = np.full((1, 1, 1), np.nan)
    assert not Projection(np.zeros((1, 1, 1, 1)), nan, False).is_conclusive
    assert not Projection(np.full((1, 1, 1, 1), np.nan), nan, False).passed


def test_the_benchmark_takes_one_thread_for_numpys_products_too() -> None:
    before = dict(os.environ)
    assert in_one_thread(os.getenv, "OPENBLAS_NUM_THREADS") == "1"
    assert dict(os.environ) == before
