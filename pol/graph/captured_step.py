"""A captured training step and a captured drawing of initial weights: the results of `pol.graph.capture`."""

from __future__ import annotations

from dataclasses import dataclass

from pol.arithmetic.primitives import Words
from pol.graph.aten_graph import AtenGraph
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram


@dataclass(frozen=True)
class Capture:
    """A captured step: the record for native training, the program for replay, and its data as words.

    `constants` are the data set, the order and tensors that the user's code closed over; `state` is the initial state.
    """

    aten: AtenGraph
    program: StepProgram
    names: ProgramNames
    constants: list[Words]
    state: list[Words]


@dataclass(frozen=True)
class CapturedShapes:
    """A captured training step without numbers: the record and the program of a model that needs no memory."""

    aten: AtenGraph
    program: StepProgram
    names: ProgramNames


@dataclass(frozen=True)
class CapturedInitialization:
    """A step program that draws tensors from a seed; ``slots`` are their names, in the program's order."""

    program: StepProgram
    slots: tuple[str, ...]
    seed: int
