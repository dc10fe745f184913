"""What is measured of operations, and the document that shows it beside their definitions.

`PYTHONPATH=tests python -m lab.operations > docs/operations.md`, in the root of the repository. docs/operations.json
holds what is measured: "court" is written by tests/dispute/test_every_operation.py, "speed" by
`PYTHONPATH=tests python -m lab.benchmarks.operation_speed`. Errors are those of docs/spec/functions.md.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.scalar_program import ScalarProgram
from pol.graph.aten_graph import LOWERING_VERSION
from pol.graph.lowering import RULES
from pol.graph.lowering.advice import DECOMPOSED
from pol.graph.lowering.folds import LANES, ROUNDS, SEQUENTIAL
from pol.graph.lowering.rules import FAMILIES

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


def document(measured: Measurements) -> str:
    """The text of docs/operations.md."""
    return "\n".join(_lines(measured)) + "\n"


def _lines(measured: Measurements) -> Iterator[str]:
    yield "# Operations with a definition"
    yield ""
    yield "Written by `PYTHONPATH=tests python -m lab.operations > docs/operations.md`; do not edit."
    yield "The definitions stand on the rules in `pol/graph/lowering/rules/`, one file for each section;"
    yield "[how to add one](guides/add_operation.md)."
    yield ""
    yield f"Lowering version {LOWERING_VERSION} ([spec/documents.md](spec/documents.md)): {len(RULES)} ATen operations."
    yield "Upper-case names are primitives ([spec/arithmetic.md](spec/arithmetic.md)), functions are those of"
    yield "[spec/functions.md](spec/functions.md). Elementwise operations broadcast, and convert integers with I2F"
    yield "where the result is float32. An operation on bfloat16 computes in float32; each element of a bfloat16 result"
    yield "is then rounded once, to nearest, ties to even."
    yield ""
    yield "A reduction counts neighboring reduced dimensions that are evenly spaced in memory as one, and folds up to"
    yield f"{SEQUENTIAL} terms in row-major order, from the neutral element on. More terms are folded in {LANES}"
    yield f"lanes along the last of these dimensions that has at least {LANES} terms (or else along the longest, in as"
    yield f"many lanes as the greatest power of two in it): lane l takes the terms l, l + {LANES}, ..., in row-major"
    yield f"order with those of the other dimensions. Lanes of more than {ROUNDS} rounds are cut into equal pieces,"
    yield f"folded in order. Then halves are joined: lane l with l + {LANES // 2}, l + {LANES // 4}, ..., l + 1."
    yield ""
    yield "Measured ([operations.json](operations.json)):"
    yield "- **nodes**: the maps and folds of a small sample (`tests/operation_samples.py`), after joining."
    yield "- **functions, ulp**: functions of its programs with their greatest errors in units in the last place. The"
    yield "  rest is primitives, each correctly rounded (0.5 ulp), in the order that the definition gives."
    yield "- **gas**: of the transaction that ends a dispute over the sample by executing the instruction that reads"
    yield "  most, without what the market then settles with the parties (about 55,000). A word read from a tensor"
    yield "  costs about 900 gas more for each doubling of the tensor or of the number of nodes."
    yield "- **time / torch**: our kernels over torch's for about a million elements, one thread each, medians of"
    yield "  alternating runs; `-` where it is not measured."
    for family in FAMILIES:
        title, _, rest = inspect.cleandoc(family.__doc__ or "").partition("\n\n")
        yield ""
        yield f"## {title.removesuffix('.')}"
        if rest:
            yield rest
            yield ""
        yield f"| operation | definition and limits | {' | '.join(HEADINGS)} |"
        yield f"| --- | --- |{' --- |' * len(HEADINGS)}"
        for name, rule in RULES.items():
            if rule.lower.__module__ == family.__name__:
                cells = [f"`{name}`", rule.defines.replace("|", "\\|"), *measured.cells(name)]
                yield f"| {' | '.join(cells)} |"
    yield ""
    yield "## Replaced at capture"
    yield "By torch's own decomposition into the operations above, before the graph is recorded:"
    yield f"{', '.join(f'`{name}`' for name in sorted(DECOMPOSED))}."


if __name__ == "__main__":
    print(document(Measurements.read(Path("docs"))), end="")
