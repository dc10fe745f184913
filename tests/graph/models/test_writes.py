"""Writing into tensors and reading from them by masks, slices and indices, as people write it."""

from collections.abc import Callable

import pytest
import torch
from own_loop import CLASSES, ROWS, Around, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows

WIDTH = 6
PLACES = torch.tensor([4, 0, 4, 1])
Function = Callable[[Tensor], Tensor]


def assigned(write: Callable[[Tensor], object]) -> Function:
    """A copy that is written to, and the original beside it."""

    def function(x: Tensor) -> Tensor:
        y = x * 1.5
        write(y)
        return y * x

    return function


def set_masked(y: Tensor) -> None:
    y[y > 0.2] = -1.0


def set_rows(y: Tensor) -> None:
    y[y[:, 0] > 0] = y.mean(0)


def set_columns(y: Tensor) -> None:
    y[:, torch.tensor([True, False, True, False, False, True])] = y[:, :1]


def set_listed(y: Tensor) -> None:
    y[torch.tensor([[True, False, True, False, False, True], [False] * 6])] = torch.tensor([1.0, 2.0, 3.0])


def set_steps(y: Tensor) -> None:
    y[:, ::2] = y[:, 1::2] * 2


def set_step_by_number(y: Tensor) -> None:
    y[:, 1::3] = 0.5


def set_places(y: Tensor) -> None:
    y[:, PLACES] = y[:, :4]


def set_pairs(y: Tensor) -> None:
    y[torch.tensor([0, 1]), torch.tensor([3, 5])] = y[:, 0]


def add_places(y: Tensor) -> None:
    y.index_put_((torch.tensor([[0], [1]]), PLACES), y[:, :4].clone(), accumulate=True)


def reduced(kind: str, keeps: bool) -> Function:
    index = torch.tensor([[0, 2, 2, 1, 0, 2]])
    return lambda x: (
        torch.zeros(len(x), 4).add(0.3).scatter_reduce(1, index.expand(len(x), 6), x, kind, include_self=keeps)
    )


def reduced_rows(kind: str) -> Function:
    return lambda x: torch.ones(len(x), 5).index_reduce(1, torch.tensor([0, 2, 2, 1, 0, 2]), x, kind)


FUNCTIONS: dict[str, Function] = {
    "masked": assigned(set_masked),
    "masked rows": assigned(set_rows),
    "masked columns": assigned(set_columns),
    "masked by a list": assigned(set_listed),
    "every second": assigned(set_steps),
    "every third": assigned(set_step_by_number),
    "places": assigned(set_places),
    "pairs of places": assigned(set_pairs),
    "added at places": assigned(add_places),
    "added by a mask": assigned(lambda y: y.index_put_((y > 0,), torch.tensor(0.5), accumulate=True)),
    "filled": lambda x: x.masked_fill(x > 0, 2.0) * x,
    "scattered by a mask": lambda x: (x * 2).masked_scatter(x > 0, x.flip(1) + 1),
    "slice scattered": lambda x: torch.slice_scatter(x, x[:, :2], 1, 0, 6, 3),
    **{
        f"{kind} of scattered, {'with' if keeps else 'without'} self": reduced(kind, keeps)
        for kind in ("sum", "mean", "amax", "amin", "prod") for keeps in (True, False)
    },
    **{f"{kind} of rows": reduced_rows(kind) for kind in ("mean", "amax", "amin", "prod")},
    "rows added": lambda x: torch.zeros(len(x), 3).index_add(1, torch.tensor([0, 2, 2, 1, 0, 2]), x),
    "scaled rows added": lambda x: torch.zeros(len(x), 3).index_add(1, torch.tensor([0, 2, 2, 1, 0, 2]), x, alpha=0.5),
    "taken": lambda x: x.take(torch.tensor([[0, 3], [7, 3]])).expand(len(x), 2, 2),
    "put": lambda x: (x * 2).put(torch.tensor([0, 7]), torch.tensor([1.0, 2.0]), accumulate=True) * x,
    "taken along": lambda x: torch.take_along_dim(x, x.argsort(1)[:, :3], 1),
    "gathered": lambda x: x.gather(1, torch.tensor([[0, 0, 5]]).expand(len(x), 3)),
    "selected": lambda x: x.index_select(1, PLACES),
    "filled rows": lambda x: x.index_fill(1, torch.tensor([0, 2]), 0.5) * x,
    "histogram": lambda x: x * torch.histc(x.detach(), 4, -1, 1).max(),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", chosen_rows.each(FUNCTIONS, 3, others=pytest.mark.slow))
def test_writes_train_like_their_own_loop(name: str) -> None:
    torch.manual_seed(10)
    function = FUNCTIONS[name]
    model = Around(nn.Linear(WIDTH, WIDTH), lambda x: function(torch.cat([x, x])[:2]), WIDTH)
    model.function = function
    model.out = nn.Linear(function(torch.zeros(2, WIDTH)).shape[1:].numel(), CLASSES)
    require_own_loop(model, functional.cross_entropy, [torch.randn(ROWS, WIDTH), labels()])


class Bags(nn.Module):
    """Means of the rows of a table."""

    def __init__(self, layer: nn.EmbeddingBag, is_weighted: bool = False) -> None:
        super().__init__()
        self.layer = layer
        self.out = nn.Linear(layer.embedding_dim, CLASSES)
        self.weights = nn.Parameter(torch.rand(5)) if is_weighted else None

    def forward(self, tokens: Tensor) -> Tensor:
        weights = None if self.weights is None else self.weights.expand(tokens.shape)
        scores: Tensor = self.out(self.layer(tokens, per_sample_weights=weights))
        return scores


BAGS: dict[str, Callable[[], nn.Module]] = {
    "sum": lambda: Bags(nn.EmbeddingBag(9, 4, mode="sum")),
    "mean": lambda: Bags(nn.EmbeddingBag(9, 4)),
    "max": lambda: Bags(nn.EmbeddingBag(9, 4, mode="max")),
    "padded mean": lambda: Bags(nn.EmbeddingBag(9, 4, padding_idx=0)),
    "weighted sum": lambda: Bags(nn.EmbeddingBag(9, 4, mode="sum"), is_weighted=True),
}


@pytest.mark.parametrize("name", chosen_rows.each(BAGS, 3, others=pytest.mark.slow))
def test_bags_of_embeddings_train_like_their_own_loop(name: str) -> None:
    torch.manual_seed(11)
    require_own_loop(BAGS[name](), functional.cross_entropy, [torch.randint(0, 9, (ROWS, 5)), labels()])


MASKS: dict[str, Function] = {
    "a mask": lambda x: x[x > 0].sum() * x,
    "selected by a mask": lambda x: x.masked_select(x > 0).sum() * x,
    "where it is": lambda x: x * torch.nonzero(x > 0).sum(),
}


@pytest.mark.parametrize("name", chosen_rows.each(MASKS, 3, others=pytest.mark.slow))
def test_what_masks_select_trains_like_its_own_loop(name: str) -> None:
    model = Around(nn.Linear(WIDTH, WIDTH), MASKS[name], WIDTH)
    require_own_loop(model, functional.cross_entropy, [torch.randn(ROWS, WIDTH), labels()])
