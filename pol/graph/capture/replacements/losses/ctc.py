"""`ctc_loss`: the sum over all alignments of a text with a sequence, as a recursion in log space.

The recursion is unrolled, since a program has no loop. Forward and backward variables (alpha and beta of Graves et al.,
"Connectionist temporal classification", 2006) are one recursion over a batch of twice the size: beta is the alpha of
the reversed sequence and text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback
from torch.nn import functional

from pol.errors import UnsupportedError
from pol.graph.capture.replacements.table import replaces
from pol.graph.capture.tracing.provenance import SOURCE

NONE = -1e30
"""The logarithm that stands for an impossible alignment: finite, so that differences exist."""
MOST_FRAMES = 1000
"""Frames of a sequence: the capture of a program with so many takes minutes."""

Lengths: TypeAlias = "Tensor | Sequence[int]"


@replaces("_ctc_loss.default", "_ctc_loss.Tensor")
def _ctc(
    scores: Tensor, targets: Tensor, inputs: Lengths, texts: Lengths, blank: int = 0, zero_infinity: bool = False
) -> tuple[Tensor, Tensor]:
    """Minus the log-likelihood of each example, and the share of each class in each frame, which the gradient takes.

    `scores` are (time, examples, classes), `targets` padded rows, or all texts one behind the other; lengths may be
    data.
    """
    time, examples, _ = scores.shape
    if time > MOST_FRAMES:
        line = (fx_traceback.get_current_meta().get("custom") or {}).get(SOURCE, "the step")
        raise UnsupportedError(
            f"{line} -- ctc_loss of {time} frames: a program has no loop, so each frame adds operations, and "
            f"{MOST_FRAMES} frames are the most. Give the loss shorter sequences: crop the examples, or let the model "
            "join frames (stride, pooling) before the loss"
        )
    labels, counts = _labels(targets, texts, examples)
    # A blank before and behind every label.
    states = 2 * labels.shape[1] + 1
    place = torch.arange(states, device=scores.device)
    own = labels.gather(1, (place // 2).clamp(max=max(labels.shape[1] - 1, 0)).expand(examples, states))
    own = torch.where(place % 2 == 0, blank, own)
    emitted = scores.gather(2, own.expand(time, examples, states))
    lengths = _tensor(inputs, scores)
    last = 2 * counts.unsqueeze(1)
    places = (last - place).clamp(min=0)  # in the reversed text
    frames = (lengths - 1 - torch.arange(time, device=scores.device).unsqueeze(1)).clamp(min=0)
    frames = frames.unsqueeze(2).expand(time, examples, states)
    reversed_emitted = emitted.gather(2, places.expand(time, examples, states)).gather(0, frames)
    table = _forward(
        torch.cat([emitted, reversed_emitted], 1), torch.cat([own, own.gather(1, places)]), lengths.repeat(2), blank
    )
    alpha, beta = table[:, :examples], table[:, examples:]
    beta = beta.gather(0, frames).gather(2, places.expand(time, examples, states))
    final = table[-1, :examples]
    end, label = final.gather(1, last), final.gather(1, (last - 1).clamp(min=0))
    found = _log_sum(end, torch.where(last > 0, label, NONE)).squeeze(1)
    is_possible = found > NONE / 2
    # A frame's emission is in both variables.
    share = (alpha + beta - emitted - found.unsqueeze(1)).clamp(max=0.0).exp()
    share = torch.where(is_possible.unsqueeze(1) & (place <= last), share, 0.0)
    by_class = torch.zeros_like(scores).scatter_add(2, own.expand(time, examples, states), share)
    return torch.where(is_possible, -found, torch.inf), by_class


def _forward(emitted: Tensor, own: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """The logarithm of all alignments up to each frame that end in each state; behind its length it stays."""
    time, _, states = emitted.shape
    place = torch.arange(states, device=emitted.device)
    before = functional.pad(own[:, :-2], (2, 0), value=blank)
    skips = (own != blank) & (own != before) & (place >= 2)  # two states back
    goes_on = (lengths > torch.arange(time, device=emitted.device).unsqueeze(1)).unsqueeze(2)
    alpha = torch.where(place < 2, emitted[0], NONE)  # a blank, or the first label
    found = [alpha]
    for step in range(1, time):
        behind = functional.pad(alpha, (2, 0), value=NONE)
        two = torch.where(skips, behind[:, :states], NONE)
        moved = _log_sum(alpha, behind[:, 1 : states + 1], two) + emitted[step]
        alpha = torch.where(goes_on[step], moved, alpha)
        found.append(alpha)
    return torch.stack(found)


@replaces("_ctc_loss_backward.default", "_ctc_loss_backward.Tensor")
def _ctc_backward(
    gradient: Tensor,
    scores: Tensor,
    targets: Tensor,
    inputs: Lengths,
    texts: Lengths,
    loss: Tensor,
    shares: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    """As torch's: the scores count as logarithms of a softmax, so that exp(score) is part of the gradient."""
    time, examples, _ = scores.shape
    lengths = _tensor(inputs, scores)
    is_used = (torch.arange(time, device=scores.device).unsqueeze(1) < lengths).unsqueeze(2)
    result = torch.where(is_used, (scores.exp() - shares) * gradient.reshape(1, examples, 1), 0.0)
    if zero_infinity:
        result = torch.where((loss == torch.inf).reshape(1, examples, 1), 0.0, result)
    return result


def _labels(targets: Tensor, texts: Lengths, examples: int) -> tuple[Tensor, Tensor]:
    """Labels as (examples, longest text), and how many of them count."""
    counts = _tensor(texts, targets).to(torch.int64)
    if targets.dim() > 1:
        return targets.to(torch.int64), counts
    longest = targets.shape[0] if isinstance(texts, Tensor) else max(texts, default=0)
    starts = counts.cumsum(0) - counts
    place = starts.unsqueeze(1) + torch.arange(longest, device=targets.device)
    place = place.clamp(0, max(targets.shape[0] - 1, 0)).reshape(-1)
    return targets.to(torch.int64).index_select(0, place).reshape(examples, longest), counts


def _tensor(lengths: Lengths, other: Tensor) -> Tensor:
    return lengths if isinstance(lengths, Tensor) else torch.tensor(list(lengths), device=other.device)


def _log_sum(*terms: Tensor) -> Tensor:
    """log(sum(exp(term)))."""
    greatest = terms[0]
    for term in terms[1:]:
        greatest = torch.maximum(greatest, term)
    total = sum((term - greatest).exp() for term in terms)
    if not isinstance(total, Tensor):
        raise AssertionError("a sum has terms")
    return total.log() + greatest
