"""Distributions made of draws: choices, permutations, exponential and gamma numbers (docs/spec/randomness.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

TRIES = 8
"""Proposals for a gamma number: all of them are rejected with a probability below 4e-11."""
_LEAST = 2.0**-25
"""In place of a uniform number of zero, whose logarithm is infinite."""
_WORDS = (-(2**31), 2**31 - 1)


class Draws(Protocol):
    """The draws of one step, one after the other."""

    def draw(self, name: str, shape: Sequence[int], device: Any, *parameters: float) -> Tensor:
        """The next draw: `pol::name` of the given shape."""
        ...


def _uniform(draws: Draws, shape: Sequence[int], device: Any) -> Tensor:
    return draws.draw("uniform", shape, device, 0.0, 1.0)


def _standard_exponential(draws: Draws, shape: Sequence[int], device: Any) -> Tensor:
    """-log(1 - u), above zero."""
    return -torch.log1p(-torch.clamp(_uniform(draws, shape, device), min=_LEAST))


def _filled(numbers: Callable[[Draws, Mapping[str, Any], Tensor], Tensor]) -> Callable[[Draws, Mapping[str, Any]], Any]:
    """An existing tensor gets new numbers."""

    def rule(draws: Draws, given: Mapping[str, Any]) -> Tensor:
        target: Tensor = given["self"]
        return target.copy_(numbers(draws, given, target))

    return rule


def _created(
    numbers: Callable[[Draws, Mapping[str, Any], Tensor], Tensor],
) -> Callable[[Draws, Mapping[str, Any]], Any]:
    """A tensor like an existing one."""
    return lambda draws, given: numbers(draws, given, given["self"]).to(given["self"].dtype)


def _exponential(draws: Draws, given: Mapping[str, Any], like: Tensor) -> Tensor:
    rate: float = given["lambd"]
    return _standard_exponential(draws, like.shape, like.device) / rate


def _geometric(draws: Draws, given: Mapping[str, Any], like: Tensor) -> Tensor:
    u = _uniform(draws, like.shape, like.device)
    return torch.floor(torch.log1p(-u) / math.log1p(-given["p"])) + 1.0


def _log_normal(draws: Draws, given: Mapping[str, Any], like: Tensor) -> Tensor:
    return torch.exp(draws.draw("normal", like.shape, like.device, given["mean"], given["std"]))


def _cauchy(draws: Draws, given: Mapping[str, Any], like: Tensor) -> Tensor:
    turn = math.pi * (_uniform(draws, like.shape, like.device) - 0.5)
    median, sigma = float(given["median"]), float(given["sigma"])
    return median + sigma * torch.tan(turn)


def _permutation(draws: Draws, given: Mapping[str, Any]) -> Tensor:
    words = draws.draw("integers", (given["n"],), given.get("device") or torch.get_default_device(), *_WORDS)
    places = torch.sort(words, dim=0, stable=True)[1]
    dtype = given.get("dtype")
    return places.to(dtype) if isinstance(dtype, torch.dtype) else places


def _choices(draws: Draws, given: Mapping[str, Any]) -> Tensor:
    weights, count = given["self"].float().contiguous(), given["num_samples"]
    if count > 1 and not given["replacement"]:
        # The first ones of a race: whoever has twice the weight runs twice as fast.
        speed = weights / _standard_exponential(draws, weights.shape, weights.device)
        return torch.topk(speed, count, -1)[1]
    totals = torch.cumsum(weights, -1)
    u = _uniform(draws, (*weights.shape[:-1], count), weights.device)
    return torch.searchsorted(totals, u * totals[..., -1:], right=True)


def _standard_gamma(draws: Draws, shape: Tensor) -> Tensor:
    """By the method of Marsaglia and Tsang (2000): the first of TRIES proposals that is accepted, else the mode."""
    shape = shape.float()
    is_low = shape < 1.0
    raised = torch.where(is_low, shape + 1.0, shape)
    d = raised - 1.0 / 3.0
    c = torch.rsqrt(9.0 * d)
    size = (TRIES, *shape.shape)
    x = draws.draw("normal", size, shape.device, 0.0, 1.0)
    u = torch.clamp(_uniform(draws, size, shape.device), min=_LEAST)
    power = torch.clamp(_uniform(draws, shape.shape, shape.device), min=_LEAST)
    root = c * x + 1.0
    v = root * root * root
    # The logarithm of a negative v is NaN, which compares to nothing.
    is_accepted = torch.log(u) < 0.5 * x * x + d * ((1.0 - v) + torch.log(v))
    value = d
    for number in reversed(range(TRIES)):
        value = torch.where(is_accepted[number], d * v[number], value)
    lowered = value * torch.exp(torch.log(power) / shape)
    return torch.clamp(torch.where(is_low, lowered, value), min=torch.finfo(torch.float32).tiny)


def _gamma(draws: Draws, given: Mapping[str, Any], like: Tensor) -> Tensor:
    return _standard_gamma(draws, like)


def _dirichlet(draws: Draws, given: Mapping[str, Any], like: Tensor) -> Tensor:
    parts = _standard_gamma(draws, like)
    return parts / parts.sum(-1, keepdim=True)


def _random_slopes(draws: Draws, given: Mapping[str, Any]) -> Tensor:
    """RReLU: the noise is the slope of each element, 1 above zero."""
    x: Tensor = given["self"]
    low, high = float(given["lower"]), float(given["upper"])
    if not given["training"]:
        return torch.where(x <= 0, x * ((low + high) / 2), x)
    slope = draws.draw("uniform", x.shape, x.device, low, high).to(x.dtype)
    noise = torch.where(x <= 0, slope, torch.ones_like(x))
    given["noise"].copy_(noise)
    return x * noise


DISTRIBUTIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "aten.exponential_.default": _filled(_exponential),
    "aten.exponential.default": _created(_exponential),
    "aten.geometric_.default": _filled(_geometric),
    "aten.log_normal_.default": _filled(_log_normal),
    "aten.cauchy_.default": _filled(_cauchy),
    "aten.randperm.default": _permutation,
    "aten.multinomial.default": _choices,
    "aten._standard_gamma.default": _created(_gamma),
    "aten._sample_dirichlet.default": _created(_dirichlet),
    "aten.rrelu_with_noise.default": _random_slopes,
}
"""By random operation of torch."""
