"""What is measured of operations, for the table in docs/operations.md: nodes, errors, gas and speed.

docs/operations.json holds it: "court" is written by tests/dispute/test_every_operation.py, "speed" by
`PYTHONPATH=tests python -m lab.benchmarks.operation_speed`. Errors are those of docs/spec/functions.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.scalar_program import ScalarProgram

HEADINGS = ("nodes", "functions, ulp", "gas", "time / torch")
_MISSING = "-"


@dataclass(frozen=True)
class Measurements:
    """Per operation: what disputes and timings found; per function: its greatest error as a text."""

    court: Mapping[str, Mapping[str, Any]]
    speed: Mapping[str, float]
    errors: Mapping[str, str]

    @classmethod
    def read(cls, docs: Path) -> Measurements:
        """From the documents in a folder."""
        document = json.loads((docs / "operations.json").read_text())
        rows = re.findall(r"^\|(.*)\|$", (docs / "spec" / "functions.md").read_text(), re.MULTILINE)
        cells = [[cell.strip() for cell in row.split("|")] for row in rows]
        return cls(document.get("court", {}), document.get("speed", {}), {c[0]: c[4] for c in cells if len(c) > 4})

    def cells(self, operation: str) -> list[str]:
        """Of an operation's row, below HEADINGS."""
        found, speed = self.court.get(operation), self.speed.get(operation)
        shown = _MISSING if speed is None else f"{speed:.2f}"
        if found is None:
            return [_MISSING, _MISSING, _MISSING, shown]
        counts = [(found["maps"], "map"), (found["folds"], "fold")]
        nodes = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for count, kind in counts if count)
        functions = ", ".join(f"{name} {self.errors[name]}" for name in found["functions"]) or _MISSING
        return [nodes, functions, f"{round(found['gas'], -2):,}", shown]


def functions_in(body: ScalarProgram) -> set[str]:
    """Names of the functions that a scalar program computes; one that is part of another counts only as that."""
    found: dict[str, list[set[int]]] = {}
    first = body.inputs + len(body.constants)
    for name, build in CATALOGUE.items():
        function = build()
        result = function.inputs + len(function.constants) + len(function.instructions) - 1
        for register in range(first, first + len(body.instructions)):
            places: dict[int, int] = {}
            if _is_same(function, result, body, register, places):
                found.setdefault(name, []).append({place for place in places.values() if place >= first})
    everything = [places for each in found.values() for places in each]
    return {name for name, each in found.items() if any(not any(own < other for other in everything) for own in each)}


def _is_same(function: ScalarProgram, own: int, body: ScalarProgram, other: int, places: dict[int, int]) -> bool:
    """Whether a register of the body holds what a register of the function does; notes which stands for which."""
    if own in places:
        return places[own] == other
    places[own] = other
    if own < function.inputs:
        return True
    own_constants, constants = len(function.constants), len(body.constants)
    if own < function.inputs + own_constants:
        word = function.constants[own - function.inputs]
        return body.inputs <= other < body.inputs + constants and body.constants[other - body.inputs] == word
    if other < body.inputs + constants:
        return False
    left = function.instructions[own - function.inputs - own_constants]
    right = body.instructions[other - body.inputs - constants]
    pairs: Sequence[tuple[int, int]] = tuple(zip(left.operands, right.operands, strict=False))
    return left.op is right.op and all(_is_same(function, a, body, b, places) for a, b in pairs)
