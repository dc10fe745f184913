"""Descriptors: round trips, exact bytes, and nothing but canonical bytes is accepted."""

import random
from dataclasses import replace

import pytest

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder, ScalarProgram
from pol.errors import ProtocolError
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
