"""Sampling in a step: choices, permutations, distributions of torch, and augmentations as tutorials write them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, distributions, nn
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError
from pol.training.task.task_randomness import TaskRandomness
from step_comparison import INPUTS, LABELS, Behind, behind_all, compared_step

torch.manual_seed(3)
Function = Callable[[Tensor], Tensor]


def soft(x: Tensor) -> Tensor:
    return torch.softmax(x, 1)


FUNCTIONS: dict[str, Function] = {
    "multinomial": lambda x: x.gather(1, torch.multinomial(soft(x), 1)),
    "multinomial with replacement": lambda x: x.gather(1, torch.multinomial(soft(x), 5, replacement=True)),
    "multinomial without replacement": lambda x: x.gather(1, torch.multinomial(soft(x), 3)),
    "multinomial of a vector": lambda x: x[:, torch.multinomial(torch.arange(8.0), 4)],
    "Categorical": lambda x: _policy(distributions.Categorical(logits=x)),
    "Categorical of probabilities": lambda x: _policy(distributions.Categorical(soft(x))),
    "OneHotCategorical": lambda x: distributions.OneHotCategorical(logits=x).sample() * x,
    "straight through": lambda x: distributions.OneHotCategoricalStraightThrough(logits=x).rsample(),
    "relaxed": lambda x: distributions.RelaxedOneHotCategorical(torch.tensor(0.5), logits=x).rsample(),
    "relaxed bernoulli": lambda x: distributions.RelaxedBernoulli(torch.tensor(0.5), logits=x).rsample(),
    "Gumbel softmax": lambda x: functional.gumbel_softmax(x, tau=0.7),
    "hard Gumbel softmax": lambda x: functional.gumbel_softmax(x, hard=True) * x,
    "Gumbel": lambda x: x + distributions.Gumbel(0.0, 1.0).sample(x.shape),
    "exponential_": lambda x: x * torch.empty_like(x).exponential_(2.0),
    "geometric_": lambda x: x * torch.empty_like(x).geometric_(0.3),
    "log_normal_": lambda x: x * torch.empty_like(x).log_normal_(0.1, 0.5),
    "cauchy_": lambda x: torch.tanh(x + torch.empty_like(x).cauchy_()),
    "Laplace": lambda x: distributions.Laplace(x, 0.5).rsample(),
    "Normal": lambda x: distributions.Normal(x, functional.softplus(x)).rsample(),
    "Normal's logarithm": lambda x: distributions.Normal(x, 0.3 + x.abs()).log_prob(x.detach() + 0.1),
    "Kumaraswamy": lambda x: x * distributions.Kumaraswamy(torch.tensor(2.0), torch.tensor(3.0)).sample(),
    "Bernoulli": lambda x: distributions.Bernoulli(logits=x).sample() * x,
    "Uniform": lambda x: x * distributions.Uniform(0.5, 1.5).sample(x.shape),
    "Gamma": lambda x: x * distributions.Gamma(torch.tensor([0.3, 1.0, 5.0]), 2.0).sample((2,)).view(6, 1),
    "Beta": lambda x: x * distributions.Beta(torch.tensor(0.4), torch.tensor(0.4)).sample(),
    "Dirichlet": lambda x: x * distributions.Dirichlet(torch.full((8,), 0.7)).sample(),
    "StudentT": lambda x: torch.tanh(x + distributions.StudentT(torch.tensor(4.0)).sample(x.shape)),
    "randperm": lambda x: x[torch.randperm(len(x))] * x,
    "shuffled columns": lambda x: x[:, torch.randperm(8)] * x,
    "dropouts": lambda x: (
        functional.dropout1d(x.view(2, 3, 8), 0.3).view(6, 8)
        + functional.dropout2d(x.view(2, 3, 2, 4), 0.3).view(6, 8)
        + functional.dropout3d(x.view(2, 3, 2, 2, 2), 0.3).view(6, 8)
        + functional.alpha_dropout(x, 0.3, training=True)
        + functional.feature_alpha_dropout(x.view(2, 3, 8), 0.3, training=True).view(6, 8)
    ),
    "normal of tensors": lambda x: x * torch.normal(x.detach(), x.detach().abs()),
    "like": lambda x: x * torch.rand_like(x) + torch.randn_like(x) + torch.bernoulli(torch.sigmoid(x)),
    "likelihood of counts": lambda x: distributions.NegativeBinomial(x.abs() + 0.5, logits=x).log_prob(
        LABELS[:6, None]
    ),
    "likelihood of Student": lambda x: distributions.StudentT(x.abs() + 2, x, 1.0).log_prob(INPUTS[:6, :1]),
    "divergence of Dirichlet": lambda x: distributions.kl_divergence(
        distributions.Dirichlet(x.abs() + 0.5), distributions.Dirichlet(torch.ones(8))
    ),
}


def _policy(distribution: distributions.Categorical) -> Tensor:
    action = distribution.sample()
    return distribution.log_prob(action) * (action - 3.5) - 0.1 * distribution.entropy()


@pytest.mark.parametrize("names", chosen_rows.together(FUNCTIONS, 12, alone=pytest.mark.slow))
def test_a_step_that_samples_is_that_of_the_own_loop(names: list[str]) -> None:
    torch.manual_seed(2)
    compared_step(behind_all(FUNCTIONS[name] for name in names))


class Mixed(nn.Module):
    """Mixup or cutmix in the loss, as in tutorials, with torch's numbers."""

    def __init__(self, cuts: bool) -> None:
        super().__init__()
        self.cuts = cuts
        self.conv, self.out = nn.Conv2d(1, 3, 3, padding=1), nn.Linear(48, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        index = torch.randperm(x.size(0))
        lam = distributions.Beta(torch.tensor(1.0), torch.tensor(1.0)).sample()
        if self.cuts:
            half, center = (torch.sqrt(1 - lam) * 4 / 2).clamp(0, 2).int(), torch.randint(4, (2,))
            places = torch.arange(4)
            rows, columns = ((places >= c - half) & (places < c + half) for c in center)
            box = rows[:, None] & columns
            x = torch.where(box, x[index], x)
            lam = 1 - box.float().mean()
        else:
            x = lam * x + (1 - lam) * x[index]
        return self.out(functional.relu(self.conv(x)).flatten(1)), index, lam


def mixed_loss(output: tuple[Tensor, Tensor, Tensor], target: Tensor) -> Tensor:
    logits, index, lam = output
    return lam * functional.cross_entropy(logits, target) + (1 - lam) * functional.cross_entropy(logits, target[index])


@pytest.mark.parametrize("cuts", [False, True])
def test_mixup_and_cutmix(cuts: bool) -> None:
    torch.manual_seed(2)
    images = torch.randn(24, 1, 4, 4)
    compared_step(Mixed(cuts), mixed_loss, (images, LABELS))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * float(np.random.beta(0.4, 0.4)), r"numpy\.random.*mixup: torch\.distributions\.Beta"),
        (lambda x: x * torch.poisson(x.abs()), r"aten\.poisson"),
        (lambda x: distributions.Gamma(x.abs() + 0.5, 1.0).rsample(), r"_standard_gamma_grad.*sample\(\)"),
        (lambda x: distributions.Dirichlet(x.abs() + 0.5).rsample(), r"_dirichlet_grad.*Kumaraswamy"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(function: Function, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        compared_step(Behind(function))


def drawn(function: Callable[[], Tensor]) -> Tensor:
    """The numbers of a draw in one's own loop."""
    with TaskRandomness(11).step(0):
        return function()


def test_choices_have_the_frequencies_of_their_weights() -> None:
    weights = torch.tensor([0.0, 1.0, 2.0, 0.0, 5.0])
    found = drawn(lambda: torch.multinomial(weights, 40_000, replacement=True))
    frequencies = torch.bincount(found, minlength=5) / 40_000
    torch.testing.assert_close(frequencies, weights / 8, rtol=0, atol=0.01)
    pairs = drawn(lambda: torch.multinomial(weights.expand(20_000, 5), 2))
    assert bool((pairs[:, 0] != pairs[:, 1]).all())
    first = torch.bincount(pairs[:, 0], minlength=5) / 20_000
    torch.testing.assert_close(first, weights / 8, rtol=0, atol=0.015)


def test_permutations_are_permutations_and_each_place_gets_every_number() -> None:
    found = torch.stack([drawn(lambda: torch.stack([torch.randperm(5) for _ in range(4000)]))])[0]
    assert bool((found.sort(1)[0] == torch.arange(5)).all())
    for place in range(5):
        frequencies = torch.bincount(found[:, place], minlength=5) / 4000
        torch.testing.assert_close(frequencies, torch.full((5,), 0.2), rtol=0, atol=0.03)


@pytest.mark.parametrize("shape", [0.1, 0.7, 1.0, 3.0, 40.0])
def test_gamma_numbers_have_mean_and_variance_of_their_shape(shape: float) -> None:
    found = drawn(lambda: torch._standard_gamma(torch.full((60_000,), shape))).double()
    assert float(found.mean()) == pytest.approx(shape, rel=0.03)
    assert float(found.var()) == pytest.approx(shape, rel=0.06)
    # The share below the mean, by the incomplete gamma function.
    below = float(torch.special.gammainc(torch.tensor(shape), torch.tensor(shape)))
    assert float((found < shape).double().mean()) == pytest.approx(below, abs=0.01)


def test_exponential_numbers_are_never_zero() -> None:
    found = drawn(lambda: torch.empty(200_000).exponential_(2.0))
    assert float(found.min()) > 0
    assert float(found.mean()) == pytest.approx(0.5, rel=0.02)
    assert float((found > 1).float().mean()) == pytest.approx(math.exp(-2), abs=0.005)
