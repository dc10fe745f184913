"""The native kernels reproduce the shared vector files: explicit cases, and digests over 100,000 each."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_primitives import program_values
from lab.arithmetic.adversarial_words import arguments, cases
from pol.arithmetic.primitives import ARITY, Op, Words
from pol.arithmetic.scalar_program import Instruction, ScalarProgram

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
PRIMITIVES: dict[str, Any] = json.loads((VECTORS / "primitives.json").read_text())
PROGRAMS: dict[str, Any] = json.loads((VECTORS / "programs.json").read_text())


def digest(*columns: Words) -> str:
    return sha256(b"".join(column.astype("<u4").tobytes() for column in columns)).hexdigest()


def explicit(rows: list[str]) -> Words:
    return np.array([[int(word, 16) for word in row.split()] for row in rows], np.uint32).T.copy()


@pytest.mark.parametrize("name", PRIMITIVES["primitives"])
def test_primitive(name: str) -> None:
    entry = PRIMITIVES["primitives"][name]
    op = Op[name]
    program = ScalarProgram(ARITY[op], (), (Instruction(op, *range(ARITY[op])),))
    *operands, expected = explicit(entry["cases"])
    assert np.array_equal(program_values(program, operands)[0], expected)
    drawn = cases(op, PRIMITIVES["count"], PRIMITIVES["seed"])[: ARITY[op]]
    assert digest(*drawn) == entry["inputs"]
    assert digest(program_values(program, drawn)[0]) == entry["results"]


@pytest.mark.parametrize("name", PROGRAMS["programs"])
def test_program(name: str) -> None:
    entry = PROGRAMS["programs"][name]
    program = ScalarProgram.decode(bytes.fromhex(entry["program"]))
    *inputs, expected = explicit(entry["cases"])
    assert np.array_equal(program_values(program, inputs)[-1], expected)
    drawn = arguments(program.inputs, PROGRAMS["count"], PROGRAMS["seed"])
    assert digest(*drawn) == entry["inputs"]
    assert digest(program_values(program, drawn)[-1]) == entry["results"]
