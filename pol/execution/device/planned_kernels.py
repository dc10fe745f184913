"""Which kernels run a node, and with which buffers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from pol.execution.device.contraction_source import (
    Contraction,
    contraction_kernel,
    contraction_of,
    node_struct,
    sizes_of,
    sources,
)
from pol.execution.device.device import NAME, Buffer, Device, Kernel
from pol.execution.device.keyed_source import KeyedFold, key_kernel, keyed_fold_of, keyed_kernel
from pol.execution.device.loops import Loops, loops_of
from pol.execution.device.node_source import element_kernel
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


class PlannedKernels(Protocol):
    """The kernels of one node."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All that a run launches."""
        ...

    def run(self, device: Device, operands: list[Buffer], step: int) -> Buffer:
        """The node's output, in new memory."""
        ...


@dataclass(frozen=True)
class OneKernel:
    """A kernel that reads the operands and writes the output."""

    kernel: Kernel
    words: int

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The one."""
        return (self.kernel,)

    def run(self, device: Device, operands: list[Buffer], step: int) -> Buffer:
        """The node's output."""
        output = device.empty(self.words)
        device.launch(self.kernel, [output, *operands], step)
        return output


@dataclass(frozen=True)
class KeysThenFold:
    """A keyed fold: keys are written and sorted, then each element folds its own terms."""

    keys: Kernel
    fold: Kernel
    words: int
    key_words: int
    lines: int

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Both."""
        return (self.keys, self.fold)

    def run(self, device: Device, operands: list[Buffer], step: int) -> Buffer:
        """The node's output."""
        keys = device.empty(self.key_words)
        device.launch(self.keys, [keys, *operands], step)
        output = device.empty(self.words)
        device.launch(self.fold, [output, *operands, *device.sort(keys, self.lines)], step)
        return output


@dataclass(frozen=True)
class PackThenContract:
    """A contraction of integers: words are packed as bytes, then multiplied, as bytes if all of them are."""

    stages: ByteKernels
    words: int

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All three."""
        return (self.stages.pack_x, self.stages.pack_y, self.stages.contract)

    def run(self, device: Device, operands: list[Buffer], step: int) -> Buffer:
        """The node's output."""
        stages = self.stages
        packed = []
        for kernel, words in ((stages.pack_x, stages.x_words), (stages.pack_y, stages.y_words)):
            packed += [device.empty(words), device.empty(kernel.blocks)]
            device.launch(kernel, [*packed[-2:], *operands], step)
        output = device.empty(self.words)
        device.launch(stages.contract, [output, *packed, *operands], step)
        return output


def planned_kernels(node: Node) -> PlannedKernels:
    """The kernels of a node, by its class: contraction, keyed fold, or a thread for each element."""
    loops = loops_of(node)
    words = node.type.numel
    contraction = contraction_of(node, loops)
    if contraction is not None:
        stages = byte_kernels(node, loops, contraction)
        if stages is not None:
            return PackThenContract(stages, words)
        return OneKernel(contraction_kernel(node, loops, contraction), words)
    keyed = keyed_fold_of(node, loops)
    if keyed is not None:
        return _keyed(node, loops, keyed)
    return OneKernel(element_kernel(node, loops), words)


def _keyed(node: Node, loops: Loops, keyed: KeyedFold) -> KeysThenFold:
    lines = math.prod(loops.out[axis] for axis in keyed.lines)
    key_words = lines * math.prod(loops.fold)
    kernels = (key_kernel(node, loops, keyed), keyed_kernel(node, loops, keyed))
    return KeysThenFold(*kernels, node.type.numel, key_words, lines)
