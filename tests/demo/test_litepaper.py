"""`pol bench litepaper`, tiny: its parts add up, and its figures fail where there is something wrong."""

import math
from fractions import Fraction

import pytest

from lab.benchmarks import false_rejects, honest_runs, litepaper
from lab.benchmarks.classifier import SMALL, Training
from lab.benchmarks.figure import Figure
from lab.benchmarks.honest_runs import KINDS, Tally, publish_task, run_kind
from lab.benchmarks.litepaper import draws_needed
from pol.claims.sample_size import detection_probability
from pol.demo import digits
from pol.training.storage.store import Store
from pol.training.task.published_task import load
from pol.verification.profile.profile_document import load_profile

SIZE, STEPS = SMALL["gelu"], 16


@pytest.fixture(scope="module")
def found() -> litepaper.Experiment:
    return litepaper.run_experiment(epochs=2, size=SIZE, interval=4)


def test_the_parts_of_the_overhead_add_up(found: litepaper.Experiment) -> None:
    figures = litepaper.overhead_figures(found)
    assert all(isinstance(figure, Figure) for figure in figures.values())
    parts = [figures[f"{part}_share"].value for part in ("recording", "profile", "verify")]
    assert figures["protocol_overhead"].value == pytest.approx(sum(parts))
    assert figures["protocol_overhead"].ratio == pytest.approx(sum(parts) / 0.46)
    assert all(part > 0 for part in parts[1:])
    # More than half of so short a training is replayed: the figure is no constant.
    assert figures["protocol_overhead"].value > 0.1
    assert figures["protocol_overhead_at_99"].value > figures["verify_share"].value
    assert (found.segments, found.draws, found.rejected) == (56, 32, 0)
    assert found.accuracy > 0.3


@pytest.fixture(scope="module")
def published() -> tuple[Store, str, str]:
    store = Store("memory://litepaper")
    return (store, *publish_task(store, SIZE, "sgd", 1, STEPS))


def trained(published: tuple[Store, str, str], rate: float = 1.0) -> Tally:
    store, digest, profile = published
    task = load(store, digest)
    training = Training(SIZE, 1, digits.order(1, STEPS, SIZE.batch))
    training.optimizer.param_groups[0]["lr"] *= rate
    return run_kind(task, load_profile(store, profile, task).thresholds, training, KINDS["eager"])


def test_honest_intervals_are_accepted(published: tuple[Store, str, str]) -> None:
    tally = trained(published)
    assert (tally.tested, tally.beyond, tally.rejected) == (STEPS // honest_runs.INTERVAL, 0, 0)
    assert tally.closest_look == 0  # nothing needed one
    assert 0 < tally.closest < 1
    assert tally.upper_bound > 0.5  # four intervals promise little


def test_another_learning_rate_is_counted(published: tuple[Store, str, str]) -> None:
    tally = trained(published, rate=1.01)
    assert tally.beyond == tally.rejected == tally.tested
    assert min(tally.closest, tally.closest_look) > 1
    assert tally.upper_bound == 1.0


def test_how_many_intervals_the_bound_needs() -> None:
    assert Tally(2995).upper_bound <= 0.001 < Tally(2994).upper_bound
    assert Tally(2995, rejected=1).upper_bound > 0.001
    assert Tally(2995, beyond=1).upper_bound <= 0.001
    total = Tally(10, 2, 1, 0.5, 3.0)
    total.merge(Tally(5, 1, 0, 2.0, 1.0))
    assert total == Tally(15, 3, 1, 2.0, 3.0)


def test_every_kind_is_run_somewhere() -> None:
    assert {name for _, kinds in honest_runs.ENVIRONMENTS for name in kinds} == set(KINDS)
    runs = sum(len(kinds) for _, kinds in honest_runs.ENVIRONMENTS)
    assert len(false_rejects.SEEDS) * runs * honest_runs.STEPS // honest_runs.INTERVAL >= 2995


def test_draws_for_99_percent_are_the_fewest() -> None:
    for segments in (12, 40, 1000):
        draws, cheated = draws_needed(segments), math.ceil(segments / 20)
        assert detection_probability(segments, cheated, draws) >= Fraction(99, 100)
        assert detection_probability(segments, cheated, draws - 1) < Fraction(99, 100)
    assert draws_needed(12) == 12
    share = litepaper.cheating_found(1000, 32, Fraction(99, 100))
    assert 0.12 < share < 0.14
    assert detection_probability(1000, round(1000 * share), 32) >= Fraction(99, 100)
