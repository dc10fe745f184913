"""What can be tested: the kernels of this machine's processor, or those of a device."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.tensor import ListTag, list_root, state_root, tensor_root, tensor_tree
from pol.execution.cpu import CpuExecutor, CpuNode
from pol.execution.device.contraction_source import TILES, contraction_kernel, contraction_of
from pol.execution.device.device import Buffer, Device, Kernel
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.loops import loops_of
from pol.execution.device.planned_kernels import planned_kernels
from pol.execution.device.roots import DeviceRoots
from pol.execution.device.self_test.tested_nodes import STEP, TestedNode
from pol.execution.operand_sources import Sources
from pol.graph.node import Node
from pol.graph.step_program import StepProgram


class Subject(Protocol):
    """Kernels that are tested and timed."""

    @property
    def name(self) -> str:
        """Their device, in words."""
        ...

    def load(self, nodes: Sequence[Node]) -> None:
        """Compile the kernels of these nodes together."""
        ...

    def outputs(self, tested: TestedNode) -> Iterator[tuple[str, Words]]:
        """The output of every kernel that may run a node, with the kernel's name if there are several."""
        ...

    def tree(self, words: Words) -> bytes:
        """The tree over the leaves of a tensor."""
        ...

    def train(self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words], steps: int) -> bytes:
        """The root of the state after some steps."""
        ...

    def trace(self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words]) -> list[Words]:
        """The outputs of all nodes at step 0."""
        ...

    def node_seconds(self, tested: TestedNode, times: int) -> float:
        """One execution of a node whose operands lie in the device's memory."""
        ...

    def tree_seconds(self, words: Words, times: int) -> float:
        """One tree over words in the device's memory."""
        ...

    def step_seconds(
        self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words], times: int
    ) -> float:
        """One step; the state stays in the device's memory."""
        ...


class CpuSubject:
    """The kernels of the processor, on all cores."""

    name = "cpu"

    def load(self, nodes: Sequence[Node]) -> None:
        """Nothing: they are compiled."""

    def outputs(self, tested: TestedNode) -> Iterator[tuple[str, Words]]:
        """One output."""
        yield "", CpuNode(tested.node, 0).run(STEP, Sources([], tested.tensors, []))

    def tree(self, words: Words) -> bytes:
        """By the native code of pol.commitments."""
        return tensor_tree(words)

    def train(self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words], steps: int) -> bytes:
        """By the executor of every party."""
        executor = CpuExecutor(program, constants, 0)
        for step in range(steps):
            state, _ = executor.advance(state, step)
        return state_root([slot.type for slot in program.slots], state)

    def trace(self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words]) -> list[Words]:
        """By the executor of every party."""
        return CpuExecutor(program, constants, 0).run(state, 0)

    def node_seconds(self, tested: TestedNode, times: int) -> float:
        """The mean of some runs after a first one."""
        kernel, sources = CpuNode(tested.node, 0), Sources([], tested.tensors, [])
        kernel.run(STEP, sources)
        begun = time.perf_counter()
        for _ in range(times):
            kernel.run(STEP, sources)
        return (time.perf_counter() - begun) / times

    def tree_seconds(self, words: Words, times: int) -> float:
        """The mean of some runs."""
        begun = time.perf_counter()
        for _ in range(times):
            tensor_tree(words)
        return (time.perf_counter() - begun) / times

    def step_seconds(
        self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words], times: int
    ) -> float:
        """The mean of some steps after a first one."""
        executor = CpuExecutor(program, constants, 0)
        state, _ = executor.advance(state, 0)
        begun = time.perf_counter()
        for step in range(times):
            state, _ = executor.advance(state, step)
        return (time.perf_counter() - begun) / times


class DeviceSubject:
    """The kernels of a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._roots = DeviceRoots(device)

    @property
    def name(self) -> str:
        """The device, in words."""
        return self._device.name

    def load(self, nodes: Sequence[Node]) -> None:
        """Compile the kernels of these nodes, with those of all tiles."""
        kernels = [kernel for node in nodes for kernel in planned_kernels(node).kernels]
        self._device.load([*kernels, *(kernel for node in nodes for _, kernel in _tiles(node))])

    def outputs(self, tested: TestedNode) -> Iterator[tuple[str, Words]]:
        """The output of the planned kernels, and of every tile."""
        operands, shape = [self._device.put(words) for words in tested.tensors], tested.node.type.shape
        planned = planned_kernels(tested.node).run(self._device, operands, STEP)
        yield "", self._device.get(planned, shape)
        for name, kernel in _tiles(tested.node):
            output = self._device.empty(tested.node.type.numel)
            self._device.launch(kernel, [output, *operands], STEP)
            yield name, self._device.get(output, shape)

    def tree(self, words: Words) -> bytes:
        """By the kernels of keccak."""
        return self._roots.tensor_trees([words.size], [self._device.put(words)])[0]

    def train(self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words], steps: int) -> bytes:
        """The state stays in the device's memory; its root alone leaves it."""
        executor = DeviceExecutor(program, constants, self._device)
        resident = executor.place(state)
        for step in range(steps):
            resident, _ = executor.advance_resident(resident, step)
        return self._roots.state_root([slot.type for slot in program.slots], resident)

    def trace(self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words]) -> list[Words]:
        """Copies of all outputs."""
        return DeviceExecutor(program, constants, self._device).run(state, 0)

    def node_seconds(self, tested: TestedNode, times: int) -> float:
        """The mean of some launches; the copy of a word at the end waits for them."""
        operands = [self._device.put(words) for words in tested.tensors]
        plan = planned_kernels(tested.node)

        def launch(count: int) -> float:
            begun = time.perf_counter()
            output: Buffer = None
            for _ in range(count):
                output = plan.run(self._device, operands, STEP)
            self._device.get(self._device.part(output, tested.node.type.numel - 1), (1,))
            return time.perf_counter() - begun

        launch(1)
        return launch(times) / times

    def tree_seconds(self, words: Words, times: int) -> float:
        """The mean of some trees of one buffer."""
        buffer = self._device.put(words)
        self._roots.tensor_trees([words.size], [buffer])
        begun = time.perf_counter()
        self._roots.tensor_trees([words.size] * times, [buffer] * times)
        return (time.perf_counter() - begun) / times

    def step_seconds(
        self, program: StepProgram, constants: Sequence[Words], state: Sequence[Words], times: int
    ) -> float:
        """The mean of some steps; the copy of a word at the end waits for them."""
        executor = DeviceExecutor(program, constants, self._device)
        resident = executor.place(state)

        def advance(count: int) -> float:
            nonlocal resident
            begun = time.perf_counter()
            for step in range(count):
                resident, _ = executor.advance_resident(resident, step)
            self._device.get(self._device.part(resident[-1], program.slots[-1].type.numel - 1), (1,))
            return time.perf_counter() - begun

        advance(1)
        return advance(times) / times


def first_difference(got: Words, expected: Words) -> str:
    """Where two outputs part, for people."""
    places = np.flatnonzero(got.reshape(-1) != expected.reshape(-1))
    if not places.size:
        return "equal to the kernels of this machine's processor, which differ as well"
    shown = [f"[{i}] {int(got.reshape(-1)[i]):#010x} for {int(expected.reshape(-1)[i]):#010x}" for i in places[:3]]
    return f"{places.size} of {got.size} words differ: {', '.join(shown)}"


def trace_root(program: StepProgram, outputs: Sequence[Words]) -> bytes:
    """The root of a step's outputs."""
    roots = [tensor_root(node.type, words) for node, words in zip(program.nodes, outputs, strict=True)]
    return list_root(ListTag.TRACE, roots)


def _tiles(node: Node) -> Iterator[tuple[str, Kernel]]:
    """The kernel of every tile, if the node is a contraction."""
    loops = loops_of(node)
    found = contraction_of(node, loops)
    for tile in TILES if found is not None else ():
        assert found is not None
        yield f"tile {tile.rows} x {tile.columns}", contraction_kernel(node, loops, found, tile)
