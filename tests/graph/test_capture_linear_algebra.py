"""Complex numbers in a step, and linear algebra.

Rotary embeddings, Fourier transforms, spectral layers; factorizations and solutions of small matrices, and the
parametrizations of torch.nn.utils.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

import chosen_rows
from pol.errors import UnsupportedError
from step_comparison import INPUTS, LABELS, Behind, behind_all, compared_step

torch.manual_seed(3)
Function = Callable[[Tensor], Tensor]
TURNS = torch.polar(torch.ones(6, 4), torch.randn(6, 4))


def pairs(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.view(6, 4, 2))


def frames(x: Tensor, **options: Any) -> Tensor:
    options = {"window": torch.hann_window(8), **options}
    return torch.stft(x.view(2, 24), 8, hop_length=2, return_complex=True, **options)


COMPLEX_FUNCTIONS: dict[str, Function] = {
    "product": lambda x: torch.view_as_real(pairs(x) * TURNS),
    "sums and parts": lambda x: (pairs(x) + 2 - 1j * pairs(x).conj()).real + (0.5 * pairs(x)).imag,
    "polar": lambda x: torch.view_as_real(torch.polar(x[:, :4].abs(), x[:, 4:])),
    "abs and angle": lambda x: pairs(x).abs() + pairs(x).angle(),
    "quotient": lambda x: torch.view_as_real(pairs(x) / (pairs(x).flip(0) + 3)),
    "exponential": lambda x: torch.view_as_real(torch.exp(pairs(x))) + torch.exp(1j * x).real.view(6, 4, 2),
    "complex": lambda x: (torch.complex(x, x.flip(1)) ** 2).abs(),
    "matrix products": lambda x: (pairs(x) @ pairs(x).mH).abs() + (TURNS.conj() @ pairs(x).T).real,
    "einsum": lambda x: torch.einsum("bi,bi->b", pairs(x), TURNS).abs(),
    "in place": lambda x: (pairs(x).clone().mul_(TURNS).add_(1j)).real,
    "joins": lambda x: torch.view_as_real(torch.cat([pairs(x)[:, 1:], pairs(x)[:, :1]], 1).roll(1, 0)),
    "where": lambda x: torch.where(x[:, :4] > 0, pairs(x), 1j * pairs(x)).real,
    "rfft": lambda x: torch.fft.rfft(x).abs(),
    "rfft of odd length": lambda x: torch.fft.rfft(x, n=7, norm="ortho").real,
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.view_as_complex(torch.ones(5, 2))),
    "irfft of odd length": lambda x: torch.fft.irfft(pairs(x), n=7),
    "fft": lambda x: torch.fft.fft(x).real,
    "fft and back": lambda x: torch.fft.ifft(torch.fft.fft(pairs(x), dim=0, norm="forward")).imag,
    "fft2": lambda x: torch.fft.fft2(x).real,
    "rfft2": lambda x: torch.fft.irfft2(torch.fft.rfft2(x) * 0.5, s=(6, 8)),
    "fftn": lambda x: torch.fft.ifftn(torch.fft.fftn(x.view(2, 3, 8))).abs(),
    "shifted": lambda x: torch.fft.fftshift(torch.fft.fft(x)).abs(),
    "stft": lambda x: torch.stft(
        x.view(2, 24), 8, hop_length=4, window=torch.hann_window(8), return_complex=True
    ).abs(),
    "istft": lambda x: torch.istft(
        frames(x) * frames(x).abs(), 8, hop_length=2, window=torch.hann_window(8), length=24
    ),
    "istft of short windows": lambda x: torch.istft(
        frames(x, win_length=6, window=torch.hamming_window(6), normalized=True),
        8,
        win_length=6,
        window=torch.hamming_window(6),
        normalized=True,
    ),
    "convolution": lambda x: torch.fft.irfft(torch.fft.rfft(x, 16) * torch.fft.rfft(torch.ones(3), 16), 16),
    "derivative": lambda x: torch.fft.irfft(torch.fft.rfft(x) * (1j * torch.fft.rfftfreq(8)), n=8),
    "roots and powers": lambda x: pairs(x).sqrt().real + (pairs(x) ** -2).imag + (pairs(x) ** 0.5).real,
    "norm": lambda x: torch.linalg.vector_norm(pairs(x), dim=1),
    "hfft": lambda x: torch.fft.hfft(pairs(x)) + torch.fft.ihfft(x).abs().sum(),
}


@pytest.mark.parametrize("names", chosen_rows.together(COMPLEX_FUNCTIONS, 10, alone=pytest.mark.slow))
def test_a_step_with_complex_numbers_is_that_of_torch(names: list[str]) -> None:
    torch.manual_seed(2)
    compared_step(behind_all(COMPLEX_FUNCTIONS[name] for name in names))


@pytest.mark.parametrize("length", chosen_rows.first([1, 2, 37, 64, 90, 128, 130], 3, others=pytest.mark.slow))
def test_transforms_of_all_lengths(length: int) -> None:
    torch.manual_seed(2)
    compared_step(Behind(lambda x: torch.fft.fft(x).abs() + torch.fft.irfft(torch.fft.rfft(x) * 2j, n=length), length))


class Rotary(nn.Module):
    """Attention with rotary embeddings as in the first Llama's code."""

    freqs_cis: Tensor

    def __init__(self, as_buffer: bool) -> None:
        super().__init__()
        self.embedding, self.qkv, self.out = nn.Embedding(11, 8), nn.Linear(8, 24), nn.Linear(8, 11)
        freqs = 1.0 / (10000.0 ** (torch.arange(0, 4, 2)[:2].float() / 4))
        table = torch.outer(torch.arange(16), freqs).float()
        freqs_cis = torch.polar(torch.ones_like(table), table)
        if as_buffer:
            self.register_buffer("freqs_cis", freqs_cis, persistent=False)
        else:
            self.freqs_cis = freqs_cis

    def turned(self, x: Tensor, freqs_cis: Tensor) -> Tensor:
        x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        shape = [d if i in {1, x_.ndim - 1} else 1 for i, d in enumerate(x_.shape)]
        return torch.view_as_real(x_ * freqs_cis.view(*shape)).flatten(3).type_as(x)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        q, k, v = (part.view(*part.shape[:-1], 2, 4) for part in self.qkv(x).chunk(3, -1))
        freqs_cis = self.freqs_cis[: tokens.shape[1]]
        q, k = self.turned(q, freqs_cis), self.turned(k, freqs_cis)
        scores = q.transpose(1, 2) @ k.transpose(1, 2).transpose(2, 3) / math.sqrt(4)
        y = (scores.softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).flatten(2)
        return self.out(y)  # type: ignore[no-any-return]  # torch: Any


TOKENS = torch.randint(0, 11, (24, 6), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("as_buffer", [True, False])
def test_rotary_embeddings_of_complex_numbers(as_buffer: bool) -> None:
    torch.manual_seed(2)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())

    found = compared_step(Rotary(as_buffer), loss, (TOKENS, TOKENS.roll(1, 1)))
    assert "constant.0" in found.names.constants


class FNet(nn.Module):
    """Mixing by a transform in two dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm, self.out = nn.Embedding(11, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        x = self.norm(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
        return self.out(x.mean(1))  # type: ignore[no-any-return]  # torch: Any


class Spectral(nn.Module):
    """A spectral convolution as in Fourier neural operators, its weight kept as pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.out = nn.Conv1d(1, 4, 1), nn.Linear(20, 3)
        self.weight = nn.Parameter(torch.view_as_real(0.3 * torch.rand(4, 4, 2, dtype=torch.cfloat)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.lift(x[:, None])
        spectrum = torch.fft.rfft(x)
        kept = torch.zeros(len(x), 4, x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        weight = torch.view_as_complex(self.weight)
        kept[:, :, :2] = torch.einsum("bix,iox->box", spectrum[:, :, :2], weight)
        x = nn.functional.gelu(x + torch.fft.irfft(kept, n=x.shape[-1]))
        return self.out(x.flatten(1))  # type: ignore[no-any-return]  # torch: Any


class GlobalFilter(nn.Module):
    """A filter of images in the spectrum, as in GFNet."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.out = nn.Linear(5, 16), nn.Linear(16, 3)
        self.complex_weight = nn.Parameter(torch.randn(4, 3, 1, 2) * 0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).view(-1, 4, 4, 1)
        spectrum = torch.fft.rfft2(x, dim=(1, 2), norm="ortho")
        spectrum = spectrum * torch.view_as_complex(self.complex_weight)
        x = torch.fft.irfft2(spectrum, s=(4, 4), dim=(1, 2), norm="ortho")
        return self.out(x.flatten(1))  # type: ignore[no-any-return]  # torch: Any


@pytest.mark.parametrize("kind", [FNet, Spectral, GlobalFilter])
def test_spectral_layers(kind: type[nn.Module]) -> None:
    torch.manual_seed(2)
    compared_step(kind(), nn.functional.cross_entropy, (TOKENS if kind is FNet else INPUTS, LABELS))


def test_what_has_no_pairs_is_refused_with_a_way_out() -> None:
    def refused(model: nn.Module, message: str, inputs: Tensor = INPUTS) -> None:
        with pytest.raises(UnsupportedError, match=message):
            compared_step(model, dataset=(inputs, LABELS))

    linear = nn.Linear(5, 3, dtype=torch.cfloat)
    refused(nn.Sequential(linear), r"parameter 0\.weight is complex: .*view_as_complex\(parameter\)")
    refused(Behind(lambda x: torch.acos(pairs(x)).real), r"acos\(pairs\(x\)\).*acos.* of complex numbers.*view_as_real")
    refused(Behind(lambda x: torch.fft.fft(x, n=1031).real), r"n=1031.*1031 numbers, a prime.*2048")
    refused(Behind(lambda x: x), r"data\.0.*complex64.*view_as_real", torch.complex(INPUTS, INPUTS))


torch.manual_seed(3)
RIGHT = torch.randn(5, 2)


def square(x: Tensor) -> Tensor:
    """Regular matrices whose pivots aren't on the diagonal."""
    return x[:5, :5] + 2 * torch.eye(5).flip(0)


def definite(x: Tensor) -> Tensor:
    return x @ x.mT + 0.5 * torch.eye(x.shape[-2])


def batch(x: Tensor) -> Tensor:
    return x.view(3, 4, 4)


FUNCTIONS: dict[str, Function] = {
    "inv": lambda x: torch.linalg.inv(square(x)),
    "inv of a batch": lambda x: torch.linalg.inv(definite(batch(x))),
    "solve": lambda x: torch.linalg.solve(square(x), x[:5, 5:]),
    "solve a vector": lambda x: torch.linalg.solve(square(x), x[:5, 5]),
    "solve a batch": lambda x: torch.linalg.solve(definite(batch(x)), batch(x)[:, :, :2]),
    "solve from the right": lambda x: torch.linalg.solve(square(x), x[:2, :5], left=False),
    "lu_factor and lu_solve": lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(square(x)), RIGHT),
    "solve_triangular": lambda x: (
        torch.linalg.solve_triangular(definite(x[:5, :5]), RIGHT, upper=True)
        + torch.linalg.solve_triangular(definite(x[:5, :5]), RIGHT, upper=False, unitriangular=True)
    ),
    "solve_triangular from the right": lambda x: torch.linalg.solve_triangular(
        definite(x[:5, :5]), RIGHT.T, upper=True, left=False
    ),
    "cholesky": lambda x: torch.linalg.cholesky(definite(x)),
    "upper cholesky of a batch": lambda x: torch.linalg.cholesky(definite(batch(x)), upper=True),
    "cholesky_solve": lambda x: torch.cholesky_solve(RIGHT, torch.linalg.cholesky(definite(x[:5]))),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(torch.linalg.cholesky(definite(x[:5]))),
    "qr": lambda x: torch.linalg.qr(x[:, :4])[0] @ torch.linalg.qr(x[:, :4])[1] ** 2,
    "complete qr": lambda x: torch.linalg.qr(x[:5, :5], mode="complete")[0] ** 3,
    "r of qr": lambda x: torch.linalg.qr(x[:, :4], mode="r")[1].detach() * x[:4, :4],
    "det": lambda x: torch.linalg.det(square(x)) + torch.det(definite(batch(x))).sum(),
    "slogdet": lambda x: sum(torch.linalg.slogdet(square(x))) + torch.logdet(definite(x)),  # type: ignore[return-value]
    "matrix_exp": lambda x: torch.linalg.matrix_exp(x[:6, :6] - x[:6, :6].T),
    "matrix_power": lambda x: torch.linalg.matrix_power(0.5 * square(x), 3) + torch.linalg.matrix_power(square(x), -1),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x.T, x]),
    "householder_product": lambda x: torch.linalg.householder_product(x[:, :3].tril(-1), torch.tensor([0.3, 0.2, 0.1])),
    "normal of many dimensions": lambda x: torch.distributions.MultivariateNormal(
        x.mean(0)[:5], covariance_matrix=definite(x[:5])
    ).log_prob(INPUTS[:6]),
}


@pytest.mark.parametrize(
    "names",
    [["solve", "cholesky", "qr", "slogdet"], *(pytest.param([name], marks=pytest.mark.slow) for name in FUNCTIONS)],
    ids=", ".join,
)
def test_a_step_with_factorizations_is_that_of_torch(names: list[str]) -> None:
    torch.manual_seed(2)
    compared_step(behind_all(FUNCTIONS[name] for name in names))


def test_large_matrices_and_eigenvalues_are_refused() -> None:
    for function, message in (
        (lambda x: torch.linalg.inv(x.T @ x), r"inv.*at most 64 rows"),
        (lambda x: torch.linalg.eigh(x.T @ x)[0], "eigenvalues and singular values"),
        (lambda x: torch.linalg.pinv(x) * 2, "eigenvalues and singular values"),
    ):
        with pytest.raises(UnsupportedError, match=message) as caught:
            compared_step(Behind(function, 65))
        assert "test_capture_linear_algebra.py:" in str(caught.value)


def layers(wrap: Callable[[nn.Module], nn.Module]) -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(wrap(nn.Linear(5, 7)), nn.Tanh(), wrap(nn.Linear(7, 3)))


def convolutions(wrap: Callable[[nn.Module], nn.Module]) -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Unflatten(1, (1, 5)), wrap(nn.Conv1d(1, 4, 3)), nn.Flatten(), nn.Linear(12, 3))


WRAPPED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "weight_norm": parametrizations.weight_norm,
    "weight_norm of all": lambda layer: parametrizations.weight_norm(layer, dim=None),  # type: ignore[arg-type]
    "weight_norm of columns": lambda layer: parametrizations.weight_norm(layer, dim=1),
    "spectral_norm": parametrizations.spectral_norm,
    "spectral_norm, three rounds": lambda layer: parametrizations.spectral_norm(layer, n_power_iterations=3),
    "old weight_norm": nn.utils.weight_norm,
    "pruning": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),  # type: ignore[no-untyped-call]  # untyped in torch
    "old spectral_norm": nn.utils.spectral_norm,
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize("model", chosen_rows.first([layers, convolutions], 1, others=pytest.mark.slow))
def test_normalized_weights(name: str, model: Callable[[Callable[[nn.Module], nn.Module]], nn.Module]) -> None:
    compared_step(model(WRAPPED[name]), nn.functional.cross_entropy, (INPUTS, LABELS))


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("use_trivialization", chosen_rows.first([True, False], 1, others=pytest.mark.slow))
def test_orthogonal_weights(kind: str, use_trivialization: bool) -> None:
    torch.manual_seed(2)
    layer = parametrizations.orthogonal(
        nn.Linear(5, 5 if kind != "householder" else 4), orthogonal_map=kind, use_trivialization=use_trivialization
    )
    compared_step(nn.Sequential(layer, nn.Tanh(), nn.Linear(layer.out_features, 3)), nn.functional.cross_entropy)
