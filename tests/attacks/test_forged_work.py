"""Work that was not done: shortcuts, somebody else's work, explanations by synthetic data, tiny updates, documents."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attack_tasks import ADAM, CNN, INTERVAL, MLP, SEGMENTS, STEPS, findings, target
from lab.attacks import synthetic_data, target_tasks
from lab.attacks.attack_target import State, numbers
from lab.attacks.forgery import Attack, Forgery, Workshop, publish
from lab.attacks.stolen_work import SAME_TASK
from lab.attacks.verification_outcome import mount
from pol.demo import digits
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture
from pol.graph.step_program import Component
from pol.training.storage.store import Store
from pol.training.task import learning_proof, published_task
from pol.verification.examination.screening import ranked, suspicions
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.verdict import Outcome


class Bias(nn.Module):
    """What is left of a classifier whose other weights are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(digits.CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """The same scores for all images."""
        return self.bias.expand(len(images), digits.CLASSES)


@pytest.mark.parametrize("kind", [MLP, ADAM])
def test_ten_numbers_predict_a_collapsed_training_to_the_bit(kind: tuple[str, str]) -> None:
    """Why one lie saves nearly all: a task whose only weights are the last bias goes the same way."""
    attacked = target(*kind)
    order = torch.from_numpy(attacked.order())
    bias = Bias()
    small = capture(bias, digits.loss_function, target_tasks.OPTIMIZERS[kind[1]](bias), digits.dataset(), order)
    store = Store(f"memory://bias-{kind[1]}")
    digest, _ = published_task.publish(store, small, steps=STEPS, interval=INTERVAL, model="bias", optimizer=kind[1])
    task = published_task.load(store, digest)
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
    found = findings("lazy-backward")
    assert found.rejected == found.cheated != []
    # What was saved are backward passes: two thirds of the steps that were left out.
    skipped = (1 - found.cost) * STEPS * 3 / 2
    assert skipped == pytest.approx(round(skipped), abs=0.35)
    assert 1 <= round(skipped) < STEPS / 2


def test_one_step_in_twenty_leaves_a_trace_in_its_segment_only_and_is_caught_as_often_as_it_is_drawn() -> None:
    found = findings("skip-5%")
    assert found.cheated == [3, 7, 11]
    assert [found.segments[i].outcome for i in (2, 4)] == [Outcome.ACCEPTED] * 2
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
    honest = Attack("honest", "", lambda workshop: Forgery(workshop.run()))
    found = mount(honest, target())
    assert found.passes_tolerance
    assert found.passes_exact
    assert found.cost == 1.0
    assert found.detection is None


def moved(start: State, end: State) -> float:
    """How far the weights went."""
    places = target().places(Component.PARAMETER)
    return float(np.sqrt(sum(np.square(numbers(end[i]) - numbers(start[i])).sum() for i in places)))


def test_tiny_updates_are_tiny_beside_honest_ones() -> None:
    """Fang et al. 2023: a relative distance sees them, and the draw isn't by size."""
    states = findings("infinitesimal").forgery.states
    honest = target().honest
    for segment in range(1, SEGMENTS):
        assert 0 < moved(states[segment], states[segment + 1]) < 1e-3 * moved(honest[segment], honest[segment + 1])


def test_a_verifier_of_the_greatest_updates_would_miss_a_tiny_one() -> None:
    found = findings("dodge-top-q")
    lengths = [moved(a, b) for a, b in pairwise(found.forgery.states)]
    assert found.cheated == [int(np.argmin(lengths))]


@pytest.mark.parametrize("name", ["zhang-1", "zhang-2"])
def test_synthetic_data_does_what_its_maker_wants(name: str) -> None:
    """Zhang et al. 2022: it explains a foreign model to its maker, and to nobody who has the task."""
    (left,) = findings(name).forgery.damage.values()
    assert left < 0.95  # on the data of the task it is 1: the attack works against a verifier that takes its data


def test_the_line_through_synthetic_data_ends_in_the_stolen_model() -> None:
    states = findings("zhang-1").forgery.states
    assert all((a == b).all() for a, b in zip(states[-1], target().stolen[-1], strict=True))
    assert all((a == b).all() for a, b in zip(states[0], target().task.initial_state, strict=True))


def test_a_start_of_ones_own_is_refused_by_name() -> None:
    proof = publish(Store("memory://near"), target(), synthetic_data.near_start(Workshop(target())))
    with pytest.raises(ProtocolError, match="initial state"):
        learning_proof.require_proof_of(proof, target().task)


def test_undone_steps_are_trained_steps_and_never_reach_the_start() -> None:
    found = findings("retrospective")
    assert found.cost == pytest.approx(len(found.forgery.trained) / SEGMENTS)
    assert not found.passes_exact
    assert found.rejected == found.cheated == list(range(SEGMENTS - 1))
    assert found.segments[-1].outcome is Outcome.ACCEPTED
    last = target().segment_end(found.forgery.states[-2], SEGMENTS - 1)
    for ours, theirs in zip(last, target().stolen[-1], strict=True):
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-3, atol=1e-5)


def test_one_jump_is_in_one_segment_and_the_screen_finds_it() -> None:
    found = findings("splice")
    assert found.caught(1) == pytest.approx(1 / SEGMENTS)
    oddest = ranked(suspicions(target().task.program, found.forgery.states))
    assert found.cheated[0] in [suspicion.segment for suspicion in oddest[:3]]


def test_a_copied_proof_of_the_very_task_is_true() -> None:
    """A proof says that the work was done, not by whom: that is for the market, which lets one solver commit."""
    found = mount(SAME_TASK, target())
    assert found.passes_exact
    assert found.cost == 0.0


@pytest.mark.parametrize(("name", "outcome"), [("withheld", Outcome.INCONCLUSIVE), ("two-faced", Outcome.REJECTED)])
def test_withholding_proves_nothing_and_evidence_that_contradicts_its_log_is_a_rejection(
    name: str, outcome: Outcome
) -> None:
    found = findings(name)
    assert {found.segments[i].outcome for i in found.cheated} == {outcome}


def test_no_variant_of_a_proof_changes_the_draw() -> None:
    damage = findings("grinding").forgery.damage
    assert damage["different draws of 1000 variants"] == 1
    assert 1 <= damage["tries if its hash were the seed"] <= 1000
    assert len(findings("grinding").segments) == SEGMENTS
