"""Which kernels run a node, and with which buffers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pol.execution.device.contraction_source import contraction_kernel, contraction_of
from pol.execution.device.device import Buffer, Device
from pol.execution.device.kernel import Kernel
from pol.execution.device.keyed_source import KeyedFold, key_kernel, keyed_fold_of, keyed_kernel
from pol.execution.device.loops import Loops, loops_of
from pol.execution.device.node_source import element_kernel
from pol.graph.node import Node


@dataclass(frozen=True)
class PlannedKernels:
    """The kernels of one node: one, or for a keyed fold one that writes the keys and one that folds."""

    kernels: tuple[Kernel, ...]
    words: int
    key_lines: int = 0
    key_words: int = 0

    def run(self, device: Device, operands: list[Buffer], step: int) -> Buffer:
        """The node's output, in new memory."""
        if self.key_lines:
            keys = device.empty(self.key_words)
            device.launch(self.kernels[0], [keys, *operands], step)
            operands = [*operands, *device.sort(keys, self.key_lines)]
        output = device.empty(self.words)
        device.launch(self.kernels[-1], [output, *operands], step)
        return output


def planned_kernels(node: Node) -> PlannedKernels:
    """The kernels of a node, by its class: contraction, keyed fold, or a thread for each element."""
    loops = loops_of(node)
    contraction = contraction_of(node, loops)
    if contraction is not None:
        return PlannedKernels((contraction_kernel(node, loops, contraction),), node.type.numel)
    keyed = keyed_fold_of(node, loops)
    if keyed is not None:
        return _keyed(node, loops, keyed)
    return PlannedKernels((element_kernel(node, loops),), node.type.numel)


def _keyed(node: Node, loops: Loops, keyed: KeyedFold) -> PlannedKernels:
    lines = math.prod(loops.out[axis] for axis in keyed.lines)
    words = lines * math.prod(loops.fold)
    kernels = (key_kernel(node, loops, keyed), keyed_kernel(node, loops, keyed))
    return PlannedKernels(kernels, node.type.numel, lines, words)
