"""Executes step programs with the native kernels: the same bits as the reference at the speed of the processor."""

from __future__ import annotations

import atexit
import functools
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.execution import _kernels
from pol.execution.executor import Seen
from pol.execution.operand_sources import Sources, check_observed, check_step, check_tensors, source_words
from pol.graph.node import Node
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import TensorType

SELF_TEST_DIGEST = bytes.fromhex("f9eb37793e79f95d587102a8d192934ac2c6aa849fd7d821d0c0cad6fc4b3bd9")
"""keccak-256 of the results of all primitives and a matrix product on fixed words (kernels/runtime/self_test.cpp)."""


class CpuExecutor:
    """Executes one step at a time; `threads` changes no bit, 0 means all cores.

    Raises ProtocolError if the program is invalid or the constants are not of its types, OperationalError if this
    machine's arithmetic is not that of docs/spec/arithmetic.md.
    """

    def __init__(
        self, program: StepProgram, constants: Sequence[Words], threads: int = 1, observed: Sequence[int] = ()
    ) -> None:
        check_machine(_kernels.isa())
        program.validate()
        check_tensors("constant", program.constants, constants)
        self._program = program
        self._state_types = [slot.type for slot in program.slots]
        self._constant_types = list(program.constants)
        self._constants = list(constants)
        self._threads = threads
        check_observed(program, observed)
        types = [node.type for node in program.nodes]
        # The nodes that a replay returns, each once, and the positions of next state and observed values among them.
        kept = list(dict.fromkeys([*(slot.producer for slot in program.slots), *observed]))
        places = {node: place for place, node in enumerate(kept)}
        self._state_places = [places[slot.producer] for slot in program.slots]
        self._observed_places = [places[node] for node in observed]
        self._kept = kept
        self._kernel = native_step(program, kept)
        self._watching: _kernels.Step | None = None
        release_at_exit(self)
        self._outputs = ArrayPool(types)
        self._results = ArrayPool([types[node] for node in kept])

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """Outputs of all nodes at this step; ProtocolError if the state is not of the program's types."""
        self._check(state, step)
        outputs = self._outputs.take()
        self._kernel.run(step, state, self._constants, outputs, self._threads)
        self._outputs.keep(outputs)
        return outputs

    def advance(
        self, state: Sequence[Words], step: int, constants: Sequence[Words] | None = None
    ) -> tuple[list[Words], list[Words]]:
        """The next state and the observed nodes' outputs; ProtocolError if the state is not of the program's types.

        The bits of `run`, but the outputs of all other nodes share memory and are lost: faster, enough for replays.
        ``constants`` replace those of the executor in this step; they are of the same types.
        """
        self._check(state, step)
        if constants is not None:
            check_tensors("constant", self._constant_types, constants)
        results = self._results.take()
        self._kernel.advance(step, state, self._constants if constants is None else constants, results, self._threads)
        self._results.keep(results)
        return [results[i] for i in self._state_places], [results[i] for i in self._observed_places]

    def observing(self, nodes: Sequence[int]) -> CpuExecutor:
        """An executor that observes these nodes. It has a block of memory of its own, from its first step on."""
        return CpuExecutor(self._program, self._constants, self._threads, nodes)

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The next state; ``seen(node, output)`` gets each node's output as it is computed, to look at in that call.

        It takes the memory of `advance` again, in a block of its own. Raises as `advance`, and whatever ``seen`` does.
        """
        self._check(state, step)
        if self._watching is None:
            self._watching = native_step(self._program, self._kept, all_nodes=True)
        shapes = [node.type.shape for node in self._program.nodes]

        def show(node: int, output: memoryview) -> None:
            seen(node, np.frombuffer(output, np.uint32).reshape(shapes[node]))

        results = self._results.take()
        self._watching.watch(step, state, self._constants, results, show, self._threads)
        self._results.keep(results)
        return [results[i] for i in self._state_places]

    def _check(self, state: Sequence[Words], step: int) -> None:
        check_step(step)
        check_tensors("state slot", self._state_types, state)


def native_step(program: StepProgram, kept: Sequence[int], all_nodes: bool = False) -> _kernels.Step:
    """The kernels' own form of a program, with the nodes whose outputs it gives; ProtocolError if it is invalid."""
    with _executable("step program"):
        kernel = _kernels.Step(
            [node.encode() for node in program.nodes],
            [slot.type.numel for slot in program.slots],
            [type_.numel for type_ in program.constants],
        )
        kernel.keep(kept, all_nodes)
    return kernel


@contextmanager
def _executable(what: str) -> Iterator[None]:
    try:
        yield
    except _kernels.MalformedError as error:
        raise ProtocolError(f"the {what} cannot be executed: {error}") from error


def on_all_cores(program: StepProgram, constants: Sequence[Words]) -> CpuExecutor:
    """The executor of a party, which works on one step at a time: small nodes stay on one core. Raises as its class."""
    return CpuExecutor(program, constants, threads=0)


class CpuNode:
    """Executes one node alone; the same bits as within a step.

    Raises ProtocolError if it cannot be executed, OperationalError as `CpuExecutor` does.
    """

    def __init__(self, node: Node, threads: int = 1) -> None:
        check_machine(_kernels.isa())
        self._node = node
        self._threads = threads
        with _executable("node"):
            self._kernel = _kernels.Node(node.encode())
        release_at_exit(self)

    def run(self, step: int, sources: Sources) -> Words:
        """The node's output; ProtocolError if a source is missing or not of the operand's type."""
        check_step(step)
        output = np.empty(self._node.type.shape, np.uint32)
        operands = [source_words(operand, sources) for operand in self._node.operands]
        self._kernel.run(step, output, operands, self._threads)
        return output


class CpuElement:
    """One element of a node in detail; the same bits as `pol.execution.disputed_element`, its definition.

    A fold is followed by the kernels, term by term; only a block of terms is held in memory.

    Raises ProtocolError if there is no such element, or the node cannot be executed, OperationalError as `CpuExecutor`
    does.
    """

    def __init__(self, node: Node, number: int) -> None:
        check_machine(_kernels.isa())
        if not 0 <= number < node.type.numel:
            raise ProtocolError(f"element {number} of a node with {node.type.numel} elements")
        self._node = node
        with _executable("node"):
            self._kernel = _kernels.Element(node.encode(), number)
        release_at_exit(self)

    def accumulators(
        self, step: int, sources: Sources, terms: Sequence[int], begin: int = 0, accumulator: int | None = None
    ) -> list[int]:
        """The accumulator before each of ``terms``, which ascend from ``begin``; that before K terms is the element.

        Args:
            step: the step.
            sources: what the node's operands read.
            terms: numbers of terms, from ``begin`` to K; both ends included.
            begin: the first term to compute.
            accumulator: the word before it; by default the node's ``init``, which is right before term 0 only.
        """
        if not all(a <= b for a, b in pairwise([0, begin, *terms, self._node.terms])):
            raise ProtocolError(f"the terms do not ascend from {begin} to at most {self._node.terms}")
        result = np.empty(len(terms), np.uint32)
        first = self._node.init if accumulator is None else accumulator
        self._kernel.accumulators(step, self._operands(step, sources), begin, first, terms, result)
        return [int(word) for word in result]

    def results(self, step: int, sources: Sources, term: int, accumulator: int) -> list[int]:
        """The result of every instruction at one term, given the accumulator before it."""
        if not 0 <= term < self._node.terms:
            raise ProtocolError(f"term {term} of a node with {self._node.terms} terms")
        result = np.empty(len(self._node.body.instructions), np.uint32)
        self._kernel.results(step, self._operands(step, sources), term, accumulator, result)
        return [int(word) for word in result]

    def _operands(self, step: int, sources: Sources) -> list[Words]:
        check_step(step)
        return [source_words(operand, sources) for operand in self._node.operands]


class NativeHolder(Protocol):
    """Holds a native object as ``_kernel``."""

    _kernel: Any


_native: WeakSet[NativeHolder] = WeakSet()


def release_at_exit(holder: NativeHolder) -> None:
    """Free the native object of a holder before the process ends."""
    _native.add(holder)


@atexit.register
def _release() -> None:
    """Free native objects while the interpreter still runs.

    Some libraries, torch among them, keep Python objects alive until the process ends. The kernels would report the
    native objects that these reach as leaks.
    """
    for holder in list(_native):
        del holder._kernel
        if isinstance(holder, CpuExecutor):
            holder._watching = None


@functools.cache
def check_machine(isa: str) -> None:
    """OperationalError if the kernels do not follow the specification here; checked once per instruction set."""
    digest = keccak256(_kernels.self_test_words())
    if digest != SELF_TEST_DIGEST:
        raise OperationalError(
            f"the kernels for {isa} give {digest.hex()} in their self-test, not {SELF_TEST_DIGEST.hex()}: this build "
            "or processor does not follow docs/spec/arithmetic.md. Try POL_ISA=baseline and report the machine."
        )


def _references(arrays: list[Words], index: int) -> int:
    return sys.getrefcount(arrays[index])


_OWN_REFERENCES = _references([np.empty(0, np.uint32)], 0)
"""The count of `_references` for an array that only its list holds."""

_TAKEN: Words = np.empty(0, np.uint32)
"""Placeholder of an array that was taken; its own count is higher, so it is never taken."""


class ArrayPool:
    """Arrays of the given types, one set for each step.

    An array that a caller keeps (as the next state, or for a dispute) is never reused. Reuse saves the page faults of
    new memory, up to a quarter of a step's time.
    """

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._types = list(types)
        self._lock = threading.Lock()
        self._earlier: list[list[Words]] = []

    def take(self) -> list[Words]:
        """Arrays of any content."""
        with self._lock:
            return [self._array(i, type_) for i, type_ in enumerate(self._types)]

    def keep(self, arrays: Sequence[Words]) -> None:
        """Remember the arrays of a step, for reuse once no caller holds them."""
        # Two steps: callers usually drop the arrays of one step only once they have those of the next.
        with self._lock:
            self._earlier = [list(arrays), *self._earlier[:1]]

    def _array(self, index: int, type_: TensorType) -> Words:
        for arrays in self._earlier:  # the latest first: they may be in the cache still
            if _references(arrays, index) == _OWN_REFERENCES:
                found, arrays[index] = arrays[index], _TAKEN
                return found
        return np.empty(type_.shape, np.uint32)
