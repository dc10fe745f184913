"""What a task's program is made from: a captured ATen graph, or the network of a circuit.

A graph is lowered, and an order table says which data a step sees. A network is written as a program; each of its steps
has data of its own, of fixed point. Everything else about the two kinds of task is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.errors import EvidenceError, Fault
from pol.graph.aten_graph import AtenGraph
from pol.graph.captured_step import Capture
from pol.graph.lowering import lower
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType
from pol.training.storage.store import Store
from pol.training.task.task_document import TaskDocument, TaskSource, order_index
from pol.zk.fixed_point import is_fixed_point
from pol.zk.network import StepNetwork
from pol.zk.network_program import data_types, named_program
from pol.zk.step_data import NetworkStep

TaskStep: TypeAlias = Capture | NetworkStep
"""What a submitter publishes."""
GRAPH_LIMIT = 1 << 27
"""Bytes of the ATen graph and of the names: documents, which take some fifty times their size to read."""
NETWORK_LIMIT = 1 << 18
"""Bytes of a network: ten seconds of work for a reader at most. The largest of pol's circuits has 10,000."""


def source_of(step: TaskStep) -> TaskSource:
    """The source of a step that is to be published."""
    return step.aten if isinstance(step, Capture) else step.network


def encode(source: TaskSource) -> bytes:
    """The stored object: canonical JSON."""
    return canonical_json.encode(source.to_dict()) if isinstance(source, AtenGraph) else source.to_json()


def load(store: Store, document: TaskDocument) -> TaskSource:
    """The source that a document names.

    Raises:
        ProtocolError: the object isn't the canonical JSON of a graph or network.
    """
    if document.aten is not None:
        graph = store.get(document.aten, limit=GRAPH_LIMIT)
        return AtenGraph.from_dict(canonical_json.decode(graph, "the ATen graph"))
    return StepNetwork.from_json(store.get(str(document.network), limit=NETWORK_LIMIT))


def program_of(source: TaskSource, steps: int) -> tuple[StepProgram, ProgramNames]:
    """The program that a source gives for a number of steps, and its names.

    Raises:
        UnsupportedError: it has an operation without a definition.
    """
    return lower(source) if isinstance(source, AtenGraph) else named_program(source, steps)


def require_steps(source: TaskSource, program: StepProgram, names: ProgramNames, steps: int) -> None:
    """Check that a source's program has data for each step: an order table of so many rows, or so many parts."""
    if isinstance(source, StepNetwork):
        has_data = program.constants == data_types(source, steps)
        _require(has_data, Fault.WRONG_DATA, f"its data aren't those of {steps} steps of its network")
        return
    _require(len(names.constants) == len(program.constants), Fault.WRONG_TASK, "its names don't fit its constants")
    _require(len(names.slots) == len(program.slots), Fault.WRONG_TASK, "its names don't fit its slots")
    type_ = program.constants[order_index(names)]
    is_table = type_.dtype == DType.I32 and len(type_.shape) == 2 and type_.shape[0] == steps
    problem = f"its order table has the shape {type_.shape}, expected one row of indices for each of {steps} steps"
    _require(is_table, Fault.WRONG_ORDER, problem)


def require_numbers(source: TaskSource, constants: Sequence[Words], state: Sequence[Words]) -> None:
    """Check that data and first state of a network are numbers that its circuit takes."""
    if isinstance(source, StepNetwork):
        for name, words in zip(source.inputs, (*state, *constants), strict=True):
            problem = f"{name} holds a number that isn't one of 24 bits at the scale {source.scale} of its network"
            _require(is_fixed_point(words, source.scale), Fault.WRONG_DATA, problem)


def _require(condition: bool, fault: Fault, problem: str) -> None:
    if not condition:
        raise EvidenceError(fault, f"the task can't be used: {problem}")
