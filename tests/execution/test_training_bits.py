"""Trainings of an MLP, a CNN and a GPT: one sequence of states whatever executes them."""

import pytest

from lab.benchmarks.training_bits import MODELS, compare, compare_with_reference
from pol.execution import _kernels


@pytest.mark.parametrize("name", MODELS)
def test_instruction_sets_threads_and_the_reference_agree(name: str) -> None:
    captured = MODELS[name](4)
    states = compare(captured, 4)
    assert states.compared >= 4 * sum(array.nbytes for array in captured.state) * (2 * len(_kernels.isas()) - 1)
    assert states.differing == 0
    nodes = compare_with_reference(captured, 1)
    assert nodes.compared > 4_000
    assert nodes.differing == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MODELS)
def test_a_thousand_steps(name: str) -> None:
    captured = MODELS[name](1000)
    assert compare(captured, 1000).differing == 0
    assert compare_with_reference(captured, 777).differing == 0
