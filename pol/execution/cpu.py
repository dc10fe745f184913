"""Executes step programs with the native kernels: the same bits as the reference at the speed of the processor."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.arithmetic.program import ScalarProgram
from pol.errors import OperationalError, ProtocolError
from pol.execution import _kernels
from pol.execution.reference import check_tensors
from pol.graph.node import MAX_STEP
from pol.graph.step_program import StepProgram
from pol.graph.types import TensorType

SELF_TEST_DIGEST = bytes.fromhex("985713c1cd524c832f2e990c867e08e4d26e323020df49bb4f0b5362ff2dab93")
"""keccak-256 of what every primitive and a matrix product make of fixed words (kernels/self_test.cpp)."""


def _references(arrays: list[Words], index: int) -> int:
    return sys.getrefcount(arrays[index])


_OWN_REFERENCES = _references([np.empty(0, np.uint32)], 0)
"""What `_references` counts for an array that only its list holds."""

_TAKEN: Words = np.empty(0, np.uint32)
"""Stands where an array was taken; held here, so never taken itself."""


class CpuExecutor:
    """Executes one step at a time; `threads` changes no bit, 0 takes all that the machine has.

    Raises ProtocolError if the program is invalid or the constants are not of its types, OperationalError if this
    machine's arithmetic is not that of docs/spec/arithmetic.md.
    """

    def __init__(self, program: StepProgram, constants: Sequence[Words], threads: int = 1) -> None:
        check_machine(_kernels.isa())
        program.validate()
        check_tensors("constant", program.constants, constants)
        self._state_types = [slot.type for slot in program.slots]
        self._output_types = [node.type for node in program.nodes]
        self._constants = list(constants)
        self._threads = threads
        self._lock = threading.Lock()
        self._earlier: list[list[Words]] = []
        descriptors = [node.encode() for node in program.nodes]
        try:
            self._step = _kernels.Step(
                descriptors, [type_.numel for type_ in self._state_types], [type_.numel for type_ in program.constants]
            )
        except _kernels.MalformedError as error:
            raise ProtocolError(f"the step program cannot be executed: {error}") from error

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """Outputs of all nodes at this step; ProtocolError if the state is not of the program's types."""
        if not 0 <= step <= MAX_STEP:
            raise ProtocolError(f"step {step} is not in 0 .. 2^32-1")
        check_tensors("state slot", self._state_types, state)
        with self._lock:
            outputs = [self._buffer(i, type_) for i, type_ in enumerate(self._output_types)]
        self._step.run(step, state, self._constants, outputs, self._threads)
        with self._lock:
            self._earlier = [outputs[:], *self._earlier[:1]]
        return outputs

    def _buffer(self, node: int, type_: TensorType) -> Words:
        """An array for a node's output: one of the last two steps if nobody holds it any more, else a new one.

        An output that a caller keeps (as the next state, or for a dispute) is never written again. Memory that was
        used before saves the page faults of new memory, up to a quarter of a step's time. Two steps, because callers
        usually drop the outputs of one step only when they have those of the next.
        """
        for outputs in reversed(self._earlier):
            if _references(outputs, node) == _OWN_REFERENCES:
                found, outputs[node] = outputs[node], _TAKEN
                return found
        return np.empty(type_.shape, np.uint32)


def program_values(program: ScalarProgram, inputs: Sequence[Words]) -> Words:
    """The result of every instruction on equally long input arrays, shape [instructions, lanes]; for tests."""
    lanes = len(inputs[0]) if inputs else 1
    results = np.empty((len(program.instructions), lanes), np.uint32)
    _kernels.program_values(program.encode(), np.array(inputs[: program.inputs], np.uint32), results, lanes)
    return results


@functools.cache
def check_machine(isa: str) -> None:
    """OperationalError if the kernels compute other bits here than the specification asks for (looks once per set)."""
    digest = _kernels.self_test()
    if digest != SELF_TEST_DIGEST:
        raise OperationalError(
            f"the kernels for {isa} give {digest.hex()} in their self-test, not {SELF_TEST_DIGEST.hex()}: this build "
            "or processor does not follow docs/spec/arithmetic.md. Try POL_ISA=baseline and report the machine."
        )
