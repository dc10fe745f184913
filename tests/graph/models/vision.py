"""Small vision models as people write them."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class CNN(nn.Module):
    """Convolutions, batch norm, both kinds of pooling."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.head = nn.Linear(2 * width * 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).flatten(1))


def _twice(channels: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, outputs, 3, padding=1),
        nn.GroupNorm(2, outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Down, across and up again: by a transposed convolution once, by interpolation once; joined with cat."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.down_1, self.down_2 = _twice(1, width), _twice(width, 2 * width)
        self.middle = _twice(2 * width, 4 * width)
        self.up_2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.across_2 = _twice(4 * width, 2 * width)
        self.up_1 = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(2 * width, width, 1)
        )
        self.across_1 = _twice(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down_1(x)
        second = self.down_2(functional.max_pool2d(first, 2))
        deep = self.middle(functional.max_pool2d(second, 2))
        y = self.across_2(torch.cat([self.up_2(deep), second], 1))
        y = self.across_1(torch.cat([self.up_1(y), first], 1))
        return self.out(y)


class Autoencoder(nn.Module):
    """Strided convolutions down, transposed ones up, depthwise and dilated ones between; borders mirrored."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=2, dilation=2, groups=width),
            nn.Conv2d(width, 2 * width, 1),
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 2, 1, padding_mode="reflect"),
        )
        self.decoder = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1),
            nn.PixelShuffle(2),
            nn.ConvTranspose2d(width, 1, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


class Waves(nn.Module):
    """One dimension: convolutions and pooling over sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(2, 4, 5, padding="same"), nn.BatchNorm1d(4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(4, 6, 3, 2)
        )
        self.head = nn.Linear(18, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(functional.adaptive_avg_pool1d(self.features(x), 3).flatten(1))
