"""Rows that a mask or a list of places selects: a step of all rows, and the refusal of what needs their number."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.training.task.task_randomness import TaskRandomness
from step_comparison import INPUTS, LABELS, ORDER, Behind, behind_all, compared_step

Function = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


def of_some(output: Tensor, target: Tensor) -> Tensor:
    losses = functional.cross_entropy(output, target, reduction="none")
    return losses[target > 0].mean() + 0.1 * losses[target == 0].sum()


def nested(output: Tensor, target: Tensor) -> Tensor:
    some = output[target > 0]
    positive = some[some > 0]
    return positive.pow(2).sum() + some[:, 0].mean() + some.max() - some.amin() + some.std() + some[-1].sum()


def pairs(output: Tensor, target: Tensor) -> Tensor:
    distances, same = torch.cdist(output, output), target[:, None] == target
    return distances[same].mean() + functional.relu(1 - distances[~same]).mean()


def counted(output: Tensor, target: Tensor) -> Tensor:
    some = functional.cross_entropy(output, target, reduction="none")[target > 0]
    return some.sum() / some.numel() + some.sum() / some.shape[0] + some.sum().div(some.size(0) + 1)


def other_losses(output: Tensor, target: Tensor) -> Tensor:
    mask = target > 0
    teacher = (2 * output[mask]).softmax(-1).detach()
    divergence = functional.kl_div(output[mask].log_softmax(-1), teacher, reduction="batchmean")
    squares = functional.mse_loss(output[mask, 1:], INPUTS[:6][mask, 1:3].detach(), reduction="sum")
    return divergence + squares + functional.smooth_l1_loss(output[mask], teacher)


def weighted(output: Tensor, target: Tensor) -> Tensor:
    weight = torch.tensor([1.0, 2.0, 3.0])
    return functional.cross_entropy(output[target != 2], target[target != 2], weight=weight, label_smoothing=0.1)


def products(output: Tensor, target: Tensor) -> Tensor:
    some = output[target > 0]
    gram = some.T @ some / some.shape[0]
    return gram.square().sum() + torch.einsum("nd,ne->de", some, some).mean() + (some @ gram).mean()


def logarithms(output: Tensor, target: Tensor) -> Tensor:
    positive = output.relu()
    return positive[positive > 0].log().mean() + positive.masked_select(functional.one_hot(target, 3) > 0).mean()


def parts(output: Tensor, target: Tensor) -> Tensor:
    both = torch.cat([output[target > 0], 2 * output[target == 0]])
    return both.square().mean() + both.view(-1).sigmoid().sum()


LOSSES: dict[str, Loss] = {
    "of some": of_some, "nested": nested, "pairs": pairs, "counted": counted, "other losses": other_losses,
    "weighted": weighted, "products": products, "logarithms": logarithms, "parts": parts,
}  # fmt: skip


@pytest.mark.parametrize("names", chosen_rows.together(LOSSES, 5, alone=pytest.mark.slow))
def test_losses_of_selected_rows_are_those_of_torch(names: list[str]) -> None:
    torch.manual_seed(2)
    chosen = [LOSSES[name] for name in names]
    compared_step(Behind(lambda x: x, 3), lambda output, target: sum(loss(output, target) for loss in chosen))


def written_back(x: Tensor) -> Tensor:
    x = x.clone()
    mask = x.detach() > 0
    x[mask] *= 2
    x[mask.any(1)] -= 0.5
    x[..., 1:][mask[..., 1:]] += x[..., 1:][mask[..., 1:]].tanh()
    x[x.detach() > 0] = x[x.detach() > 0].tanh()  # two masks of as many places
    return x


def farthest(x: Tensor) -> Tensor:
    distances = torch.full((6, 8), 9.0)
    for column in range(3):
        new = (x - x[:, column : column + 1]).square()
        nearer = new < distances
        distances[nearer] = new[nearer]
    return distances


def experts(x: Tensor, add: str) -> Tensor:
    weights, chosen = x[:, :3].softmax(1).topk(2, -1)
    result = torch.zeros_like(x)
    for number in range(3):
        rows, places = torch.where(chosen == number)
        values = functional.gelu(functional.linear(x[rows], torch.eye(8).roll(number, 0)))
        values = values * weights[rows, places, None]
        if add == "index_add_":
            result.index_add_(0, rows, values)
        elif add == "scatter_add":
            result = result.scatter_add(0, rows[:, None].expand(-1, 8), values)
        elif add == "index_put_":
            result.index_put_((rows,), values, accumulate=True)
        else:
            result[rows] += values
    return result


def places(x: Tensor) -> Tensor:
    x = x.clone()
    index = (x[:, 0] > 0).nonzero().squeeze(-1)
    x[index] = x[index].flip(1) * 3
    x[index[:2], 1] = 0.5
    return x + functional.dropout(x[torch.where(x[:, 1] > 0)[0]], 0.4).sum(0)


def known(x: Tensor) -> Tensor:
    similarity = functional.normalize(x) @ functional.normalize(x).T
    mask = torch.eye(6, dtype=torch.bool)
    mask[0, 1] = True
    mask[:, 2].fill_(False)
    upper = torch.triu(torch.ones(6, 6), 1).bool()
    return similarity[~mask].view(30, -1).logsumexp(0) + similarity[upper].view(3, 5).sum() + similarity[mask].sum()


FUNCTIONS: dict[str, Function] = {
    "written back": written_back,
    "farthest points": farthest,
    **{
        f"experts by {add}": lambda x, add=add: experts(x, add)
        for add in ("index_add_", "scatter_add", "index_put_", "assignment")
    },
    "places": places,
    "masks that are known": known,
    "counts of integers": lambda x: x * torch.bincount((x[:, 0] > 0).long(), minlength=3).float().sum() / 6,
}


@pytest.mark.parametrize("names", chosen_rows.together(FUNCTIONS, 5, alone=pytest.mark.slow))
def test_a_step_that_selects_rows_is_that_of_torch(names: list[str]) -> None:
    torch.manual_seed(2)
    compared_step(behind_all(FUNCTIONS[name] for name in names))


def test_where_nothing_is_selected_a_sum_is_zero_and_a_mean_is_nan() -> None:
    torch.manual_seed(2)
    model = nn.Linear(5, 3)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        rows = torch.where(target == target.max() - 3 * (target[:1] - 1).abs())[0]
        written = output.clone()
        written[rows] = 3 * output[rows].exp()
        return written.square().sum() + output[rows].sum()

    order = torch.stack([ORDER[0].roll(1), ORDER[0]])  # the first label decides whether any row is selected
    captured = compared_step(model, loss, order=order)
    empty = compared_step(model, lambda output, target: output[target > 5 - 4 * target[:1]].mean(), order=order)
    loss_of = empty.names.observed["loss"]
    run = CpuExecutor(empty.program, empty.constants).run
    assert np.isnan(run(empty.state, 1)[loss_of].view(np.float32))
    assert captured.program != empty.program


def test_dropout_of_selected_rows_draws_as_the_users_loop_does() -> None:
    torch.manual_seed(2)
    model = Behind(lambda x: functional.dropout(x[x[:, 0] > 0], 0.5).sum(0).expand(6, 8))
    captured = compared_step(model)
    with TaskRandomness(7).step(1):
        output = model(INPUTS[ORDER[1]])
    run = CpuExecutor(captured.program, captured.constants).run(captured.state, 1)
    value = float(run[captured.names.observed["loss"]].view(np.float32))
    assert value == pytest.approx(float(output.square().mean().detach()), rel=1e-4)


REFUSED: dict[str, Loss] = {
    "softmax": lambda output, target: output[target > 0].softmax(0).square().sum(),
    "cumsum": lambda output, target: output[target > 0].cumsum(0).sum(),
    "sort": lambda output, target: output[target > 0].sort(0)[0].square().sum(),
    "batch_norm": lambda output, target: functional.batch_norm(output[target > 0], None, None, training=True).sum(),
    "__len__": lambda output, target: output[target > 0].sum() / len(output[target > 0]),
    "unbind": lambda output, target: torch.stack([row.sum() for row in output[target > 0]]).sum(),
    "tolist": lambda output, target: output[(target > 0).nonzero().flatten().tolist()].sum(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_number_of_selected_rows_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"-- {name} takes rows") as caught:
        compared_step(Behind(lambda x: x, 3), REFUSED[name], (INPUTS, LABELS))
    assert "test_capture_selections.py:" in str(caught.value)
    assert len(str(caught.value)) < 600


def view_taken_before(output: Tensor, target: Tensor) -> Tensor:
    some = output[target > 0]
    column, wide = some[:, :2], some.unsqueeze(2)
    some[:, 0] = 0.5
    some[some > 1] = 0.25
    functional.dropout(some, 0.5, training=True, inplace=True)
    return column.square().sum() + wide.square().sum()


def test_a_view_of_selected_rows_sees_what_is_written_to_them() -> None:
    torch.manual_seed(2)
    compared_step(nn.Linear(5, 3), view_taken_before)


@pytest.mark.parametrize("write", [lambda s: s.view(-1).mul_(2), lambda s: s[:2].zero_(), lambda s: s[0].zero_()])
def test_writing_into_a_view_that_is_a_copy_here_is_refused(write: Callable[[Tensor], object]) -> None:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        some = output[target >= 0].clone()
        write(some)
        return some.sum() + some.square().sum()

    with pytest.raises(UnsupportedError, match="were changed in place"):
        compared_step(nn.Linear(5, 3), loss)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, value: Tensor) -> Tensor:
        return value * 2

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient * 2


doubled = Doubled.apply


def test_a_function_of_ones_own_takes_no_selected_rows() -> None:
    """Its gradient was lost, and a self-check on rows of which all or none are selected didn't see it."""

    def of_selected(output: Tensor, target: Tensor) -> Tensor:
        return doubled(output[target > 0]).square().sum() + output.mean()

    with pytest.raises(UnsupportedError, match="Function takes rows that a mask has selected"):
        compared_step(nn.Linear(5, 3), of_selected)
    compared_step(nn.Linear(5, 3), lambda output, target: doubled(output)[target > 0].square().sum())


def test_the_least_norm_of_selected_rows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="norm takes rows that a mask has selected"):
        compared_step(nn.Linear(5, 3), lambda output, target: output[target > 0].norm(-torch.inf))
