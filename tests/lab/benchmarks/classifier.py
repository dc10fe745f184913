"""A small image classifier on the embedded digits, trained by the loop that everybody writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from pol.arithmetic.primitives import Words
from pol.demo import digits
from pol.graph.capture import Capture, capture, to_words

SIDE = 8


@dataclass(frozen=True)
class Size:
    """Digits are enlarged ``scale`` times; ``channels`` of the three convolutions; images per step; learning rate.

    With ``normalised``, "batch" or "group", numbers are normalised after each convolution, which then has no bias.
    ``attention``, "plain" or "biased" (on the keys), takes the place of the convolutions.
    """

    scale: int
    channels: tuple[int, int, int]
    batch: int
    activation: str
    rate: float
    normalised: str = ""
    attention: str = ""

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in the data set."""
        return digits.SAMPLES // self.batch


ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}
"""One with a kink, one without: where a number is zero but for rounding, honest executions take different branches."""

MEDIUM = Size(scale=2, channels=(16, 16, 16), batch=16, activation="gelu", rate=0.05)
"""7,370 parameters on images of 16 x 16: the litepaper's experiment, most of a second an epoch on one core."""
_SMALL = Size(scale=1, channels=(8, 16, 16), batch=16, activation="gelu", rate=0.1)
SMALL: Mapping[str, Size] = {
    "relu": replace(_SMALL, activation="relu"),
    "gelu": _SMALL,
    "batchnorm": replace(_SMALL, activation="relu", normalised="batch"),
    "groupnorm": replace(_SMALL, activation="relu", normalised="group"),
    "attention": replace(_SMALL, attention="plain"),
    "keybias": replace(_SMALL, attention="biased"),
}
"""On images of 8 x 8, for thousands of intervals."""

ROW = 16
"""Features of a row in the network with attention."""
OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = {
    "sgd": lambda parameters, rate, **options: SGD(parameters, rate, momentum=0.9, weight_decay=2e-3, **options),
    "adamw": lambda parameters, rate, **options: AdamW(parameters, rate / 50, **options),
    "still": lambda parameters, rate, **options: SGD(parameters, rate, momentum=0.9, **options),
}
"""Weights decay, so that a training that fits all of its data still moves; those of "still" don't, and it stops
(docs/litepaper.md, "False rejects")."""


def dataset(size: Size) -> tuple[Tensor, Tensor]:
    """Images (1797, 1, side, side) and labels."""
    images, labels = digits.dataset()
    square = images.reshape(-1, 1, SIDE, SIDE)
    return square.repeat_interleave(size.scale, 2).repeat_interleave(size.scale, 3).contiguous(), labels


def build_model(size: Size, seed: int) -> nn.Sequential:
    """Three convolutions with pooling and a linear map, initialized from ``seed``."""
    first, second, third = size.channels
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if size.attention:
            return nn.Sequential(_Attention(size), nn.Linear(ROW, digits.CLASSES))
        return nn.Sequential(
            *_convolution(1, first, size),
            *_convolution(first, second, size),
            nn.AvgPool2d(2),
            *_convolution(second, third, size),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(third * (SIDE * size.scale // 4) ** 2, digits.CLASSES),
        )


def _convolution(inputs: int, outputs: int, size: Size) -> list[nn.Module]:
    # A bias in front of a normalisation is cancelled: its gradient is nothing but rounding.
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=not size.normalised)
    normalisations: Mapping[str, list[nn.Module]] = {
        "batch": [nn.BatchNorm2d(outputs)],
        "group": [nn.GroupNorm(outputs // 2, outputs)],
        "": [],
    }
    return [convolution, *normalisations[size.normalised], ACTIVATIONS[size.activation]()]


class _Attention(nn.Module):
    """The rows of an image attend to each other; the mean of what they take."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embed, self.query, self.value = nn.Linear(SIDE, ROW), nn.Linear(ROW, ROW), nn.Linear(ROW, ROW)
        self.key = nn.Linear(ROW, ROW, bias=size.attention == "biased")

    def forward(self, images: Tensor) -> Tensor:
        """Features (samples, ROW) of images (samples, 1, side, side)."""
        rows = self.embed(images.squeeze(1))
        scores = self.query(rows) @ self.key(rows).transpose(1, 2) / ROW**0.5
        taken: Tensor = (torch.softmax(scores, dim=2) @ self.value(rows)).mean(dim=1)
        return taken


class Training:
    """A model in training, a step at a time; ``options`` are the optimizer's, of those that change no definition."""

    def __init__(self, size: Size, seed: int, order: Tensor, optimizer: str = "sgd", **options: bool) -> None:
        self.model = build_model(size, seed)
        self.data = dataset(size)
        self.order = order
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters(), size.rate, **options)
        self.forward: Callable[[Tensor], Tensor] = self.model

    def captured(self) -> Capture:
        """The step as a program, from the state that the training is in."""
        return capture(self.model, digits.loss_function, self.optimizer, self.data, self.order)

    def step(self, number: int) -> None:
        """One step on the batch that the order gives it."""
        batch = self.order[number]
        self.optimizer.zero_grad()
        loss = digits.loss_function(self.forward(self.data[0][batch]), self.data[1][batch])
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        self.optimizer.step()

    def words(self, slots: Sequence[str]) -> list[Words]:
        """The state in the order of a task's slots, copied; there is one after the first step."""
        tensors = {**dict(self.model.named_buffers()), **dict(self.model.named_parameters())}
        found = []
        for slot in slots:
            name, _, key = slot.partition(":")
            tensor = self.optimizer.state[tensors[name]][key] if key else tensors[name].detach()
            found.append(to_words(slot, tensor))
        return found

    def accuracy(self) -> float:
        """Share of the data set that is classified correctly."""
        with torch.no_grad():
            return float((self.model(self.data[0]).argmax(dim=1) == self.data[1]).float().mean())
