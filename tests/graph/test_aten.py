"""The record of ATen operations survives JSON, and a stranger's document is checked."""

import copy
import json
import random
from typing import Any

import pytest

from pol.errors import PolError, ProtocolError
from pol.graph.aten_graph import LOWERING_VERSION, AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref, TorchDType
from pol.graph.step_program import Component

pytestmark = pytest.mark.rules


def graph() -> AtenGraph:
    matrix, scalar = AtenType("float32", (2, 3)), AtenType("float32", ())
    return AtenGraph(
        (
            AtenInput(InputRole.STATE, "w", matrix, Component.PARAMETER),
            AtenInput(InputRole.CONSTANT, "x", AtenType("int64", (4,))),
            AtenInput(InputRole.STEP, "step", AtenType("int64", ())),
        ),
        (
            AtenNode("aten.add.Tensor", (Ref(0), 0.1), (("alpha", 2**60),), (matrix,), "a", "f.py:1: a"),
            AtenNode(
                "aten.sum.dim_IntList", (Ref(3), (0, -1), True), (("dtype", TorchDType("float32")),), (scalar,), "b", ""
            ),
            AtenNode("aten.gelu.default", (Ref(3), None, float("inf")), (("approximate", "tanh"),), (matrix,), "c", ""),
        ),
        (Ref(5),),
        (("loss", Ref(4)),),
    )


def test_round_trip_through_json() -> None:
    assert AtenGraph.from_dict(json.loads(json.dumps(graph().to_dict()))) == graph()


@pytest.mark.parametrize("member", ["version", "lowering"])
@pytest.mark.parametrize("value", [0, LOWERING_VERSION + 1, "1", None])
def test_another_version_is_refused(member: str, value: object) -> None:
    with pytest.raises(ProtocolError, match="has the format version"):
        AtenGraph.from_dict({**graph().to_dict(), member: value})


@pytest.mark.parametrize(
    "number",
    [
        {"int": "+1"}, {"int": " 1"}, {"int": "1_0"}, {"int": "01"}, {"int": "1" * 21}, {"int": 1},
        {"float": "1.5"}, {"float": "0x1.8P+0"}, {"float": "0x1.8p0"}, {"float": "infinity"},
        {"float": "0x1p5000"},
    ],
)  # fmt: skip
def test_a_number_has_one_encoding(number: dict[str, Any]) -> None:
    document = graph().to_dict()
    document["nodes"][0]["arguments"][1] = number
    with pytest.raises(ProtocolError, match=r"not a(n argument| number|)|string"):
        AtenGraph.from_dict(document)


@pytest.mark.parametrize("number", [0, -(2**63), 0.0, -0.0, 0.1, 5e-324, float("inf"), float("-inf"), float("nan")])
def test_every_number_has_an_encoding(number: float) -> None:
    document = graph().to_dict()
    encoded = {"float": number.hex()} if isinstance(number, float) else {"int": str(number)}
    document["nodes"][0]["arguments"][1] = encoded
    assert AtenGraph.from_dict(document).to_dict() == document


def test_properties() -> None:
    assert [entry.name for entry in graph().slots] == ["w"]
    assert [entry.name for entry in graph().constants] == ["x"]
    assert graph().type_of(Ref(4)).shape == ()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in places(child, (*path, key)))]


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_document_is_refused_or_means_itself(seed: int) -> None:
    generator = random.Random(seed)
    document = graph().to_dict()
    spots = [path for path in places(document) if path]
    odd = [None, True, 0, -1, 2**40, 1.5, "", "x", [], [[]], {}, {"ref": [0, 0]}, {"int": "9" * 30}, {"float": "0x"}]
    refused = 0
    for _ in range(1500):
        changed = copy.deepcopy(document)
        *path, last = generator.choice(spots)
        target: Any = changed
        for key in path:
            target = target[key]
        target[last] = generator.choice(odd)
        try:
            decoded = AtenGraph.from_dict(changed)
        except PolError:
            refused += 1
            continue
        assert AtenGraph.from_dict(decoded.to_dict()) == decoded
    assert refused > 700


@pytest.mark.parametrize("document", [None, [], {}, {"version": 2}, "x", {**graph().to_dict(), "version": 2}])
def test_other_documents_are_refused(document: object) -> None:
    with pytest.raises(ProtocolError):
        AtenGraph.from_dict(document)


def test_a_graph_that_contradicts_itself_is_refused() -> None:
    good = graph()
    state, constant, step = good.inputs
    wrong: list[dict[str, Any]] = [
        {"next_state": ()},
        {"next_state": (Ref(4),)},
        {"next_state": (Ref(6),)},
        {"next_state": (Ref(5, 1),)},
        {"next_state": (Ref(-1),)},
        {"inputs": (constant, state, step)},
        {"inputs": (state, constant)},
        {"inputs": (state, constant, AtenInput(InputRole.STEP, "step", AtenType("float32", ())))},
        {"inputs": (AtenInput(InputRole.STATE, "w", state.type), constant, step)},
        {"nodes": good.nodes[::-1]},
        {"observed": (("loss", Ref(9)),)},
    ]
    fields = {"inputs": good.inputs, "nodes": good.nodes, "next_state": good.next_state, "observed": good.observed}
    for change in wrong:
        with pytest.raises(ProtocolError):
            AtenGraph(**{**fields, **change})


def test_types_without_words_are_refused() -> None:
    for dtype, shape in (("float64", (1,)), ("float32", (0,)), ("float32", (1,) * 9), ("", ())):
        with pytest.raises(ProtocolError):
            AtenType(dtype, shape)
