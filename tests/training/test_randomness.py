"""The numbers of a task in a loop of one's own, and first weights that are the same everywhere."""

import hashlib

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lab.benchmarks.figure import torch_threads
from pol.arithmetic.interpreter import run
from pol.arithmetic.philox import normal, philox, uniform
from pol.errors import UnsupportedError
from pol.execution.stock_torch.torch_random import DRAWS, torch_words
from pol.graph.capture.tracing.random_operations import seed_words
from pol.training.task.task_randomness import TaskRandomness

SEED = 2**40 + 9


def words(count: int, step: int, ordinal: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    scalars = [np.array(word, np.uint32) for word in (step, ordinal, SEED % 2**32, SEED >> 32)]
    return run(philox(), [np.arange(count, dtype=np.uint32), *scalars])


def test_numbers_are_those_of_the_scalar_programs() -> None:
    with TaskRandomness(SEED).step(7):
        drawn = [torch.rand(3, 50), torch.randn(150), torch.randint(10, 20, (150,)), torch.empty(150).bernoulli_(0.3)]
    assert np.array_equal(drawn[0].flatten().numpy().view(np.uint32), run(uniform(), [words(150, 7, 0)]))
    assert np.array_equal(drawn[1].numpy().view(np.uint32), run(normal(), [words(150, 7, 1)]))
    assert drawn[2].tolist() == [10 + int(word) * 10 // 2**32 for word in words(150, 7, 2)]
    assert drawn[3].tolist() == (words(150, 7, 3) < round(0.3 * 2**32)).astype(float).tolist()


def test_strides_do_not_change_the_numbers() -> None:
    with TaskRandomness(SEED).step(0):
        plain = torch.empty(4, 5).uniform_()
    with TaskRandomness(SEED).step(0):
        other = torch.empty(5, 4).t().uniform_()
    assert torch.equal(plain, other)


def test_dtypes_and_empty_tensors() -> None:
    with TaskRandomness(SEED).step(0):
        double, half = torch.rand(20, dtype=torch.float64), torch.empty(20, dtype=torch.bfloat16).normal_()
        assert torch.rand(0, 3).shape == (0, 3)
    with TaskRandomness(SEED).step(0):
        assert torch.equal(torch.rand(20).double(), double)
        assert torch.equal(torch.randn(20).bfloat16(), half)


def test_integer_operations_of_torch_give_the_same_words() -> None:
    """What other devices than the CPU compute."""
    key = [SEED % 2**32, SEED >> 32]
    found = torch_words(2000, 2**32 - 1, key, 5, torch.device("cpu"))
    assert found.tolist() == words(2000, 2**32 - 1, 5).tolist()


def test_threads_change_no_bit() -> None:
    drawn: list[Tensor] = []
    for threads in (1, 2):
        with torch_threads(threads):
            arguments = (torch.tensor(1), seed_words(SEED), 0, [300_001], 0.0, 1.0)
            drawn.append(DRAWS["pol.normal.default"](*arguments))
    assert torch.equal(*drawn)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 30), nn.Embedding(5, 4), nn.Conv2d(2, 3, 3), nn.LayerNorm(4), nn.LSTM(3, 4))


def digest(module: nn.Module) -> str:
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in module.state_dict().values())).hexdigest()


def test_first_weights_are_the_same_everywhere() -> None:
    with TaskRandomness(SEED).initialization():
        first = model()
    assert digest(first) == "6ac12a5261ac2e730c3d8195857700eb815682316c2d198af7fbde0c2c64d5f3"
    assert 0.1 < float(first[0].weight.detach().std()) < 0.15  # type: ignore[index]  # a Sequential


def test_initialisation_goes_on_where_it_ended() -> None:
    random = TaskRandomness(SEED)
    with random.initialization():
        first = model()
    with random.initialization():
        second = model()
    assert digest(first) != digest(second)
    with TaskRandomness(SEED).initialization():
        assert [digest(model()), digest(model())] == [digest(first), digest(second)]


def test_the_generators_of_torch_stay_as_they_are() -> None:
    before = torch.get_rng_state()
    with TaskRandomness(SEED).initialization():
        model()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("step", [-1, 2**32 - 1])
def test_steps_are_those_of_a_program(step: int) -> None:
    with pytest.raises(UnsupportedError, match="step"), TaskRandomness().step(step):
        pass
