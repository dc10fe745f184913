"""Training less than claimed."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attack_tasks import ADAM, CNN, INTERVAL, MLP, SEGMENTS, STEPS, Expected, check, findings, target
from lab.attacks import target_tasks
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.shortcuts import ATTACKS
from lab.attacks.verification_outcome import mount
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.verification.examination.screening import ranked, suspicions
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.verdict import Outcome

EXPECTED = {
    "interpolation": Expected(0.0, SEGMENTS),
    "skip-1%": Expected(1.0, 0),  # of 60 steps none is the hundredth: tried on a longer task below
    "skip-5%": Expected(57 / 60, 3),
    "skip-10%": Expected(54 / 60, 6),
    "skip-50%": Expected(30 / 60, SEGMENTS),
    "repeat-checkpoints": Expected(11 / 12, 1),
    "early-stop": Expected(0.5, SEGMENTS // 2),
    "fabrication": Expected(0.0, SEGMENTS),
    "sidestep": Expected(11 / 12, 1),
    "extrapolate-10%": Expected(11 / 12, 1),
    "extrapolate-50%": Expected(0.5, SEGMENTS // 2),
    # Ten of 4,810 numbers still move.
    "collapse": Expected(11 / 12 * 10 / 4810, 1),
}
LAZY = "lazy-backward"


class Bias(nn.Module):
    """What is left of a classifier whose other weights are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(digits.CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """The same scores for all images."""
        return self.bias.expand(len(images), digits.CLASSES)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "skip-1%"])
def test_it_is_rejected(name: str) -> None:
    check(tuple(attack for attack in ATTACKS if attack.name != LAZY), name, EXPECTED)


@pytest.mark.slow  # another target; test_battery.py runs all attacks against it
@pytest.mark.parametrize("name", ["skip-5%", "early-stop", "extrapolate-50%", "fabrication"])
def test_it_is_rejected_with_batch_normalisation_and_adam(name: str) -> None:
    found = findings(name, *CNN)
    assert found.cheated
    assert found.rejected == found.cheated


@pytest.mark.parametrize("kind", [MLP, ADAM])
def test_ten_numbers_predict_a_collapsed_training_to_the_bit(kind: tuple[str, str]) -> None:
    """Why one lie saves nearly all: a task whose only weights are the last bias goes the same way."""
    attacked = target(*kind)
    order = torch.from_numpy(attacked.order())
    bias = Bias()
    small = capture(bias, digits.loss_function, target_tasks.OPTIMIZERS[kind[1]](bias), digits.dataset(), order)
    store = Store(f"memory://bias-{kind[1]}")
    task = load(store, publish(store, small, steps=STEPS, interval=INTERVAL, model="bias", optimizer=kind[1])[0])
    executor, state = CpuExecutor(task.program, task.constants), list(task.initial_state)
    forged = findings("collapse", *kind).forgery.states
    places = [attacked.task.names.slots.index(f"output.{name}") for name in task.names.slots]
    for segment in range(1, SEGMENTS):
        state = replay_end(task.program, executor, state, segment * INTERVAL, INTERVAL)
        assert all((own == forged[segment + 1][i]).all() for own, i in zip(state, places, strict=True))
    others = [i for i in attacked.places(Component.PARAMETER) if i not in places]
    assert others
    assert all((forged[-1][i] == 0).all() for i in others)


@pytest.mark.parametrize("jump", [0, 5, SEGMENTS - 2])
@pytest.mark.parametrize("kind", [MLP, ADAM, CNN])
def test_a_screen_of_all_checkpoints_finds_the_collapse(kind: tuple[str, str], jump: int) -> None:
    attacked = target(*kind)
    assert not any(s.is_named for s in suspicions(attacked.task.program, attacked.honest))
    workshop = Workshop(attacked)
    zeros = workshop.with_numbers(attacked.honest[jump], lambda _, values: np.zeros_like(values))
    states = [*attacked.honest[: jump + 1], workshop.ticked(zeros)]
    for segment in range(jump + 1, SEGMENTS):
        states.append(workshop.segment(states[-1], segment))
    first = ranked(suspicions(attacked.task.program, states))[0]
    assert (first.segment, first.is_named) == (jump, True)


def test_leaving_out_the_easiest_backward_passes_is_rejected() -> None:
    found = findings(LAZY)
    assert found.rejected == found.cheated != []
    # What was saved are backward passes: two thirds of the steps that were left out.
    skipped = (1 - found.cost) * STEPS * 3 / 2
    assert skipped == pytest.approx(round(skipped), abs=0.35)
    assert 1 <= round(skipped) < STEPS / 2


def test_one_step_in_a_hundred_leaves_a_trace_in_its_segment_only() -> None:
    found = findings("skip-5%")
    assert found.cheated == [3, 7, 11]
    assert [found.segments[i].outcome for i in (2, 4)] == [Outcome.ACCEPTED] * 2


def test_the_probability_of_being_caught_is_that_of_the_draw() -> None:
    found = findings("skip-5%")
    assert found.caught(1) == pytest.approx(3 / 12)
    assert found.caught(2) == pytest.approx(1 - 9 * 8 / (12 * 11))
    assert found.caught(2, (3,)) == 1.0
    assert found.caught(2, (0,)) == pytest.approx(3 / 11)
    draws = found.draws_for(0.99)
    assert draws is not None
    assert found.caught(draws) >= 0.99 > found.caught(draws - 1)


def test_the_meter_counts_what_is_executed() -> None:
    workshop = Workshop(target())
    state = workshop.train(workshop.start, 0, 7)
    assert workshop.steps == 7
    workshop.train(state, 7, 2, share=0.5)
    assert workshop.steps == 8
    honest = Workshop(target())
    honest.run()
    assert honest.cost == 1.0


def test_an_honest_proof_is_accepted_in_both_modes() -> None:
    honest = Attack("honest", "", "", "", lambda workshop: Forgery(workshop.run()))
    found = mount(honest, target())
    assert found.passes_tolerance
    assert found.passes_exact
    assert found.cost == 1.0
    assert found.detection is None
