"""Losses as people use them, with their options."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from own_loop import CLASSES, ROWS, Setup, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError
from pol.graph.capture import capture
from pol.graph.capture.replacements import REPLACEMENTS
from pol.graph.capture.replacements.losses.ctc import MOST_FRAMES

WIDTH = 6


class Pair(nn.Module):
    """Embeddings of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, 4)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.layer(x) for x in inputs)


class Sequence(nn.Module):
    """Scores of classes at each of some times, times first."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor, *rest: Tensor) -> Any:
        scores = self.layer(x).transpose(0, 1).log_softmax(-1)
        return (scores, *rest) if rest else scores


def scores(loss: Callable[[Any, Any], Tensor], target: Callable[[], Tensor] = labels) -> Callable[[], Setup]:
    return lambda: (nn.Linear(WIDTH, CLASSES), loss, [torch.randn(ROWS, WIDTH), target()])


def pairs(loss: Callable[[Any, Any], Tensor], count: int, target: Callable[[], Tensor]) -> Callable[[], Setup]:
    return lambda: (Pair(), loss, [*(torch.randn(ROWS, WIDTH) for _ in range(count)), target()])


def numbers() -> Tensor:
    return torch.randn(ROWS, CLASSES)


def counts() -> Tensor:
    return torch.randint(0, 5, (ROWS, CLASSES)).float()


def signs() -> Tensor:
    return torch.where(torch.rand(ROWS) < 0.5, -1.0, 1.0)


def masks() -> Tensor:
    return (torch.rand(ROWS, CLASSES) < 0.5).float()


def some() -> Tensor:
    """Labels, of which some are ignored."""
    return torch.tensor([0, 1, -100, 2, 1, -100, 0, 2])


def ranked() -> Tensor:
    return torch.tensor([[0, 2, -1], [1, -1, 0], [2, 0, 1], [-1, 0, 1]]).repeat(2, 1)


def focal(output: Tensor, target: Tensor) -> Tensor:
    entropy = functional.cross_entropy(output, target, reduction="none")
    return ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()


def dice(output: Tensor, target: Tensor) -> Tensor:
    found = output.sigmoid()
    overlap = (found * target).sum(0)
    return 1 - ((2 * overlap + 1) / (found.sum(0) + target.sum(0) + 1)).mean()


def contrast(output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    first, second = (functional.normalize(x, dim=-1) for x in output)
    alike = first @ second.t() / 0.1
    own = torch.arange(len(first))
    return (functional.cross_entropy(alike, own) + functional.cross_entropy(alike.t(), own)) / 2


def spread(p: float) -> Callable[[Any, Any], Tensor]:
    return lambda output, target: torch.cdist(output[0], output[1], p=p).mean() + target.mean()


def gaussian(output: Tensor, target: Tensor) -> Tensor:
    return functional.gaussian_nll_loss(output, target, functional.softplus(output))


def kullback_leibler(output: Tensor, target: Tensor) -> Tensor:
    return functional.kl_div(output.log_softmax(-1), target.softmax(-1), reduction="batchmean")


def kullback_leibler_of_logs(output: Tensor, target: Tensor) -> Tensor:
    return functional.kl_div(output.log_softmax(-1), target.log_softmax(-1), reduction="batchmean", log_target=True)


def aligned(listed: bool = False, joined: bool = False, **options: Any) -> Callable[[], Setup]:
    """Lengths are the same for all examples, or listed; texts are padded, or one behind the other."""

    def loss(output: Tensor, target: Tensor) -> Tensor:
        times, examples, _ = output.shape
        inputs, texts = torch.full((examples,), times), torch.full((examples,), 3)
        if listed:
            lengths = [times, *[times - 2] * (examples - 1)], (3, *[2] * (examples - 1))
            texts_of = torch.cat([row[:length] for row, length in zip(target, lengths[1], strict=True)])
            return functional.ctc_loss(output, texts_of if joined else target, *lengths, **options)
        return functional.ctc_loss(output, target, inputs, texts, **options)

    return lambda: (Sequence(6), loss, [torch.randn(ROWS, 9, WIDTH), torch.tensor([[1, 1, 2], [3, 2, 4]] * 4)])


def aligned_by_lengths() -> Setup:
    """Lengths come from the batch; one text is too long for its sound."""

    def loss(output: tuple[Tensor, ...], target: Tensor) -> Tensor:
        log_probabilities, inputs, texts = output
        return functional.ctc_loss(log_probabilities, target, inputs, texts, zero_infinity=True)

    inputs, texts = torch.randint(4, 10, (ROWS,)), torch.randint(1, 4, (ROWS,))
    inputs[0], texts[0] = 2, 3
    return Sequence(5), loss, [torch.randn(ROWS, 9, WIDTH), inputs, texts, torch.tensor([[1, 1, 2], [3, 2, 4]] * 4)]


LOSSES: dict[str, Callable[[], Setup]] = {
    "gaussian": scores(gaussian, numbers),
    "gaussian, full": scores(lambda o, t: functional.gaussian_nll_loss(o, t, o.exp(), full=True), numbers),
    "poisson": scores(nn.PoissonNLLLoss(), counts),
    "poisson, full": scores(nn.PoissonNLLLoss(full=True), counts),
    "poisson of means": scores(lambda o, t: functional.poisson_nll_loss(o.exp(), t, log_input=False), counts),
    "multi margin": scores(nn.MultiMarginLoss()),
    "multi margin squared": scores(nn.MultiMarginLoss(p=2, margin=0.7, weight=torch.tensor([0.5, 1.0, 2.0]))),
    "multi label margin": scores(nn.MultiLabelMarginLoss(), ranked),
    "multi label soft margin": scores(nn.MultiLabelSoftMarginLoss(), masks),
    "soft margin": scores(nn.SoftMarginLoss(), lambda: masks() * 2 - 1),
    "kullback leibler": scores(kullback_leibler, numbers),
    "kullback leibler of logs": scores(kullback_leibler_of_logs, numbers),
    "huber": scores(nn.HuberLoss(delta=0.5), numbers),
    "smooth": scores(nn.SmoothL1Loss(beta=0.3), numbers),
    "binary with weights": scores(nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2.0, 3.0])), masks),
    "binary": scores(lambda o, t: functional.binary_cross_entropy(o.sigmoid(), t), masks),
    "focal": scores(focal),
    "dice": scores(dice, masks),
    "smoothed labels": scores(nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([0.5, 1.0, 2.0])), some),
    "probabilities": scores(lambda o, t: functional.cross_entropy(o, t.softmax(-1), label_smoothing=0.1), numbers),
    "ignored labels": scores(nn.CrossEntropyLoss(ignore_index=-100), some),
    "contrast": pairs(contrast, 2, labels),
    "cosine": pairs(lambda o, t: functional.cosine_embedding_loss(*o, t, margin=0.2), 2, signs),
    "ranking": pairs(lambda o, t: functional.margin_ranking_loss(o[0][:, 0], o[1][:, 0], t, margin=0.1), 2, signs),
    "hinge": pairs(lambda o, t: functional.hinge_embedding_loss((o[0] - o[1]).norm(dim=1), t), 2, signs),
    "triplet": pairs(lambda o, t: functional.triplet_margin_loss(*o), 3, labels),
    "triplet, swapped": pairs(lambda o, t: functional.triplet_margin_loss(*o, p=1, swap=True), 3, labels),
    "triplet of cosines": pairs(
        lambda o, t: functional.triplet_margin_with_distance_loss(
            *o, distance_function=lambda a, b: 1 - functional.cosine_similarity(a, b)
        ), 3, labels,
    ),
    "distances": pairs(spread(2.0), 2, numbers),
    "distances, 1": pairs(spread(1.0), 2, numbers),
    "distances, 3": pairs(spread(3.0), 2, numbers),
    "distances, infinite": pairs(spread(float("inf")), 2, numbers),
    "distances of one set": pairs(lambda o, t: torch.pdist(o[0]).mean(), 1, numbers),
    "pairwise distance": pairs(lambda o, t: functional.pairwise_distance(*o).mean(), 2, numbers),
    "alignment": aligned(),
    "alignment, summed": aligned(reduction="sum", blank=5),
    "alignment by lengths": aligned_by_lengths,
    "alignment, listed": aligned(listed=True),
    "alignment, listed, joined": aligned(listed=True, joined=True, reduction="sum", zero_infinity=True),
}  # fmt: skip


@pytest.mark.parametrize("name", chosen_rows.each(LOSSES, 4, others=pytest.mark.slow))
def test_a_loss_trains_like_its_own_loop(name: str) -> None:
    torch.manual_seed(8)
    require_own_loop(*LOSSES[name]())


@pytest.mark.parametrize("seed", range(6))
def test_the_loss_and_the_gradient_of_alignments(seed: int) -> None:
    """Any lengths, texts of no label and texts that are too long among them; padded and one behind the other."""
    torch.manual_seed(seed)
    times, examples, longest = 1 + 3 * seed, 4, 3
    scores = torch.randn(times, examples, CLASSES).log_softmax(-1).requires_grad_()
    inputs, texts = torch.randint(1, times + 1, (examples,)), torch.randint(0, longest + 1, (examples,))
    padded = torch.randint(1, CLASSES, (examples, longest))
    joined = torch.cat([row[:length] for row, length in zip(padded, texts, strict=True)])
    weights = torch.rand(examples)
    expected = functional.ctc_loss(scores, padded, inputs, texts, reduction="none", zero_infinity=True)
    (slope,) = torch.autograd.grad(expected @ weights, scores)
    operation, backward = torch.ops.aten._ctc_loss, torch.ops.aten._ctc_loss_backward
    for targets, lengths in [(padded, (inputs, texts)), (joined, (inputs.tolist(), texts.tolist()))]:
        overload = "Tensor" if targets is padded else "default"
        given = (scores.detach(), targets, *lengths)
        losses, shares = REPLACEMENTS[getattr(operation, overload)](*given)
        gradient = REPLACEMENTS[getattr(backward, overload)](weights, *given, losses, shares, 0, True)
        torch.testing.assert_close(losses.masked_fill(losses == torch.inf, 0), expected.detach())
        torch.testing.assert_close(gradient, slope)


@pytest.mark.long
def test_an_alignment_of_hundreds_of_frames_has_a_few_nodes_for_each() -> None:
    frames = 120

    def loss(output: Tensor, target: Tensor) -> Tensor:
        lengths = torch.full((2,), frames), torch.full((2,), 3)
        return functional.ctc_loss(output, target, *lengths)

    torch.manual_seed(3)
    model, order = Sequence(6), torch.tensor([[0, 1]])
    dataset = torch.randn(2, frames, WIDTH), torch.tensor([[1, 1, 2], [3, 2, 4]])
    found = capture(model, loss, torch.optim.SGD(model.parameters(), 0.1), dataset, order, check=False)
    assert len(found.program.nodes) < 5 * frames


def test_an_alignment_of_too_many_frames_is_refused_with_its_line() -> None:
    frames = MOST_FRAMES + 1

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return functional.ctc_loss(output, target, torch.full((2,), frames), torch.full((2,), 3))

    model, order = Sequence(6), torch.tensor([[0, 1]])
    dataset = torch.randn(2, frames, WIDTH), torch.tensor([[1, 1, 2], [3, 2, 4]])
    with pytest.raises(UnsupportedError, match=f"functional.ctc_loss.* -- ctc_loss of {frames} frames: .*: crop"):
        capture(model, loss, torch.optim.SGD(model.parameters(), 0.1), dataset, order)


def test_distances_of_equal_rows_have_no_gradient() -> None:
    torch.manual_seed(9)
    model = Pair()
    rows = torch.randn(ROWS, WIDTH)
    require_own_loop(model, spread(2.0), [rows, rows.clone(), numbers()])


def test_places_that_rounding_may_move_out_of_range() -> None:
    """A categorical projection (C51): noise of the self-check leads to atoms that don't exist."""
    atoms = torch.linspace(-2, 2, 5)

    def projected(scores: Tensor, rewards: Tensor) -> Tensor:
        places = (rewards[:, None] + 0.9 * atoms).clamp(-2, 2) + 2
        low, high = places.floor().long(), places.ceil().long()
        low = torch.where((high > 0) & (low == high), low - 1, low)
        high = torch.where((low < 4) & (low == high), high + 1, high)
        share = torch.full_like(places, 0.2)
        mass = torch.zeros_like(share)
        mass.scatter_add_(1, low, share * (high.float() - places))
        mass.scatter_add_(1, high, share * (places - low.float()))
        return -(mass * scores.log_softmax(-1)).sum(-1).mean()

    torch.manual_seed(1)
    require_own_loop(nn.Linear(4, 5), projected, [torch.randn(ROWS, 4), torch.randn(ROWS)])
