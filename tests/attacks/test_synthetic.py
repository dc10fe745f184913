"""Synthetic data (Zhang et al. 2022): it explains a foreign model to its maker, and to nobody who has the task."""

import pytest

from attack_tasks import SEGMENTS, STEPS, Expected, check, findings, target
from lab.attacks import synthetic_data
from lab.attacks.forgery import Workshop, publish
from lab.attacks.synthetic_data import ATTACKS, ITERATIONS
from pol.errors import ProtocolError
from pol.training.storage.store import Store
from pol.training.task import learning_proof

# A gradient of a gradient: its products are those of three steps, less the one with the input of the first layer.
PER_ITERATION = 3.0
EXPLAINED = Expected(SEGMENTS * ITERATIONS * PER_ITERATION / STEPS, SEGMENTS)
EXPECTED = {
    "zhang-1": EXPLAINED,
    "zhang-2": EXPLAINED,
    "zhang-3": Expected(0.0, None),
    "zhang-3-joined": Expected(0.0, SEGMENTS),
    "own-task": Expected(1.0, None),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_refused_or_rejected(name: str) -> None:
    check(ATTACKS, name, EXPECTED)


@pytest.mark.parametrize("name", ["zhang-1", "zhang-2"])
def test_the_synthetic_data_does_what_its_maker_wants(name: str) -> None:
    (left,) = findings(name).forgery.damage.values()
    assert left < 0.95  # on the data of the task it is 1: the attack works against a verifier that takes its data


def test_the_line_ends_in_the_stolen_model() -> None:
    states = findings("zhang-1").forgery.states
    assert all((a == b).all() for a, b in zip(states[-1], target().stolen[-1], strict=True))
    assert all((a == b).all() for a, b in zip(states[0], target().task.initial_state, strict=True))


def test_a_start_of_ones_own_is_refused_by_name() -> None:
    proof = publish(Store("memory://near"), target(), synthetic_data.near_start(Workshop(target())))
    with pytest.raises(ProtocolError, match="initial state"):
        learning_proof.require_proof_of(proof, target().task)
