"""Pooling, padding, resampling and patches as people use them, forward and backward."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from own_loop import ROWS, Around, labels, require_own_loop
from torch import Tensor, nn
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError

Function = Callable[[Tensor], Tensor]
WEIGHTS = torch.tensor([0.1, 0.5, 0.9, 0.3])
SHAPES = {1: (2, 9), 2: (2, 9, 8), 3: (2, 5, 6, 4)}
CONVOLUTIONS: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


def resized(**options: Any) -> Function:
    return lambda x: functional.interpolate(x, **options)


def padded(mode: str, *widths: int) -> Function:
    return lambda x: functional.pad(x, widths, mode=mode)


def sampled(**options: Any) -> Function:
    """At positions that depend on the words, inside and outside of the image."""

    def function(x: Tensor) -> Tensor:
        rank = x.dim() - 2
        places = x.flatten(2)[:, :rank, :6].transpose(1, 2) * 1.5
        return functional.grid_sample(x, places.reshape(len(x), *[1] * (rank - 1), -1, rank), **options)

    return function


def transformed(x: Tensor) -> Tensor:
    """A spatial transformer that begins with the identity."""
    turn = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) + 0.1 * x.mean((1, 2, 3)).reshape(-1, 1, 1)
    grid = functional.affine_grid(turn, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False)


def put_back(x: Tensor) -> Tensor:
    return functional.fold(functional.unfold(x, 3, stride=2, padding=1), (9, 8), 3, stride=2, padding=1)


def unpooled(x: Tensor) -> Tensor:
    greatest, places = functional.max_pool2d(x, 2, return_indices=True)
    return functional.max_unpool2d(greatest * greatest, places, 2, output_size=x.shape[2:])


FUNCTIONS: dict[str, tuple[int, Function]] = {
    "adaptive maximum": (2, lambda x: functional.adaptive_max_pool2d(x, (4, 3))),
    "adaptive maximum of all": (2, lambda x: functional.adaptive_max_pool2d(x, 1)),
    "adaptive maximum 1d": (1, lambda x: functional.adaptive_max_pool1d(x, 4)),
    "adaptive maximum 3d": (3, lambda x: functional.adaptive_max_pool3d(x, (2, 4, 3))),
    "unpooled": (2, unpooled),
    "norm pooling": (2, lambda x: functional.lp_pool2d(x.abs() + 0.1, 2, 3, 2)),
    "bicubic": (2, resized(scale_factor=2, mode="bicubic")),
    "bicubic with corners": (2, resized(size=(5, 11), mode="bicubic", align_corners=True)),
    "bilinear without aliases": (2, resized(size=(4, 3), mode="bilinear", antialias=True)),
    "bicubic without aliases": (2, resized(size=(4, 5), mode="bicubic", antialias=True)),
    "area": (2, resized(size=(4, 3), mode="area")),
    "sampled": (2, sampled(align_corners=False)),
    "sampled with corners": (2, sampled(align_corners=True)),
    "sampled to the border": (2, sampled(align_corners=False, padding_mode="border")),
    "sampled to the border with corners": (2, sampled(align_corners=True, padding_mode="border")),
    "sampled with reflection": (2, sampled(align_corners=False, padding_mode="reflection")),
    "sampled with reflection and corners": (2, sampled(align_corners=True, padding_mode="reflection")),
    "sampled nearest": (2, sampled(align_corners=False, mode="nearest")),
    "sampled bicubic": (2, sampled(align_corners=False, mode="bicubic")),
    "sampled 3d": (3, sampled(align_corners=False)),
    "transformed": (2, transformed),
    "replicated 1d": (1, padded("replicate", 2, 3)),
    "replicated 2d": (2, padded("replicate", 1, 2, 3, 0)),
    "replicated 3d": (3, padded("replicate", 1, 2, 0, 1, 2, 1)),
    "circular 1d": (1, padded("circular", 2, 3)),
    "circular 2d": (2, padded("circular", 1, 2, 3, 0)),
    "circular 3d": (3, padded("circular", 1, 2, 0, 1, 2, 1)),
    "reflected 3d": (3, padded("reflect", 1, 2, 0, 1, 2, 1)),
    "patches": (2, lambda x: functional.unfold(x, 3, stride=2)),
    "patches with gaps": (2, lambda x: functional.unfold(x, (2, 3), dilation=(2, 1), padding=1)),
    "patches put back": (2, put_back),
    "patches with gaps put back": (
        2, lambda x: functional.fold(functional.unfold(x, 2, dilation=2), (9, 8), 2, dilation=2)
    ),
    "frames": (1, lambda x: x.unfold(-1, 4, 2) * WEIGHTS),
    "frames in place of channels": (2, lambda x: x.unfold(2, 3, 3)),
    "shuffled pixels": (2, lambda x: functional.pixel_unshuffle(functional.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), 2)),
    "shuffled channels": (2, lambda x: functional.channel_shuffle(x.repeat(1, 2, 1, 1), 2) * x[:, :1]),
    "maximum 3d": (3, lambda x: functional.max_pool3d(x, 3, 2, 1)),
    "maximum with gaps": (2, lambda x: functional.max_pool2d(x, 2, 1, dilation=2)),
    "maximum beyond the end": (2, lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True)),
    "average 3d": (3, lambda x: functional.avg_pool3d(x, 2)),
    "average 3d with overlap": (3, lambda x: functional.avg_pool3d(x, 3, 2, 1)),
    "average with a divisor": (2, lambda x: functional.avg_pool2d(x, 3, 2, ceil_mode=True, divisor_override=5)),
    "local response": (2, lambda x: functional.local_response_norm(x, 2)),
    "transposed": (2, nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1)),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    chosen_rows.named(
        FUNCTIONS,
        *("adaptive maximum 1d", "unpooled", "bicubic", "area", "sampled", "replicated 3d", "circular 1d"),
        others=pytest.mark.slow,
    ),
)
def test_windows_train_like_their_own_loop(name: str) -> None:
    torch.manual_seed(6)
    rank, function = FUNCTIONS[name]
    first = CONVOLUTIONS[rank](SHAPES[rank][0], 4, 3, padding=1)
    model = Around(first, function, *SHAPES[rank])
    require_own_loop(model, functional.cross_entropy, [torch.randn(ROWS, *SHAPES[rank]), labels()])


def test_fractional_pooling_is_refused_with_a_way_out() -> None:
    model = Around(nn.Conv2d(2, 4, 3, padding=1), nn.FractionalMaxPool2d(2, output_size=3), *SHAPES[2])
    with pytest.raises(UnsupportedError, match=r"fractional_max_pool2d.*max_pool2d"):
        require_own_loop(model, functional.cross_entropy, [torch.randn(ROWS, *SHAPES[2]), labels()])


class Block(nn.Module):
    """The block of ConvNeXt: channels last between two permutations."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        own = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.narrow(functional.gelu(self.wide(own))).permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 8, 2, stride=2), Block(8), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3),
        nn.GroupNorm(2, 8),
        nn.AvgPool2d(2, ceil_mode=True), nn.Upsample(scale_factor=2), nn.Flatten(), nn.LazyLinear(3),
    )  # fmt: skip


LAYOUTS: dict[str, Callable[[], nn.Module]] = {
    "convnext": convnext,
    "network": network,
    "permuted": lambda: nn.Sequential(Permuted((0, 2, 3, 1)), Permuted((0, 3, 1, 2)), network()),
}


class Permuted(nn.Module):
    """Other strides, the same numbers."""

    def __init__(self, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(self.axes)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("is_last", [False, True])
def test_channels_may_be_last_in_memory(name: str, is_last: bool) -> None:
    torch.manual_seed(7)
    model = LAYOUTS[name]()
    images = torch.randn(ROWS, 2, 9, 8)
    model(images)
    if is_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    require_own_loop(model, functional.cross_entropy, [images, labels()])
