"""The pin of exact step proofs, recomputed from a task's program and data (docs/spec/zk.md, "On the chain").

A pin fixes the statement that proofs prove. With a pin for other data or another network's key, true proofs of another
training would end disputes of this one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from eth_typing import ChecksumAddress

from pol.arithmetic.primitives import Words
from pol.chain.desks.proven_steps import PinnedProofs, batch_entry
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.step_program import StepProgram
from pol.zk.fixed_point import is_fixed_point, quantize
from pol.zk.network import StepNetwork
from pol.zk.network_program import step_program, tensor_types
from pol.zk.poseidon import vector_hash

_LEAVE = "leave the task alone: its submitter could end disputes at will"


def pin_of(
    verifier: ChecksumAddress, program: StepProgram, constants: Sequence[Words], steps: int, network: StepNetwork
) -> PinnedProofs:
    """The pin of a task for a verifier of this network's proofs; arguments as for `require_pin`."""
    try:
        expected = step_program(network, steps)
    except UnsupportedError as error:
        raise ProtocolError(f"the circuit of the pinned verifier has no program: {error}") from error
    if program_hash(program) != program_hash(expected):
        raise ProtocolError("the circuit of the pinned verifier computes another step than the task's program")
    log = batches(constants, steps, network)
    return PinnedProofs(verifier, log.root(), keccak256(tensor_types(network)), network.scale)


def require_pin(
    pin: PinnedProofs, program: StepProgram, constants: Sequence[Words], steps: int, network: StepNetwork
) -> None:
    """Check that a pin fits a task and the circuit's network.

    Args:
        pin: the submitter's pin; the verifier's address is checked elsewhere.
        program: the task's program.
        constants: the task's constants; words of float32.
        steps: the task's number of steps.
        network: the network of the circuit that the verifier's key is for.
    """
    try:
        expected = pin_of(pin.verifier, program, constants, steps, network)
    except ProtocolError as error:
        raise ProtocolError(f"{error}; {_LEAVE}") from error
    if pin.layout != expected.layout:
        raise ProtocolError(f"the task pins other types of the state's tensors than its program has; {_LEAVE}")
    if pin.scale != expected.scale:
        raise ProtocolError(f"the task pins a scale of {pin.scale} bits, its circuit has {network.scale}; {_LEAVE}")
    if pin.batches != expected.batches:
        raise ProtocolError(f"the task pins other data than its own constants; {_LEAVE}")


def batches(constants: Sequence[Words], steps: int, network: StepNetwork) -> CheckpointLog:
    """The log of the hashes of each step's data. Constant i holds input i + 1 of all steps, one after the other."""
    shapes = [node.shape for node in network.nodes[1 : len(network.inputs)]]
    columns = [_hashes(words, steps, shape, network.scale) for words, shape in zip(constants, shapes, strict=True)]
    return CheckpointLog([batch_entry(data) for data in zip(*columns, strict=True)])


def _hashes(words: Words, steps: int, shape: Sequence[int], scale: int) -> list[bytes]:
    size = int(np.prod(shape))
    numbers = words.reshape(-1).view(np.float32)
    if numbers.size != steps * size:
        raise ProtocolError(f"a constant holds {numbers.size} numbers, not those of {steps} steps")
    found = []
    for step in range(steps):
        given = numbers[step * size : (step + 1) * size]
        if not is_fixed_point(given.view(np.uint32), scale):
            raise ProtocolError(f"the data of step {step} hold a number that isn't one of 24 bits of fixed point")
        found.append(vector_hash([int(x) for x in quantize(given, scale)]).to_bytes(32))
    return found
