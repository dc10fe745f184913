"""Every operation ends in court: a lie in a node of it is found, and an EVM executes the instruction that is wrong.

`POL_WRITE_COURT=1 pytest tests/dispute/test_every_operation.py` writes what docs/operations.md says of nodes and gas.
"""

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from dispute_harness import Court, Played, convict, court, dearest_lie, filled_lie, one_step_of
from lab.json_rows import json_rows
from lab.operations import functions_in
from operation_samples import CASES, Case, full_name, graph_of
from pol.arithmetic.functions import CATALOGUE
from pol.dispute.moves import Describe
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.graph.capture import to_words
from pol.graph.lowering import RULES, lower

MEASURED = Path(__file__).parents[2] / "docs" / "operations.json"
MOVE_GAS, DESCRIBE_GAS, PROOF_GAS = 60_000, 85_000, 140_000
"""What one transaction may cost: a move, the one that shows a descriptor, the one that proves."""
TOLERANCE = 0.01
"""Gas counts the zero bytes of hashes: another drawing of the samples' numbers moves it a little."""


@pytest.fixture(scope="module")
def evm() -> Iterator[Court]:
    with court() as found:
        yield found


@pytest.fixture(scope="module")
def stated() -> Iterator[dict[str, Any]]:
    """What the document says; written back if the tests are told to."""
    if not os.environ.get("POL_WRITE_COURT"):
        yield json.loads(MEASURED.read_text())["court"]
        return
    found: dict[str, Any] = {}
    yield found
    document = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    document["court"] = document.get("court", {}) | found
    document["court"] = {name: entry for name, entry in document["court"].items() if name in RULES}
    MEASURED.write_text(json_rows(document, sort_keys=True))


def execution_of(operation: str, case: Case) -> tuple[SegmentTrace, list[int]]:
    """One honest step of a sample, and the nodes that stand for its operation."""
    graph, tensors = graph_of(operation, case)
    program, _ = lower(graph)
    state = [to_words("s", tensor) for tensor in tensors]
    honest = one_step_of(program, [to_words("c", torch.tensor(0.0))], state)
    kept = {slot.producer for slot in program.slots}
    return honest, [n for n in range(len(program.nodes)) if n not in kept] or list(range(len(program.nodes)))


def seed_of(operation: str) -> Random:
    return Random(zlib.crc32(operation.encode()))


def check_gas(played: Played, what: str) -> None:
    assert played.proof_gas <= PROOF_GAS, what
    for position, move, gas in played.moves[:-1]:
        assert gas <= (DESCRIBE_GAS if isinstance(move, Describe) else MOVE_GAS), (what, position.level)


@pytest.mark.parametrize("operation", sorted(CASES))
def test_a_lie_in_an_operation_is_convicted_on_an_evm(evm: Court, stated: dict[str, Any], operation: str) -> None:
    """Its dearest map and its dearest fold: what they say of the first sample is what the document says."""
    honest, numbers = execution_of(operation, CASES[operation][0])
    nodes = honest.program.nodes
    found = {
        "maps": sum(not nodes[n].fold for n in numbers),
        "folds": sum(bool(nodes[n].fold) for n in numbers),
        "functions": sorted(
            {name for case in CASES[operation] for node in lower(graph_of(operation, case)[0])[0].nodes
             for name in functions_in(node.body)}
        ),
    }  # fmt: skip
    gas = 0
    for kind in (False, True):
        same = [n for n in numbers if bool(nodes[n].fold) is kind]
        if same:
            number = max(same, key=lambda n: (len(nodes[n].operands), len(nodes[n].encode())))
            played = convict(evm, honest, dearest_lie(honest, number, seed_of(operation)))
            check_gas(played, operation)
            gas = max(gas, played.proof_gas)
    name = full_name(operation)
    if os.environ.get("POL_WRITE_COURT"):
        stated[name] = found | {"gas": gas}
    assert {key: stated[name][key] for key in found} == found, "run this file with POL_WRITE_COURT=1"
    assert gas == pytest.approx(stated[name]["gas"], rel=TOLERANCE), "run this file with POL_WRITE_COURT=1"


@pytest.mark.slow
@pytest.mark.parametrize("operation", sorted(CASES))
def test_lies_in_all_nodes_of_all_samples_are_convicted_on_an_evm(evm: Court, operation: str) -> None:
    random, seen = seed_of(operation), set()
    for case in CASES[operation]:
        honest, numbers = execution_of(operation, case)
        for number in numbers:
            descriptor = honest.program.nodes[number].encode()
            if descriptor in seen:
                continue
            seen.add(descriptor)
            for lie in (dearest_lie(honest, number, random), filled_lie(honest, number, random)):
                if lie is not None:
                    check_gas(convict(evm, honest, lie), f"{operation} {case}")


def test_functions_are_found_in_bodies() -> None:
    for name, build in CATALOGUE.items():
        assert name in functions_in(build()) or len(build().instructions) < 3
    assert {name for entry in json.loads(MEASURED.read_text())["court"].values() for name in entry["functions"]} >= {
        *("exp", "log", "erf", "tanh", "sigmoid", "power", "sin", "cos")
    }
