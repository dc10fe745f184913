"""The pin of a task whose steps are proved in zero knowledge: recomputed from the task's own program and data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from proven_market import STEPS, Training, training

from pol.arithmetic.primitives import Words
from pol.chain.desks.proven_steps import PinnedProofs
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.roles.party.proof_pins import batches, require_pin
from pol.zk.circuits import load_circuit
from pol.zk.network_program import step_program, tensor_types


@pytest.fixture(scope="module")
def given() -> Training:
    return training()


def constants(given: Training) -> list[Words]:
    return list(given.traces[0].constants)


def honest(given: Training) -> PinnedProofs:
    layout = keccak256(tensor_types(given.network))
    return PinnedProofs("0x" + "11" * 20, given.batches.root(), layout, given.network.scale)


def test_an_honest_pin_is_taken(given: Training) -> None:
    require_pin(honest(given), given.traces[0].program, constants(given), STEPS, given.network)
    assert batches(constants(given), STEPS, given.network).root() == given.batches.root()


def test_whatever_else_is_pinned_is_refused(given: Training) -> None:
    """A trusted verifier alone says nothing: true proofs of another training would end the disputes of this one."""
    pin, program, data = honest(given), given.traces[0].program, constants(given)
    for changed, told in (
        (replace(pin, batches=training(seed=2).batches.root()), "other data"),
        (replace(pin, layout=keccak256(b"other")), "other types"),
        (replace(pin, scale=pin.scale - 1), "a scale of"),
    ):
        with pytest.raises(ProtocolError, match=told):
            require_pin(changed, program, data, STEPS, given.network)
    with pytest.raises(ProtocolError, match="another step than the task's program"):
        require_pin(pin, step_program(given.network, STEPS + 1), data, STEPS, given.network)
    with pytest.raises(ProtocolError, match="another step than the task's program"):
        require_pin(pin, program, data, STEPS, load_circuit("momentum").network)
    with pytest.raises(ProtocolError, match="has no program"):
        require_pin(pin, program, data, STEPS, load_circuit("adamw").network)


def test_data_that_are_no_numbers_of_fixed_point(given: Training) -> None:
    data = constants(given)
    data[0] = data[0].copy()
    data[0].flat[0] = np.float32(2.0**-40).view(np.uint32)
    with pytest.raises(ProtocolError, match="step 0 hold"):
        batches(data, STEPS, given.network)
