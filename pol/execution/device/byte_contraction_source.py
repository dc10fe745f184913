"""Kernels of contractions of integers, on units that multiply bytes if all words are bytes (byte_contraction.h)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pol.execution.device.contraction_source import Contraction, node_struct, sizes_of, sources
from pol.execution.device.kernel import NAME, Kernel
from pol.execution.device.loops import Loops
from pol.graph.node import Node

THREADS = 256
_TILE = 128
_FEWEST_ROWS, _FEWEST_TERMS = 32, 32
"""With fewer, most of a tile is idle."""
_MOST_COPIES = 16
"""Of a word among packed ones, as in windows of 8 by 8: a word without strides would fill any memory."""


@dataclass(frozen=True)
class ByteKernels:
    """Two kernels that pack the words of x and of y, and one that multiplies; sizes of what they write, in words."""

    pack_x: Kernel
    pack_y: Kernel
    contract: Kernel
    x_words: int
    y_words: int


def byte_kernels(node: Node, loops: Loops, contraction: Contraction) -> ByteKernels | None:
    """The kernels of a contraction, if it is one of integers and large enough."""
    terms = math.prod(loops.fold)
    batches, rows, columns = sizes_of(loops, contraction)
    if not contraction.integers or min(rows, columns) < _FEWEST_ROWS or terms < _FEWEST_TERMS:
        return None
    x_words, y_words = batches * rows * -(-terms // 4), batches * columns * -(-terms // 4)
    for operand, packed_words in ((contraction.x, x_words), (contraction.y, y_words)):
        if packed_words > _MOST_COPIES * node.operands[operand].type.numel:
            return None
    struct = node_struct(node, loops, contraction)
    pack_x, pack_y = (
        Kernel(
            f"""{struct}
POL_KERNEL({NAME}, {THREADS}, Word* POL_RESTRICT packed, Word* POL_RESTRICT flags{sources(node)}, Long step) {{
    pack<Node_{NAME}, {of_columns}>(packed, flags, s{operand}, step, block);
}}
POL_END
""",
            THREADS,
            -(-words // THREADS),
        )
        for operand, words, of_columns in ((contraction.x, x_words, "false"), (contraction.y, y_words, "true"))
    )
    products = f"IntegerProducts, {_TILE}, {_TILE}, 8, 8"
    packed = "".join(f", const Word* POL_RESTRICT {name}" for name in ("px", "fx", "py", "fy"))
    source = f"""{struct}
POL_KERNEL({NAME}, {THREADS}, Word* POL_RESTRICT out{packed}{sources(node)}, Long step) {{
    POL_SHARED(Word, misfits, {THREADS});
    POL_ALONE(t) {{ misfits[t] = 0; }}
    gather_flags(misfits, fx, {pack_x.blocks});
    gather_flags(misfits, fy, {pack_y.blocks});
    if (misfits[0] == 0) {{
        contract_bytes<Node_{NAME}>(out, px, py, block);
    }} else {{
        contract<Node_{NAME}, {products}>(out, s{contraction.x}, s{contraction.y}, step, block);
    }}
}}
POL_END
"""
    blocks = batches * -(-rows // _TILE) * -(-columns // _TILE)
    return ByteKernels(pack_x, pack_y, Kernel(source, THREADS, blocks), x_words, y_words)
