"""Kernels of folds of which each element needs only the terms with its key, as in the gradient of a table lookup.

The terms of a line are sorted by key, equal keys by their order. An element finds its own by bisection and runs the
whole body for them, in order: all other terms leave the accumulator as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pol.arithmetic.primitives import Op
from pol.execution.device.device import Kernel
from pol.execution.device.loops import Loops
from pol.execution.device.node_source import THREADS, body_statements, kernel_source, term_statements
from pol.execution.device.read_source import coordinate_statements, index_type, read_statements
from pol.graph.node import InputKind, Node
from pol.graph.tensor_type import MAX_ELEMENTS, row_major

_FEWEST_TERMS = 64
"""With fewer, looking at all of them is faster than sorting."""
_MOST_COPIES = 64
"""Of a word among the keys: a word without strides would fill any memory."""


@dataclass(frozen=True)
class KeyedFold:
    """`key` is the operand whose word names the element, along output dimension `axis`; lines are the other ones."""

    key: int
    coordinate: int
    """The input that the key is compared with."""
    axis: int
    lines: tuple[int, ...]
    """Output dimensions that the key varies with."""


def keyed_fold_of(node: Node, loops: Loops) -> KeyedFold | None:
    """The node as a keyed fold, if it is one with many terms."""
    if math.prod(loops.fold) < _FEWEST_TERMS:
        return None
    first = len(node.inputs) + len(node.body.constants)
    for position, instruction in enumerate(node.body.instructions):
        if instruction.op is not Op.EQ:
            continue
        for key, coordinate in (instruction.operands, instruction.operands[::-1]):
            found = _keyed(node, loops, key, coordinate)
            few = found is not None and _keys(loops, found) <= _most_keys(node, found)
            if few and _keeps_accumulator(node, first + position):
                return found
    return None


def key_kernel(node: Node, loops: Loops, keyed: KeyedFold) -> Kernel:
    """The kernel that writes the keys: a row of terms for each line."""
    terms = math.prod(loops.fold)
    sizes = [loops.out[axis] for axis in keyed.lines]
    names = [f"o{axis}" for axis in range(len(loops.out))]
    fold = [f"f{axis}" for axis in range(len(loops.fold))]
    lines = [f"const Word line = i / {terms}u, k = i % {terms}u;"]
    lines += coordinate_statements("line", [names[axis] for axis in keyed.lines], sizes)
    lines += [f"const Index o{axis} = 0;" for axis in range(len(loops.out)) if axis not in keyed.lines]
    lines += [line.replace("_rest", "_rest_k") for line in coordinate_statements("k", fold, loops.fold)]
    lines += read_statements(loops, keyed.key, names, fold)
    lines += [f"(void){name};" for name in (*names, *fold)]
    lines.append(f"out[i] = x{keyed.key};")
    count = _keys(loops, keyed)
    source = kernel_source(len(node.operands), index_type(loops), THREADS, count, lines)
    return Kernel(source, THREADS, -(-count // THREADS))


def keyed_kernel(node: Node, loops: Loops, keyed: KeyedFold) -> Kernel:
    """The kernel of the fold, given the sorted keys of each line and the terms that they came from."""
    terms = math.prod(loops.fold)
    out = [f"o{axis}" for axis in range(len(loops.out))]
    fold = [f"f{axis}" for axis in range(len(loops.fold))]
    strides = row_major(tuple(loops.out[axis] for axis in keyed.lines))
    line = " + ".join(f"Word(o{axis}) * {stride}u" for axis, stride in zip(keyed.lines, strides, strict=True)) or "0u"
    lines = coordinate_statements("i", out, loops.out)
    lines += term_statements(node, loops, out, fold, varying=False)
    lines += [
        f"const Word* own = keys + Long({line}) * {terms};",
        f"const Word* places = order + Long({line}) * {terms};",
        f"const Word sought = c{keyed.coordinate};",
        f"Word low = 0, high = {terms}u;",
        "while (low < high) {",
        "    const Word middle = low + (high - low) / 2;",
        "    if (int(own[middle]) < int(sought)) low = middle + 1; else high = middle;",
        "}",
        f"Word value = {node.init:#x}u;",
        f"for (; low < {terms}u && own[low] == sought; ++low) {{",
        "const Word k = places[low];",
    ]
    lines += [text.replace("_rest", "_rest_k") for text in coordinate_statements("k", fold, loops.fold)]
    lines += term_statements(node, loops, out, fold, varying=True)
    body, result = body_statements(node)
    lines += [*body, f"value = {result};", "}", "out[i] = value;"]
    extra = ", const Word* POL_RESTRICT keys, const Word* POL_RESTRICT order"
    source = kernel_source(len(node.operands), index_type(loops), THREADS, node.type.numel, lines, extra)
    return Kernel(source, THREADS, -(-node.type.numel // THREADS))


def _keyed(node: Node, loops: Loops, key: int, coordinate: int) -> KeyedFold | None:
    """Whether two registers are a word of memory and the coordinate of a dimension that it does not vary with."""
    if max(key, coordinate) >= len(node.inputs) or node.inputs[key].kind is not InputKind.OPERAND:
        return None
    form = loops.coordinates.get(coordinate)
    operand = node.inputs[key].index
    if form is None or form.folds or form.step or len(form.axes()) != 1 or loops.reads[operand].gather is not None:
        return None
    (axis,) = form.axes()
    axes = loops.axes(operand)
    return None if axis in axes else KeyedFold(operand, coordinate, axis, tuple(sorted(axes)))


def _keys(loops: Loops, keyed: KeyedFold) -> int:
    """The words of all lines' keys, which threads number by 32 bits."""
    return math.prod(loops.out[axis] for axis in keyed.lines) * math.prod(loops.fold)


def _most_keys(node: Node, keyed: KeyedFold) -> int:
    return min(MAX_ELEMENTS, _MOST_COPIES * node.operands[keyed.key].type.numel)


def _keeps_accumulator(node: Node, guard: int) -> bool:
    """Whether the result is the accumulator in every term in which register `guard` is 0."""
    registers = len(node.inputs) + len(node.body.constants)
    keeps = [entry.kind is InputKind.ACCUMULATOR for entry in node.inputs] + [False] * len(node.body.constants)
    zero = [False] * registers
    for instruction in node.body.instructions:
        number = len(keeps)
        zero.append(number == guard or (instruction.op is Op.AND and any(zero[r] for r in instruction.operands)))
        a, b, c = instruction.a, instruction.b, instruction.c
        keeps.append(instruction.op is Op.SELECT and keeps[c] and (zero[a] or keeps[b]))
    return keeps[-1]
