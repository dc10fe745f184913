"""Descriptors: round trips, exact bytes, and nothing but canonical bytes is accepted.

Views compose like NumPy's, and what strides cannot say is refused, not guessed.
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.errors import ProtocolError
from pol.graph.lowering.values import (
    Fill,
    StepNumber,
    Value,
    View,
    at_index,
    cut,
    expand,
    float_word,
    integer_word,
    permute,
    reshape,
    squeeze,
    unsqueeze,
    whole_view,
)
from pol.graph.node import Affine, Bound, Gather, Input, InputKind, Node, Operand, Source
from pol.graph.node_names import NodeName, ProgramNames
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

pytestmark = pytest.mark.rules

F32, I32 = DType.F32, DType.I32


def fused() -> ScalarProgram:
    builder = Builder(3)
    return builder.build(builder.emit(Op.FFMA, 0, 1, 2))


def move() -> ScalarProgram:
    builder = Builder(1)
    return builder.build(builder.emit(Op.MOV, 0))


def program() -> StepProgram:
    weight, data, order = TensorType(F32, (4, 3)), TensorType(F32, (10, 3)), TensorType(I32, (5, 2))
    row = Node(
        TensorType(I32, (2,)),
        (Operand(Source.CONSTANT, 1, order, Affine(0, (2, 1))),),
        (Input(InputKind.OPERAND, 0),),
        move(),
    )
    product = Node(
        TensorType(F32, (2, 4)),
        (
            Operand(Source.NODE, 0, row.type, Affine(0, (0, 1, 0, 0))),
            Operand(Source.CONSTANT, 0, data, Affine(0, (0, 0, 0, 1)), fill=0x7FC00000, gather=Gather(0, 3, 10)),
            Operand(
                Source.STATE, 0, weight, Affine(0, (0, 0, 3, 1)), bounds=(Bound(Affine(-1, (0, 0, 0, 1)), 2),), fill=7
            ),
        ),
        (Input(InputKind.OPERAND, 1), Input(InputKind.OPERAND, 2), Input(InputKind.ACCUMULATOR)),
        fused(),
        fold=(3,),
        init=0x80000000,
    )
    following = Node(
        weight, (Operand(Source.STATE, 0, weight, Affine(0, (0, 3, 1))),), (Input(InputKind.OPERAND),), move()
    )
    return StepProgram((Slot(Component.PARAMETER, weight, 2),), (data, order), (row, product, following))


def test_node_bytes_are_those_of_the_specification() -> None:
    node = program().nodes[0]
    assert node.encode().hex() == (
        "01"  # version
        "02" "01" "00000002"  # i32, shape (2,)
        "00" "00000000"  # map, init
        "01"  # operands
        "02" "00000001" "02" "02" "00000005" "00000002" "00000000"  # constant 1, i32 (5, 2), fill
        "0000000000000000" "0000000000000002" "0000000000000001"  # base, strides of t and of the element
        "00" "00"  # no bounds, no gather
        "01" "0200"  # one input: operand 0
        "010001" "31000000"  # MOV 0
    )  # fmt: skip


def test_round_trip() -> None:
    original = program()
    original.validate()
    assert StepProgram.from_bytes(original.to_bytes()) == original
    for node in original.nodes:
        assert Node.decode(node.encode()) == node
    for slot in original.slots:
        assert Slot.decode(slot.encode()) == slot


@pytest.mark.parametrize("seed", range(4))
def test_mutated_bytes_are_rejected_or_mean_themselves(seed: int) -> None:
    generator = random.Random(seed)
    original = program().to_bytes()
    rejected = 0
    for _ in range(1500):
        data = bytearray(original)
        for _ in range(generator.choice((1, 1, 1, 2, 4))):
            kind = generator.randrange(4)
            position = generator.randrange(len(data))
            if kind == 0:
                data[position] ^= 1 << generator.randrange(8)
            elif kind == 1:
                data[position] = generator.choice((0, 1, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                del data[position]
            else:
                data.insert(position, generator.randrange(256))
        try:
            decoded = StepProgram.from_bytes(bytes(data))
        except ProtocolError:
            rejected += 1
            continue
        assert decoded.to_bytes() == bytes(data)
    assert rejected > 500


def test_every_truncation_and_extension_is_rejected() -> None:
    data = program().to_bytes()
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            StepProgram.from_bytes(data[:length])
    with pytest.raises(ProtocolError, match="too many"):
        StepProgram.from_bytes(data + b"\0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"init": 1}, "init 0"),
        ({"inputs": ()}, "inputs for a scalar program"),
        ({"inputs": (Input(InputKind.ACCUMULATOR),)}, "ACCUMULATOR"),
        ({"inputs": (Input(InputKind.COORDINATE, 2),)}, "COORDINATE"),
        ({"inputs": (Input(InputKind.OPERAND, 1),)}, "OPERAND"),
        ({"fold": (2**16, 2**16)}, "2\\^32 terms"),
        ({"fold": (0,)}, "dimension"),
        ({"fold": (1, 1, 1, 1, 1)}, "more than 4"),
    ],
)
def test_a_node_that_breaks_a_rule_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        replace(program().nodes[0], **change)  # type: ignore[arg-type]  # wrong values are the point


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": Affine(0, (2,))}, "strides"),
        ({"address": Affine(0, (2**32, 1))}, "range of i64"),
        ({"address": Affine(2**63, (0, 0))}, "fit"),
        ({"fill": 2**32}, "fill"),
        ({"gather": Gather(0, 1, 1)}, "earlier plain one"),
        ({"bounds": (Bound(Affine(0, (0, 0)), 1),) * 5}, "bounds"),
        ({"bounds": (Bound(Affine(0, (2**63 - 1, 0)), 1),)}, "range of i64"),
    ],
)
def test_an_operand_that_breaks_a_rule_is_refused(change: dict[str, object], message: str) -> None:
    node = program().nodes[0]
    with pytest.raises(ProtocolError, match=message):
        replace(node, operands=(replace(node.operands[0], **change),))  # type: ignore[arg-type]  # as above


def test_a_gather_cannot_leave_i64() -> None:
    node = program().nodes[1]
    index, data, weight = node.operands
    for stride, limit in ((2**40, 2**30), (-(2**40), 2**62)):
        with pytest.raises(ProtocolError, match="range of i64"):
            replace(node, operands=(index, replace(data, gather=Gather(0, stride, limit)), weight))
    with pytest.raises(ProtocolError, match="earlier plain one"):
        replace(node, operands=(index, data, replace(weight, gather=Gather(1, 1, 1))))


def test_a_program_that_contradicts_itself_is_refused() -> None:
    good = program()
    slot, (row, product, following) = good.slots[0], good.nodes
    wrong = {
        "no node 3": replace(good, slots=(replace(slot, producer=3),)),
        "its producer": replace(good, slots=(replace(slot, producer=1),)),
        "at least one constant": replace(good, constants=()),
        "at least one slot": replace(good, slots=()),
        "not available": replace(good, nodes=(product, row, following)),
        "says": replace(good, constants=(good.constants[1], good.constants[0])),
    }
    for message, broken in wrong.items():
        with pytest.raises(ProtocolError, match=message):
            broken.validate()


def test_types_have_limits() -> None:
    assert TensorType(F32, ()).numel == 1
    assert TensorType(F32, (65,)).leaves == 2
    for shape in ((0,), (2**31,), (2**16, 2**15), (1,) * 9, (-1,)):
        with pytest.raises(ProtocolError):
            TensorType(F32, shape)
    for data in (b"\x03\x00", b"\x01\x09", b"\x01\x00\x00", b""):
        with pytest.raises(ProtocolError):
            TensorType.decode(data)


def test_names_round_trip_and_refuse_anything_else() -> None:
    names = ProgramNames(("w",), ("x",), (NodeName("loss", "a.py:1: f()", "aten.mm.default"),), {"loss": 0})
    document = names.to_dict()
    assert ProgramNames.from_dict(document) == names
    for key, value in (
        ("observed", {"loss": 1}),
        ("nodes", [["a", "b"]]),
        ("slots", [1]),
        ("extra", 1),
        ("observed", []),
    ):
        with pytest.raises(ProtocolError):
            ProgramNames.from_dict({**document, key: value})


def shown(view: View, words: np.ndarray) -> np.ndarray:
    """What a view shows, by its definition."""
    result = np.empty(view.shape, words.dtype)
    for place in np.ndindex(*view.shape):
        result[place] = words[view.base + sum(s * c for s, c in zip(view.strides, place, strict=True))]
    return result


def mutated(generator: random.Random, value: Value, array: np.ndarray) -> tuple[Value | None, np.ndarray]:
    """One random view operation on both."""
    rank = array.ndim
    kind = generator.choice(("permute", "expand", "unsqueeze", "squeeze", "select", "cut", "reshape"))
    if kind == "permute":
        order = generator.sample(range(rank), rank)
        return permute(value, order), array.transpose(order)
    if kind == "expand" and rank < 5:
        shape = tuple(generator.choice((2, 3)) if size == 1 else size for size in (1, *array.shape))
        return expand(value, shape), np.broadcast_to(array, shape)
    if kind == "unsqueeze" and rank < 6:
        axis = generator.randrange(rank + 1)
        return unsqueeze(value, axis), np.expand_dims(array, axis)
    if kind == "squeeze":
        return squeeze(value, range(rank)), array.squeeze()
    if kind == "select" and rank > 1:
        axis = generator.randrange(rank)
        index = generator.randrange(array.shape[axis])
        return at_index(value, axis, index), array.take(index, axis)
    if kind == "cut" and rank:
        axis = generator.randrange(rank)
        start = generator.randrange(array.shape[axis])
        stop = generator.randrange(start + 1, array.shape[axis] + 1)
        step = generator.choice((1, 1, 2))
        place = (*[slice(None)] * axis, slice(start, stop, step))
        return cut(value, axis, start, stop, step), array[place]
    sizes = [size for whole in array.shape for size in factors(whole)]
    generator.shuffle(sizes)
    shape = tuple(sizes[:5]) if len(sizes) <= 5 else (array.size,)
    return reshape(value, shape), array.reshape(shape)


def factors(number: int) -> list[int]:
    for divisor in (2, 3, 5):
        if number % divisor == 0:
            return [divisor, *factors(number // divisor)]
    return [number] if number > 1 else []


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views_agree_with_numpy(seed: int) -> None:
    generator = random.Random(seed)
    shape = tuple(generator.choice((1, 2, 3, 4, 6)) for _ in range(generator.randrange(1, 5)))
    words = np.arange(np.prod(shape))
    value: Value = whole_view(Source.STATE, 0, TensorType(DType.F32, shape))
    array = words.reshape(shape)
    for _ in range(8):
        following, shown_next = mutated(generator, value, array)
        if following is None:
            continue
        value, array = following, shown_next
        assert isinstance(value, View)
        assert value.shape == array.shape
        np.testing.assert_array_equal(shown(value, words), array)


def test_reshape_finds_every_strided_view_that_numpy_finds() -> None:
    words = np.arange(24)
    base = whole_view(Source.STATE, 0, TensorType(DType.F32, (2, 3, 4)))
    array = words.reshape(2, 3, 4)
    for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1)):
        for shape in ((24,), (6, 4), (4, 6), (2, 12), (3, 2, 2, 2), (2, 3, 2, 2), (12, 2), (4, 2, 3), (3, 8)):
            moved = array.transpose(order)
            result = reshape(permute(base, order), shape)
            assert (result is None) == (not np.shares_memory(moved.reshape(shape), array))


def test_repeated_words_and_the_step_only_change_shape() -> None:
    for value in (Fill(1, DType.F32, (2, 1)), StepNumber((2, 1))):
        assert expand(permute(value, [1, 0]), (3, 2)).shape == (3, 2)
        assert squeeze(value, [1]).shape == (2,)
        seen = reshape(value, (-1,))
        assert seen is not None
        assert seen.shape == (2,)
        assert at_index(value, 0, 1).shape == (1,)
        assert unsqueeze(value, -1).shape == (2, 1, 1)


def test_impossible_views_are_refused() -> None:
    value = whole_view(Source.STATE, 0, TensorType(DType.F32, (2, 3)))
    for attempt in (
        lambda: permute(value, [0, 0]),
        lambda: permute(value, [0, 2]),
        lambda: expand(value, [3, 3]),
        lambda: expand(value, [3]),
        lambda: at_index(value, 1, 3),
        lambda: cut(value, 0, 1, 1),
        lambda: cut(value, 0, 0, 3),
        lambda: cut(value, 0, 0, 2, 0),
        lambda: reshape(value, (4,)),
        lambda: reshape(value, (0, -1)),
        lambda: reshape(value, (-1, -1)),
        lambda: squeeze(value, [2]),
    ):
        with pytest.raises(ProtocolError):
            attempt()


def test_numbers_become_words() -> None:
    assert float_word(0.1) == 0x3DCCCCCD
    assert float_word(float("nan")) == 0x7FC00000
    assert float_word(1e300) == 0x7F800000
    assert integer_word(-1) == 0xFFFFFFFF
    with pytest.raises(ProtocolError):
        integer_word(2**31)
