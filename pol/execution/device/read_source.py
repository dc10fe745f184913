"""Reads of operands as statements of C++: addresses, bounds and gathers (docs/spec/program.md, "Meaning of a node")."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pol.execution.device.loops import Form, Loops
from pol.graph.node import Gather

_INT_LIMIT, _INDEX_LIMIT = 2**31 - 256, 2**31
"""Tiles look a little beyond the last term, and the limit of a form is one more than its greatest value."""


def index_type(loops: Loops) -> str:
    """The type of addresses and of places in a fold: 32 bits if every sum within a form fits, and all limits."""
    greatest = math.prod(loops.fold)  # terms of strides 0 move no address
    for read in loops.reads:
        for form in read.forms:
            low, high = _reach(loops, form)
            if form is read.address and read.gather is not None:
                moved = abs(read.gather.stride) * _most_indices(read.gather)
                low, high = low - moved, high + moved
            greatest = max(greatest, -low, high)
    for form in loops.coordinates.values():
        greatest = max(greatest, *map(abs, _reach(loops, form)))
    return "int" if greatest < _INT_LIMIT else "Long"


def form_expression(form: Form, out: Sequence[str], fold: Sequence[str]) -> str:
    """A form over named coordinates; ``Index`` is the type of its terms."""
    terms = [
        name if stride == 1 else f"{name} * Index({stride})"
        for stride, name in zip((*form.out, *form.fold), (*out, *fold), strict=True)
        if stride
    ]
    if form.step:
        terms.append(f"step * Index({form.step})")
    if form.base or not terms:
        terms.append(f"Index({form.base})")
    return " + ".join(terms)


def read_statements(
    loops: Loops, operand: int, out: Sequence[str], fold: Sequence[str], word: str = "x", source: str = "s"
) -> list[str]:
    """Statements that leave the word of an operand in ``word`` and its number; sources are named ``source``."""
    read = loops.reads[operand]
    address = form_expression(read.address, out, fold)
    conditions: list[str] = []
    lines = []
    for number, (form, limit) in enumerate(read.bounds):
        if not loops.within(form, limit):
            name = f"b{operand}_{number}"
            lines.append(f"const Index {name} = {form_expression(form, out, fold)};")
            conditions.append(_in_range(name, max(0, min(limit, loops.interval(form)[1] + 1))))
    if read.gather is not None:
        index, valid = f"{word}{read.gather.operand}", f"{word}{read.gather.operand} < {_most_indices(read.gather)}u"
        conditions.append(valid)
        lines.append(f"const Index g{operand} = {valid} ? Index({index}) : Index(0);")
        address = f"{address} + g{operand} * Index({read.gather.stride})"
    if read.gather is not None or not loops.within(read.address, read.numel):
        lines.append(f"const Index a{operand} = {address};")
        conditions.append(_in_range(f"a{operand}", read.numel))
        address = f"a{operand}"
    if conditions:
        lines.append(
            f"const Word {word}{operand} = {' && '.join(conditions)} ? {source}{operand}[{address}] : {read.fill:#x}u;"
        )
    else:
        lines.append(f"const Word {word}{operand} = {source}{operand}[{address}];")
    return lines


def coordinate_statements(index: str, names: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """Statements that take a row-major index apart into coordinates."""
    lines = []
    rest = index
    for position in reversed(range(len(sizes))):
        name, size = names[position], sizes[position]
        if position == 0:
            lines.append(f"const Index {name} = Index({rest});")
        else:
            lines.append(f"const Index {name} = Index({rest} % {size}u);")
            lines.append(f"const Word {name}_rest = {rest} / {size}u;")
            rest = f"{name}_rest"
    return lines


def _most_indices(gather: Gather) -> int:
    """The limit of an index that is a word without a sign."""
    return max(0, min(gather.limit, _INDEX_LIMIT))


def _in_range(name: str, limit: int) -> str:
    return f"{name} >= 0 && {name} < Index({limit})"


def _reach(loops: Loops, form: Form) -> tuple[int, int]:
    """A range that holds every partial sum of a form."""
    low, high = min(0, form.base), max(0, form.base)
    for stride, size in zip((form.step, *form.out, *form.fold), (2**32, *loops.out, *loops.fold), strict=True):
        low += min(0, stride * (size - 1))
        high += max(0, stride * (size - 1))
    return low, high
