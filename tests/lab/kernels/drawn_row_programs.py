"""Drawn functions of rows: maps, joins with rows' results, and folds, most of whose values are read once, by a fold."""

import operator
import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture

ROWS = (3, 17, 64, 129, 300, 701, 1501, 2048)
COLUMNS = (2, 3, 7, 16, 33, 64, 65, 96, 128, 129, 160, 255, 257, 512)

_ONE: tuple[Callable[[Tensor], Tensor], ...] = (
    torch.tanh,
    torch.exp,
    torch.abs,
    torch.neg,
    torch.sigmoid,
    torch.relu,
    torch.square,
    torch.rsqrt,
    functional.gelu,
    torch.log1p,
    torch.sign,
    functional.silu,
)
_TWO: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    torch.add,
    torch.sub,
    torch.mul,
    torch.maximum,
    torch.minimum,
    torch.div,
    lambda a, b: torch.where(a > b, a, b * 2),
    lambda a, b: (a < b).float(),
)
_FOLDS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda a: a.sum(1),
    lambda a: a.amax(1),
    lambda a: a.mean(1),
    lambda a: a.prod(1),
    lambda a: (a > 0).any(1).float(),
    lambda a: (a < 1).all(1).float(),
    lambda a: a.var(1),
    lambda a: a.max(1)[0],
    lambda a: a.logsumexp(1),
    lambda a: (a > 0).sum(1).float(),
    lambda a: a.argmax(1).float(),
)
_WITHIN: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda a: torch.softmax(a, 1),
    lambda a: torch.log_softmax(a, 1),
    lambda a: a.cumsum(1),
    lambda a: functional.layer_norm(a, a.shape[-1:]),
    lambda a: a - a.mean(1, keepdim=True),
    lambda a: a.flip(1),
    lambda a: torch.roll(a, 1, 1),
)


def drawn_rows(seed: int, gradients: bool = False) -> Capture:
    """A step program with a result for each row, or whose step goes along its gradients."""
    dice = random.Random(seed)
    rows, columns = dice.choice(ROWS), dice.choice(COLUMNS)
    drawn = [(dice.random(), dice.getrandbits(20), dice.random(), dice.random()) for _ in range(dice.randint(2, 8))]

    def function(state: dict[str, Tensor], constants: dict[str, Tensor], step: Tensor) -> dict[str, Tensor]:
        del constants, step
        for tensor in state.values():
            tensor.requires_grad_(gradients)
        sources, values, results = [state["x"], state["y"]], list[Tensor](), list[Tensor]()

        def take(share: float) -> Tensor:
            if values and share < 0.75:
                return values.pop(int(share / 0.75 * len(values)))
            return sources[int(share * 1000) % 2]

        for kind, number, first, second in drawn:
            if kind < 0.35:
                values.append(_ONE[number % len(_ONE)](take(first)))
            elif kind < 0.5:
                values.append(_TWO[number % len(_TWO)](take(first), take(second)))
            elif kind < 0.58 and results:
                values.append(_TWO[number % len(_TWO)](take(first), results.pop()[:, None]))
            elif kind < 0.9:
                results.append(_FOLDS[number % len(_FOLDS)](take(first)))
            else:
                values.append(_WITHIN[number % len(_WITHIN)](take(first)))
        out = state["out"]
        join = operator.sub if len(results) % 2 else torch.maximum
        for value in (*(value.sum(1) for value in values), *results):
            out = join(out, value)
        if not gradients:
            return {"out": out}
        found = torch.autograd.grad((out * state["out"]).sum(), sources, materialize_grads=True)
        stepped = zip("xy", sources, found, strict=True)
        return {name: old - 0.1 * gradient for name, old, gradient in stepped} | {"out": out}

    state = {"x": torch.zeros(rows, columns), "y": torch.zeros(rows, columns), "out": torch.zeros(rows)}
    return capture_function(function, state)
