"""A circuit's step with its data: what a submitter publishes in place of a captured step (docs/spec/zk.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pol.arithmetic.primitives import Words
from pol.errors import ProtocolError
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import StepProgram
from pol.zk.fixed_point import Integers, dequantize, is_fixed_point
from pol.zk.network import StepNetwork
from pol.zk.network_program import named_program


@dataclass(frozen=True)
class NetworkStep:
    """The counterpart of a `Capture`: a network, its program with names, and the words that the program reads.

    ``constants`` hold the data of all steps, one after the other, ``state`` the first vector.
    """

    network: StepNetwork
    program: StepProgram
    names: ProgramNames
    constants: list[Words]
    state: list[Words]


def network_step(network: StepNetwork, first: Integers, data: Sequence[Sequence[Integers]]) -> NetworkStep:
    """The step of a network with the data of each step of a training.

    Args:
        network: the circuit's network.
        first: the vector before the first step, integers at the network's scale.
        data: for each step the other inputs, in order.

    Raises:
        ProtocolError: no step, an input of another shape, or a number of more than 24 bits.
        UnsupportedError: the network has no program.
    """
    given = network.nodes[: len(network.inputs)]
    for step, inputs in enumerate(data):
        found = [array.shape for array in (first, *inputs)]
        if found != [node.shape for node in given]:
            wanted = ", ".join(f"{name} {node.shape}" for name, node in zip(network.inputs, given, strict=True))
            raise ProtocolError(f"step {step} has inputs of the shapes {found}, the network wants {wanted}")
    program, names = named_program(network, len(data))
    columns = [np.concatenate(column) for column in zip(*data, strict=True)]
    state, *constants = (
        _words(name, array, network.scale) for name, array in zip(network.inputs, [first, *columns], strict=True)
    )
    return NetworkStep(network, program, names, constants, [state])


def _words(name: str, numbers: Integers, scale: int) -> Words:
    words = dequantize(numbers, scale).astype(np.float32).view(np.uint32)
    if not is_fixed_point(words, scale):
        raise ProtocolError(f"{name} holds a number of more than 24 bits: a circuit takes none, choose smaller ones")
    return words
