"""`ctc_loss`: the sum over all alignments of a text with a sequence, as a recursion in log space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from pol.graph.capture.replacements.pullback import pulled_back
from pol.graph.capture.replacements.table import replaces

NONE = -1e30
"""The logarithm that stands for an impossible alignment: finite, so that differences exist."""

Lengths: TypeAlias = "Tensor | Sequence[int]"


def _log_likelihood_loss(scores: Tensor, targets: Tensor, inputs: Lengths, texts: Lengths, blank: int = 0) -> Tensor:
    """Minus the log-likelihood of each example; `scores` are (time, examples, classes).

    `targets` are padded rows, or all texts one behind the other; lengths may be data.
    """
    time, examples, _ = scores.shape
    labels, counts = _labels(targets, texts, examples)
    # A blank before and behind every label.
    states = 2 * labels.shape[1] + 1
    place = torch.arange(states, device=scores.device)
    own = labels.gather(1, (place // 2).clamp(max=max(labels.shape[1] - 1, 0)).expand(examples, states))
    own = torch.where(place % 2 == 0, blank, own)
    emitted = scores.gather(2, own.expand(time, examples, states))
    before = functional.pad(own[:, :-2], (2, 0), value=blank)
    skips = (own != blank) & (own != before) & (place >= 2)  # two states back
    lengths = inputs if isinstance(inputs, Tensor) else torch.tensor(list(inputs), device=scores.device)
    alpha = torch.where(place < 2, emitted[0], NONE)  # a blank, or the first label
    for step in range(1, time):
        stay = alpha
        one = functional.pad(alpha[:, :-1], (1, 0), value=NONE)
        two = torch.where(skips, functional.pad(alpha[:, :-2], (2, 0), value=NONE), NONE)
        moved = _log_sum(stay, one, two) + emitted[step]
        alpha = torch.where((lengths > step).unsqueeze(1), moved, alpha)
    last = 2 * counts.unsqueeze(1)
    end, label = alpha.gather(1, last), alpha.gather(1, (last - 1).clamp(min=0))
    found = _log_sum(end, torch.where(last > 0, label, NONE)).squeeze(1)
    return torch.where(found < NONE / 2, torch.inf, -found)


@replaces("_ctc_loss.default", "_ctc_loss.Tensor")
def _ctc(
    scores: Tensor, targets: Tensor, inputs: Lengths, texts: Lengths, blank: int = 0, zero_infinity: bool = False
) -> tuple[Tensor, Tensor]:
    loss = _log_likelihood_loss(scores, targets, inputs, texts, blank)
    return loss, loss  # the second one is torch's table of the recursion, which `_ctc_backward` doesn't read


@replaces("_ctc_loss_backward.default", "_ctc_loss_backward.Tensor")
def _ctc_backward(
    gradient: Tensor,
    scores: Tensor,
    targets: Tensor,
    inputs: Lengths,
    texts: Lengths,
    loss: Tensor,
    _alpha: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    """As torch's: the scores count as logarithms of a softmax, so that exp(score) is part of the gradient."""
    time, examples, _ = scores.shape
    (slope,) = pulled_back(
        lambda given: _log_likelihood_loss(given, targets, inputs, texts, blank), torch.ones_like(loss), scores
    )
    lengths = inputs if isinstance(inputs, Tensor) else torch.tensor(list(inputs), device=scores.device)
    is_used = (torch.arange(time, device=scores.device).unsqueeze(1) < lengths).unsqueeze(2)
    result = torch.where(is_used, (scores.exp() + slope) * gradient.reshape(1, examples, 1), 0.0)
    if zero_infinity:
        result = torch.where((loss == torch.inf).reshape(1, examples, 1), 0.0, result)
    return result


def _labels(targets: Tensor, texts: Lengths, examples: int) -> tuple[Tensor, Tensor]:
    """Labels as (examples, longest text), and how many of them count."""
    counts = texts if isinstance(texts, Tensor) else torch.tensor(list(texts), device=targets.device)
    counts = counts.to(torch.int64)
    if targets.dim() > 1:
        return targets.to(torch.int64), counts
    longest = targets.shape[0] if isinstance(texts, Tensor) else max(texts, default=0)
    starts = counts.cumsum(0) - counts
    place = starts.unsqueeze(1) + torch.arange(longest, device=targets.device)
    place = place.clamp(0, max(targets.shape[0] - 1, 0)).reshape(-1)
    return targets.to(torch.int64).index_select(0, place).reshape(examples, longest), counts


def _log_sum(*terms: Tensor) -> Tensor:
    """log(sum(exp(term)))."""
    greatest = terms[0].detach()
    for term in terms[1:]:
        greatest = torch.maximum(greatest, term.detach())
    total = sum((term - greatest).exp() for term in terms)
    if not isinstance(total, Tensor):
        raise AssertionError("a sum has terms")
    return total.log() + greatest
