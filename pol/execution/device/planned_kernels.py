"""Which kernels run a node, and with which buffers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from pol.execution.device.byte_contraction_source import ByteKernels, byte_kernels
from pol.execution.device.contraction_source import contraction_kernel, contraction_of
from pol.execution.device.device import Buffer, Device
from pol.execution.device.kernel import Kernel
from pol.execution.device.keyed_source import KeyedFold, key_kernel, keyed_fold_of, keyed_kernel
from pol.execution.device.loops import Loops, loops_of
from pol.execution.device.node_source import element_kernel
from pol.graph.node import Node


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
