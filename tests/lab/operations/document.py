"""The table of all operations that have a definition, from their rules: docs/operations.md."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from lab.operations.measurements import HEADINGS, Measurements
from pol.graph.aten_graph import LOWERING_VERSION
from pol.graph.lowering import RULES
from pol.graph.lowering.advice import DECOMPOSED
from pol.graph.lowering.folds import LANES, ROUNDS, SEQUENTIAL
from pol.graph.lowering.rules import FAMILIES


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
