"""Kernels of contractions: matrix products and convolutions, tile by tile (contraction.h)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import ScalarProgram
from pol.execution.device.device import NAME, Kernel
from pol.execution.device.loops import Loops
from pol.execution.device.read_source import coordinate_statements, index_type, read_statements
from pol.graph.node import InputKind, Node
from pol.graph.tensor_type import row_major

_FEWEST = 8
"""Rows and columns: with fewer a thread for each element is as good."""


@dataclass(frozen=True)
class Tile:
    """Rows, columns and terms of a block, in shared memory; each thread has a square of `part` in its registers."""

    rows: int
    columns: int
    depth: int
    part: int

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.rows // self.part * (self.columns // self.part)


TILES = (Tile(128, 128, 8, 8), Tile(64, 64, 16, 4), Tile(32, 32, 16, 4))
_ENOUGH_BLOCKS = 128
"""Blocks that keep a large GPU busy: a smaller tile is better than fewer blocks."""


@dataclass(frozen=True)
class Contraction:
    """A fold of FFMA(x, y, acc), or ADD(acc, MUL(x, y)): x varies along rows, y along columns, both along batches."""

    x: int
    y: int
    integers: bool
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]


def contraction_of(node: Node, loops: Loops) -> Contraction | None:
    """The node as a contraction, if it is one with enough rows and columns."""
    pair = _factors(node)
    if pair is None or not node.fold or any(loops.reads[operand].gather for operand in pair):
        return None
    (x, y), axes = pair, range(len(loops.out))
    along_x, along_y = loops.axes(x), loops.axes(y)
    rows = tuple(axis for axis in axes if axis in along_x and axis not in along_y)
    columns = tuple(axis for axis in axes if axis in along_y and axis not in along_x)
    batch = tuple(axis for axis in axes if axis not in rows and axis not in columns)
    if min(_size(loops, rows), _size(loops, columns)) < _FEWEST:
        return None
    return Contraction(x, y, node.body.instructions[0].op is Op.MUL, batch, rows, columns)


def sizes_of(loops: Loops, contraction: Contraction) -> tuple[int, int, int]:
    """Batches, rows and columns."""
    return _size(loops, contraction.batch), _size(loops, contraction.rows), _size(loops, contraction.columns)


def contraction_kernel(node: Node, loops: Loops, contraction: Contraction, tile: Tile | None = None) -> Kernel:
    """The kernel of a contraction; the tile changes no bit."""
    batches, rows, columns = sizes_of(loops, contraction)

    def blocks(candidate: Tile) -> int:
        return batches * -(-rows // candidate.rows) * -(-columns // candidate.columns)

    if tile is None:
        tile = next((candidate for candidate in TILES if blocks(candidate) >= _ENOUGH_BLOCKS), TILES[-1])
    products = "IntegerProducts" if contraction.integers else "FloatProducts"
    shape = f"{tile.rows}, {tile.columns}, {tile.depth}, {tile.part}"
    source = f"""{node_struct(node, loops, contraction)}
POL_KERNEL({NAME}, {tile.threads}, Word* POL_RESTRICT out{sources(node)}, Long step) {{
    contract<Node_{NAME}, {products}, {shape}>(out, s{contraction.x}, s{contraction.y}, step, block);
}}
POL_END
"""
    return Kernel(source, tile.threads, blocks(tile))


def sources(node: Node) -> str:
    """The parameters of a kernel that are the node's operands."""
    return "".join(f", const Word* POL_RESTRICT s{operand}" for operand in range(len(node.operands)))


def node_struct(node: Node, loops: Loops, contraction: Contraction) -> str:
    """What contraction.h needs to know of a node: sizes, the words of rows and columns, places in the output."""
    names = [f"o{axis}" for axis in range(len(loops.out))]
    strides = row_major(loops.out)
    place = " + ".join(f"{name} * Index({stride})" for name, stride in zip(names, strides, strict=True))
    return f"""
struct Node_{NAME} {{
    typedef {index_type(loops)} Index;
    static constexpr Index kRowCount = {_size(loops, contraction.rows)}, kTerms = {math.prod(loops.fold)};
    static constexpr Index kColumnCount = {_size(loops, contraction.columns)};
    static constexpr Index kBatches = {_size(loops, contraction.batch)};
    static constexpr Word kInit = {node.init:#x}u;
    static constexpr bool kRowsAlongFold = {_along_fold(loops, contraction.x)};
    static constexpr bool kColumnsAlongFold = {_along_fold(loops, contraction.y)};
    {_reader(loops, "x", contraction.x, contraction.batch, contraction.rows)}
    {_reader(loops, "y", contraction.y, contraction.batch, contraction.columns)}
    POL_INLINE Index place(Index batch, Index row, Index column) {{
        {_lines(loops, names, contraction.batch, "Word(batch)", "b")}
        {_lines(loops, names, contraction.rows, "Word(row)", "r")}
        {_lines(loops, names, contraction.columns, "Word(column)", "c")}
        return {place};
    }}
}};
"""


def _factors(node: Node) -> tuple[int, int] | None:
    """The operands x and y of a body that adds their product to the accumulator, and nothing else."""
    inputs = [(entry.kind, entry.index) for entry in node.inputs]
    accumulators = [n for n, (kind, _) in enumerate(inputs) if kind is InputKind.ACCUMULATOR]
    body: ScalarProgram = node.body
    ops = [instruction.op for instruction in body.instructions]
    if len(accumulators) != 1 or body.constants:
        return None
    first, accumulator = body.instructions[0], accumulators[0]
    if ops == [Op.MUL, Op.ADD]:
        if sorted(body.instructions[1].operands) != sorted([accumulator, len(inputs)]):
            return None
    elif ops != [Op.FFMA] or first.c != accumulator:
        return None
    if accumulator in (first.a, first.b) or any(inputs[n][0] is not InputKind.OPERAND for n in (first.a, first.b)):
        return None
    x, y = inputs[first.a][1], inputs[first.b][1]
    return None if x == y else (x, y)


def _size(loops: Loops, axes: Sequence[int]) -> int:
    return math.prod(loops.out[axis] for axis in axes)


def _along_fold(loops: Loops, operand: int) -> str:
    """Whether neighboring terms are neighbors in memory: then neighboring threads read these."""
    address = loops.reads[operand].address
    return "true" if address.fold and abs(address.fold[-1]) == 1 else "false"


def _reader(loops: Loops, name: str, operand: int, batch: Sequence[int], own: Sequence[int]) -> str:
    """A function that reads the word of an operand; coordinates that it does not vary with are 0."""
    names = [f"o{axis}" for axis in range(len(loops.out))]
    fold = [f"f{axis}" for axis in range(len(loops.fold))]
    others = [axis for axis in range(len(loops.out)) if axis not in batch and axis not in own]
    lines = [
        _lines(loops, names, batch, "Word(batch)", "b"),
        _lines(loops, names, own, "Word(own)", "w"),
        *(f"const Index o{axis} = 0;" for axis in others),
        *coordinate_statements("Word(k)", fold, loops.fold),
        *read_statements(loops, operand, names, fold, source="s"),
        *(f"(void){unused};" for unused in (*names, *fold)),
    ]
    body = "\n        ".join(lines)
    return f"""POL_INLINE Word {name}(const Word* s{operand}, Long step, Index batch, Index own, Index k) {{
        (void)step, (void)batch, (void)own, (void)k;
        {body}
        return x{operand};
    }}"""


def _lines(loops: Loops, names: Sequence[str], axes: Sequence[int], index: str, rest: str) -> str:
    """Statements that take a number within some output dimensions apart."""
    text = "\n        ".join(
        coordinate_statements(index, [names[axis] for axis in axes], [loops.out[axis] for axis in axes])
    )
    return text.replace("_rest", f"_rest_{rest}")
