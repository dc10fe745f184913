"""Executes step programs on a device: the bits of every other executor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

from pol.arithmetic.primitives import Words
from pol.execution.device.device import Buffer, Device
from pol.execution.device.planned_kernels import planned_kernels
from pol.execution.device.roots import DeviceRoots
from pol.execution.executor import Seen, look_at_nothing
from pol.execution.operand_sources import check_observed, check_step, check_tensors
from pol.graph.node import Source
from pol.graph.step_program import StepProgram


class DeviceExecutor:
    """Executes one step at a time in a device's memory; outputs are freed when nothing needs them any more.

    Constants that ``other`` has placed on the same device, the same arrays, are shared with it.

    Raises ProtocolError if the program is invalid or the constants are not of its types, OperationalError if its
    kernels can't be compiled.
    """

    def __init__(
        self,
        program: StepProgram,
        constants: Sequence[Words],
        device: Device,
        observed: Sequence[int] = (),
        other: DeviceExecutor | None = None,
    ) -> None:
        program.validate()
        check_tensors("constant", program.constants, constants)
        check_observed(program, observed)
        self._program = program
        self._device = device
        self._host_constants = list(constants)
        self._plans = [planned_kernels(node) for node in program.nodes]
        device.load([kernel for plan in self._plans for kernel in plan.kernels])
        placed = {} if other is None or other._device is not device else other._by_array()
        self._constants = {
            number: placed[id(words)] if id(words) in placed else device.put(words)
            for number, words in enumerate(constants)
        }
        self._observed = list(observed)
        self._last_uses = _last_uses(program)
        self._roots = DeviceRoots(device)

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """Outputs of all nodes at this step; ProtocolError if the state is not of the program's types."""
        outputs: list[Words] = []
        self.watch(state, step, lambda _, words: outputs.append(words))
        return outputs

    def advance(
        self, state: Sequence[Words], step: int, constants: Sequence[Words] | None = None
    ) -> tuple[list[Words], list[Words]]:
        """The next state and the observed nodes' outputs; ProtocolError if the state is not of the program's types.

        ``constants`` replace those of the executor in this step; they are of the same types.
        """
        after, observed = self.advance_resident(self.place(state), step, constants)
        return self.fetch(after), self.fetch_observed(observed)

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The next state; ``seen(node, output)`` gets a copy of the output of each node."""

        def show(number: int, buffer: Buffer) -> None:
            if seen is not look_at_nothing:
                seen(number, self._device.get(buffer, self._program.nodes[number].type.shape))

        return self.fetch(self._run(self.place(state), step, show, frozenset())[0])

    def observing(self, nodes: Sequence[int]) -> DeviceExecutor:
        """An executor that observes these nodes; it shares kernels and constants with this one."""
        check_observed(self._program, nodes)
        other = copy.copy(self)
        other._observed = list(nodes)
        return other

    def place(self, state: Sequence[Words]) -> list[Buffer]:
        """A state in the device's memory; ProtocolError if it is not of the program's types."""
        check_tensors("state slot", [slot.type for slot in self._program.slots], state)
        return [self._device.put(words) for words in state]

    def fetch(self, state: Sequence[Buffer]) -> list[Words]:
        """A state of the device in the host's memory."""
        return [self._device.get(b, slot.type.shape) for b, slot in zip(state, self._program.slots, strict=True)]

    def fetch_observed(self, observed: Sequence[Buffer]) -> list[Words]:
        """The observed outputs of a step in the host's memory."""
        shapes = [self._program.nodes[node].type.shape for node in self._observed]
        return [self._device.get(buffer, shape) for buffer, shape in zip(observed, shapes, strict=True)]

    def advance_resident(
        self, state: Sequence[Buffer], step: int, constants: Sequence[Words] | None = None
    ) -> tuple[list[Buffer], list[Buffer]]:
        """The next state and the observed outputs, all of them in the device's memory."""
        after, outputs = self._run(state, step, lambda number, buffer: None, frozenset(self._observed), constants)
        return after, [outputs[node] for node in self._observed]

    def state_root(self, state: Sequence[Buffer]) -> bytes:
        """The root of a state in the device's memory; only hashes leave it."""
        return self._roots.state_root([slot.type for slot in self._program.slots], state)

    def _by_array(self) -> dict[int, Buffer]:
        """The constants by the identity of their arrays, which this executor keeps alive."""
        return {id(words): self._constants[number] for number, words in enumerate(self._host_constants)}

    def _placed(self, constants: Sequence[Words] | None) -> Mapping[int, Buffer]:
        """Constants on the device: those of the executor where they are the same arrays, copies of others."""
        if constants is None:
            return self._constants
        check_tensors("constant", self._program.constants, constants)
        own = self._host_constants
        return {
            n: self._constants[n] if words is own[n] else self._device.put(words) for n, words in enumerate(constants)
        }

    def _run(
        self,
        state: Sequence[Buffer],
        step: int,
        show: Callable[[int, Buffer], None],
        kept: frozenset[int],
        constants: Sequence[Words] | None = None,
    ) -> tuple[list[Buffer], dict[int, Buffer]]:
        """The next state, and the outputs that are still there at the end."""
        check_step(step)
        outputs: dict[int, Buffer] = {}
        kept = kept | {slot.producer for slot in self._program.slots}
        sources: dict[Source, Mapping[int, Buffer]] = {
            Source.STATE: dict(enumerate(state)),
            Source.CONSTANT: self._placed(constants),
            Source.NODE: outputs,
        }
        for number, (node, plan) in enumerate(zip(self._program.nodes, self._plans, strict=True)):
            operands = [sources[operand.source][operand.index] for operand in node.operands]
            outputs[number] = plan.run(self._device, operands, step)
            show(number, outputs[number])
            for done in self._last_uses[number]:
                if done not in kept:
                    del outputs[done]
        return [outputs[slot.producer] for slot in self._program.slots], outputs


class BegunStep:
    """`begin` computes the whole step on the device and leaves the state as it is; `finish` gives the next one.

    ``executor`` observes what `begin` gives; ``changing`` are the slots whose next tensors `finish` gives.
    """

    def __init__(self, executor: DeviceExecutor, changing: Sequence[int]) -> None:
        self._executor, self._changing = executor, changing
        self._after: list[Words] | None = None

    def begin(self, state: Sequence[Words], step: int, constants: Sequence[Words]) -> list[Words]:
        """The observed nodes' outputs. Raises as `DeviceExecutor.advance`."""
        self._after, observed = self._executor.advance(state, step, constants)
        return observed

    def finish(self) -> list[Words]:
        """The changing slots after the step that was begun, in arrays of their own."""
        assert self._after is not None, "begin() comes before"
        after, self._after = self._after, None
        return [after[slot] for slot in self._changing]


def _last_uses(program: StepProgram) -> list[list[int]]:
    """For each node the nodes whose outputs nothing reads after it."""
    last = list(range(len(program.nodes)))
    for number, node in enumerate(program.nodes):
        for operand in node.operands:
            if operand.source is Source.NODE:
                last[operand.index] = number
    done: list[list[int]] = [[] for _ in program.nodes]
    for number, use in enumerate(last):
        done[use].append(number)
    return done
