"""Models that compute with distributions, small matrices, transforms and complex numbers, as people write them."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, distributions, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

import chosen_rows
from step_comparison import INPUTS, LABELS, compared_step

SERIES = torch.randn(24, 16, 4, generator=torch.Generator().manual_seed(2))
IMAGES = torch.randn(24, 1, 8, 8, generator=torch.Generator().manual_seed(3))
Loss = Callable[[Any, Tensor], Tensor]
Made = tuple[nn.Module, Loss, tuple[Tensor, Tensor]]


class Computed(nn.Module):
    """Parameters and layers by name, and a function of them and of the inputs."""

    def __init__(self, parts: Mapping[str, Any], function: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, Tensor) else part)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def state_space() -> Made:
    """A diagonal state space model (S4D), convolved by transforms."""

    def forward(m: Any, x: Tensor) -> Tensor:
        u, step = x.transpose(1, 2), torch.exp(m.log_step)
        a = -torch.exp(m.log_real) + 1j * m.imag
        turn = a * step.unsqueeze(-1)
        c = torch.view_as_complex(m.c) * (torch.exp(turn) - 1.0) / a
        kernel = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(turn.unsqueeze(-1) * torch.arange(16))).real
        spectrum = torch.fft.rfft(u, n=32) * torch.fft.rfft(kernel, n=32)
        y = torch.fft.irfft(spectrum, n=32)[..., :16] + u * m.skip.unsqueeze(-1)
        return m.out(functional.gelu(y).mean(-1))  # type: ignore[no-any-return]  # torch: Any

    parts = {
        "log_step": torch.rand(4) * 2 - 3,
        "log_real": torch.log(0.5 * torch.ones(4, 4)),
        "imag": math.pi * torch.arange(4.0).repeat(4, 1),
        "c": torch.randn(4, 4, 2),
        "skip": torch.randn(4),
        "out": nn.Linear(4, 3),
    }
    return Computed(parts, forward), functional.cross_entropy, (SERIES, LABELS)


def angular_margin() -> Made:
    """ArcFace: a margin is added to angles."""

    def loss(cosine: Tensor, target: Tensor) -> Tensor:
        angle = torch.acos(cosine.clamp(-1 + 1e-7, 1 - 1e-7))
        own = functional.one_hot(target, 3).bool()
        return functional.cross_entropy(16 * torch.where(own, torch.cos(angle + 0.5), cosine), target)

    model = Computed(
        {"layer": nn.Linear(5, 4), "weight": torch.randn(3, 4)},
        lambda m, x: functional.linear(functional.normalize(m.layer(x)), functional.normalize(m.weight)),
    )
    return model, loss, (INPUTS, LABELS)


def policy_gradient() -> Made:
    def loss(logits: Tensor, target: Tensor) -> Tensor:
        policy = distributions.Categorical(logits=logits)
        action = policy.sample()
        reward = (action == target).float()
        return -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * policy.entropy().mean()

    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), loss, (INPUTS, LABELS)


def variational() -> Made:
    """An autoencoder with a prior, its sample and its divergence by torch.distributions."""

    def forward(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, logarithm = m.encoder(x).chunk(2, -1)
        found = distributions.Normal(mean, torch.exp(0.5 * logarithm))
        prior = distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        error = functional.mse_loss(m.decoder(found.rsample()), x)
        return error, distributions.kl_divergence(found, prior).sum(-1).mean()

    model = Computed({"encoder": nn.Linear(5, 8), "decoder": nn.Linear(4, 5)}, forward)
    return model, lambda output, _: output[0] + output[1], (INPUTS, LABELS)


def mixture_density() -> Made:
    def loss(parts: Tensor, target: Tensor) -> Tensor:
        weights, means, widths = parts.chunk(3, -1)
        normals = distributions.Normal(means, functional.softplus(widths) + 1e-3)
        mixture = distributions.MixtureSameFamily(distributions.Categorical(logits=weights), normals)
        return -mixture.log_prob(target.float()).mean()

    return nn.Linear(5, 9), loss, (INPUTS, LABELS)


def heavy_tails() -> Made:
    def loss(parts: Tensor, target: Tensor) -> Tensor:
        degrees, place, scale = parts.unbind(-1)
        found = distributions.StudentT(2 + functional.softplus(degrees), place, functional.softplus(scale))
        return -found.log_prob(target.float()).mean()

    return nn.Linear(5, 3), loss, (INPUTS, LABELS)


def gaussian_process() -> Made:
    """The marginal likelihood of a deep kernel."""

    def kernel(m: Any, x: Tensor) -> Tensor:
        z = m.layer(x)
        return torch.exp(-0.5 * torch.cdist(z, z).pow(2)) + functional.softplus(m.noise) * torch.eye(len(z))

    def loss(matrix: Tensor, target: Tensor) -> Tensor:
        factor, y = torch.linalg.cholesky(matrix), target.float()[:, None]
        return 0.5 * (y * torch.cholesky_solve(y, factor)).sum() + factor.diagonal().log().sum()

    return Computed({"layer": nn.Linear(5, 2), "noise": torch.tensor(0.5)}, kernel), loss, (INPUTS, LABELS)


def kalman_filter() -> Made:
    def likelihood(m: Any, y: Tensor) -> Tensor:
        mean, cov = torch.zeros(len(y), 2), torch.eye(2).expand(len(y), 2, 2)
        total = torch.zeros(len(y))
        for step in range(2):
            mean, cov = mean @ m.a.T, m.a @ cov @ m.a.T + torch.diag(m.q.exp())
            spread = m.c @ cov @ m.c.T + torch.diag(m.r.exp())
            gain = torch.linalg.solve(spread, m.c @ cov).mT
            error = (y[:, step] - mean @ m.c.T)[..., None]
            total = total + (error.mT @ torch.linalg.inv(spread) @ error).squeeze() + torch.logdet(spread)
            mean, cov = mean + (gain @ error).squeeze(-1), cov - gain @ m.c @ cov
        return total

    parts = {"a": 0.9 * torch.eye(2), "c": torch.randn(4, 2), "q": torch.zeros(2), "r": torch.zeros(4)}
    return Computed(parts, likelihood), lambda total, _: total.mean(), (SERIES, LABELS)


def whitened() -> Made:
    def forward(m: Any, x: Tensor) -> Tensor:
        z = m.layer(x)
        z = z - z.mean(0)
        factor = torch.linalg.cholesky(z.T @ z / (len(z) - 1) + 1e-2 * torch.eye(4))
        return m.out(torch.linalg.solve_triangular(factor, z.T, upper=False).T)  # type: ignore[no-any-return]  # torch: Any

    model = Computed({"layer": nn.Linear(5, 4), "out": nn.Linear(4, 3)}, forward)
    return model, functional.cross_entropy, (INPUTS, LABELS)


def transport() -> Made:
    """Sinkhorn's iteration in logarithms."""

    def forward(m: Any, x: Tensor) -> Tensor:
        cost = torch.cdist(m.first(x), m.second(x)) ** 2
        u, v, share = torch.zeros(len(x)), torch.zeros(len(x)), -math.log(len(x))
        for _ in range(3):
            u = 0.5 * (share - torch.logsumexp((v[None] - cost) / 0.5, 1))
            v = 0.5 * (share - torch.logsumexp((u[:, None] - cost) / 0.5, 0))
        return (torch.exp((u[:, None] + v[None] - cost) / 0.5) * cost).sum()

    model = Computed({"first": nn.Linear(5, 4), "second": nn.Linear(5, 4)}, forward)
    return model, lambda cost, _: cost, (INPUTS, LABELS)


def spectral_mixer() -> Made:
    """An adaptive Fourier operator over image patches, in blocks."""

    def forward(m: Any, x: Tensor) -> Tensor:
        x = m.patches(x).permute(0, 2, 3, 1)
        batch, height, width, channels = x.shape
        z = torch.fft.rfft2(x, dim=(1, 2), norm="ortho").reshape(batch, height, width // 2 + 1, 2, channels // 2)
        w, b = m.weight, m.bias
        real = torch.einsum("...bi,bio->...bo", z.real, w[0]) - torch.einsum("...bi,bio->...bo", z.imag, w[1])
        imag = torch.einsum("...bi,bio->...bo", z.imag, w[0]) + torch.einsum("...bi,bio->...bo", z.real, w[1])
        y = functional.softshrink(torch.stack([functional.relu(real + b[0]), functional.relu(imag + b[1])], -1), 0.01)
        y = torch.view_as_complex(y).reshape(batch, height, width // 2 + 1, channels)
        mixed = torch.fft.irfft2(y, s=(height, width), dim=(1, 2), norm="ortho")
        return m.out((mixed + x).mean((1, 2)))  # type: ignore[no-any-return]  # torch: Any

    parts = {
        "patches": nn.Conv2d(1, 4, 2, 2),
        "weight": 0.3 * torch.randn(2, 2, 2, 2),
        "bias": 0.1 * torch.randn(2, 2, 2),
        "out": nn.Linear(4, 3),
    }
    return Computed(parts, forward), functional.cross_entropy, (IMAGES, LABELS)


def spectrogram() -> Made:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        z = torch.stft(output.squeeze(1), 8, 2, 8, torch.hann_window(8), return_complex=True)
        size = torch.sqrt(torch.clamp(z.real**2 + z.imag**2, min=1e-7))
        return size.log().abs().mean() + torch.norm(size, p="fro")

    return nn.Conv1d(4, 1, 5, padding=2), loss, (SERIES.transpose(1, 2).contiguous(), LABELS)


def discriminator() -> Made:
    norm = parametrizations.spectral_norm
    layers = [norm(nn.Conv2d(1, 4, 3, 2, 1)), nn.LeakyReLU(0.1), norm(nn.Conv2d(4, 8, 3, 2, 1)), nn.LeakyReLU(0.1)]
    model = nn.Sequential(*layers, nn.Flatten(), norm(nn.Linear(32, 1)))
    return model, lambda o, t: functional.relu(1 - o.squeeze() * (t.float() - 1)).mean(), (IMAGES, LABELS)


def orthogonal_recurrence() -> Made:
    def forward(m: Any, x: Tensor) -> Tensor:
        hidden = torch.zeros(len(x), 6)
        for step in range(4):
            hidden = torch.tanh(m.inner(x[:, step]) + m.hidden(hidden))
        return m.out(hidden)  # type: ignore[no-any-return]  # torch: Any

    hidden = parametrizations.orthogonal(nn.Linear(6, 6, bias=False))
    parts = {"inner": nn.Linear(4, 6), "hidden": hidden, "out": nn.Linear(6, 3)}
    return Computed(parts, forward), functional.cross_entropy, (SERIES, LABELS)


MODELS = (
    *(state_space, angular_margin, policy_gradient, variational, mixture_density, heavy_tails, gaussian_process),
    *(kalman_filter, whitened, transport, spectral_mixer, spectrogram, discriminator, orthogonal_recurrence),
)


@pytest.mark.parametrize(
    "make",
    chosen_rows.named(
        MODELS,
        *("angular_margin", "policy_gradient", "mixture_density", "transport", "spectrogram"),
        others=pytest.mark.slow,
    ),
)
def test_a_step_of_the_model_is_that_of_torch(make: Callable[[], Made]) -> None:
    torch.manual_seed(2)
    compared_step(*make())
