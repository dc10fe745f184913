"""The reference executor and the view of one element agree, and both follow the specification."""

import numpy as np
import pytest

from pol.arithmetic.primitives import Op, Words
from pol.arithmetic.scalar_program import Builder
from pol.errors import ProtocolError
from pol.execution.disputed_element import OperandRead, accumulators, body_values, reads
from pol.execution.operand_sources import Sources
from pol.execution.reference import ReferenceExecutor, evaluate_node, next_state
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType, unravel

pytestmark = pytest.mark.rules

F32, I32 = DType.F32, DType.I32
NAN = 0x7FC00000


def words(array: np.ndarray) -> Words:
    return np.ascontiguousarray(array).view(np.uint32)


def matmul(rows: int, terms: int, columns: int) -> Node:
    builder = Builder(3)
    left, right = TensorType(F32, (rows, terms)), TensorType(F32, (terms, columns))
    return Node(
        TensorType(F32, (rows, columns)),
        (
            Operand(Source.STATE, 0, left, Affine(0, (0, terms, 0, 1))),
            Operand(Source.STATE, 1, right, Affine(0, (0, 0, 1, columns))),
        ),
        (Input(InputKind.OPERAND, 0), Input(InputKind.OPERAND, 1), Input(InputKind.ACCUMULATOR)),
        builder.build(builder.emit(Op.FFMA, 0, 1, 2)),
        fold=(terms,),
    )


def awkward() -> Node:
    """Two fold dimensions, bounds, a fill, a gather with indices out of range, coordinates and the step."""
    builder = Builder(5)
    gathered = builder.emit(Op.FFMA, 0, 1, 4)
    place = builder.emit(Op.ADD, 2, 3)
    body = builder.build(builder.emit(Op.FADD, gathered, builder.emit(Op.I2F, place)))
    return Node(
        TensorType(F32, (3, 4)),
        (
            Operand(Source.CONSTANT, 0, TensorType(I32, (6,)), Affine(0, (1, 1, 0, 0, 1))),
            Operand(
                Source.STATE, 0, TensorType(F32, (5, 4)), Affine(0, (0, 0, 1, 0, 0)), fill=NAN, gather=Gather(0, 4, 5)
            ),
            Operand(
                Source.STATE,
                1,
                TensorType(F32, (7,)),
                Affine(-1, (0, 1, 1, 2, -1)),
                fill=0x3F800000,
                bounds=(Bound(Affine(1, (1, -1, 0, 1, 0)), 3), Bound(Affine(0, (0, 0, 1, 0, 1)), 5)),
            ),
        ),
        (
            Input(InputKind.OPERAND, 1),
            Input(InputKind.OPERAND, 2),
            Input(InputKind.COORDINATE, 0),
            Input(InputKind.COORDINATE, 4),
            Input(InputKind.ACCUMULATOR),
        ),
        body,
        fold=(2, 3),
        init=0x40000000,
    )


def awkward_sources() -> Sources:
    random = np.random.default_rng(5)
    table = random.standard_normal((5, 4)).astype(np.float32)
    line = random.standard_normal(7).astype(np.float32)
    return Sources([words(table), words(line)], [words(np.array([4, -1, 0, 5, 2, 3], np.int32))], [])


def letter_of_the_specification(node: Node, step: int, element: int, term: int, sources: Sources) -> list[OperandRead]:
    """An independent scalar reading of docs/spec/program.md, with Python integers."""
    at = (step, *unravel(element, node.type.shape), *unravel(term, node.fold))
    found: list[OperandRead] = []
    for number, operand in enumerate(node.operands):
        source = {1: sources.state, 2: sources.constants, 3: sources.nodes}[operand.source][operand.index].ravel()
        address: int | None = operand.address.at(at)
        if operand.gather:
            index = found[operand.gather.operand].word
            index -= (index >> 31) << 32
            address = address + operand.gather.stride * index if 0 <= index < operand.gather.limit else None
        if any(not 0 <= bound.affine.at(at) < bound.limit for bound in operand.bounds):
            address = None
        if address is not None and not 0 <= address < source.size:
            address = None
        found.append(OperandRead(number, address, operand.fill if address is None else int(source[address])))
    return found


@pytest.mark.parametrize("step", [0, 1, 3])
def test_reads_follow_the_specification_and_element_agrees_with_reference(step: int) -> None:
    node, sources = awkward(), awkward_sources()
    output = evaluate_node(node, step, sources)
    filled = 0
    for element in range(node.type.numel):
        chain = accumulators(node, step, element, sources)
        assert len(chain) == node.terms + 1
        assert chain[0] == node.init
        for term in range(node.terms):
            got = reads(node, step, element, term, sources)
            assert got == letter_of_the_specification(node, step, element, term, sources)
            filled += sum(read.address is None for read in got)
            assert body_values(node, step, element, term, int(chain[term]), sources)[-1] == chain[term + 1]
        assert chain[-1] == output.reshape(-1)[element]
    assert filled


def test_a_fold_adds_in_order_with_one_rounding_per_term() -> None:
    random = np.random.default_rng(1)
    left, right = (random.standard_normal(shape).astype(np.float32) for shape in ((3, 50), (50, 2)))
    output = evaluate_node(matmul(3, 50, 2), 0, Sources([words(left), words(right)], [], []))
    expected = np.zeros((3, 2), np.float32)
    for k in range(50):
        # A product of two binary32 numbers is exact in binary64; adding there and rounding once more differs from
        # a fused operation only in halfway cases, which these seeds do not meet.
        product = left[:, k, None].astype(np.float64) * right[k].astype(np.float64)
        expected = (product + expected).astype(np.float32)
    np.testing.assert_array_equal(output.view(np.float32), expected)


def test_a_map_has_two_accumulators() -> None:
    builder = Builder(1)
    node = Node(TensorType(I32, (3,)), (), (Input(InputKind.COORDINATE, 1),), builder.build(builder.emit(Op.ADD, 0, 0)))
    sources = Sources([], [], [])
    np.testing.assert_array_equal(evaluate_node(node, 9, sources), [0, 2, 4])
    np.testing.assert_array_equal(accumulators(node, 9, 2, sources), [0, 4])
    assert reads(node, 9, 2, 0, sources) == []


def test_long_folds_are_seen_element_by_element() -> None:
    random = np.random.default_rng(2)
    left, right = (words(random.standard_normal(shape).astype(np.float32)) for shape in ((1, 3000), (3000, 1)))
    node = matmul(1, 3000, 1)
    sources = Sources([left, right], [], [])
    assert accumulators(node, 0, 0, sources)[-1] == evaluate_node(node, 0, sources)[0, 0]


def test_wrong_tensors_and_positions_are_refused() -> None:
    node, sources = awkward(), awkward_sources()
    for step, element, term in ((0, 12, 0), (0, -1, 0), (0, 0, 6), (0, 0, -1)):
        with pytest.raises(ProtocolError):
            reads(node, step, element, term, sources)
    for step in (-1, 2**32):
        with pytest.raises(ProtocolError):
            evaluate_node(node, step, sources)
    with pytest.raises(ProtocolError, match="missing"):
        evaluate_node(node, 0, Sources([], [], []))
    weight = TensorType(F32, (2,))
    builder = Builder(1)
    step_node = Node(
        weight,
        (Operand(Source.STATE, 0, weight, Affine(0, (0, 1))),),
        (Input(InputKind.OPERAND),),
        builder.build(builder.emit(Op.FADD, 0, 0)),
    )
    program = StepProgram((Slot(Component.PARAMETER, weight, 0),), (weight,), (step_node,))
    state = words(np.array([1.5, -2], np.float32))
    with pytest.raises(ProtocolError, match="constant 0"):
        ReferenceExecutor(program, [state[:1]])
    executor = ReferenceExecutor(program, [state])
    with pytest.raises(ProtocolError, match="state slot"):
        executor.run([state, state], 0)
    (result,) = next_state(program, executor.run([state], 0))
    np.testing.assert_array_equal(result.view(np.float32), [3, -4])
