"""Numeric operations of torch in a step: each is captured, and gives the numbers and gradients of torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import chosen_rows
from pol.errors import UnsupportedError
from step_comparison import Behind, behind_all, compared_step

torch.manual_seed(3)
VECTOR, MATRIX = torch.randn(8), torch.randn(8, 8)
POINTS = torch.tensor([-1.0, -0.25, 0.0, 0.4, 1.2])
Function = Callable[[Tensor], Tensor]


def unit(x: Tensor) -> Tensor:
    """Numbers between -1 and 1."""
    return torch.tanh(x) * 0.9


def with_nan(x: Tensor) -> Tensor:
    return torch.where(x > 1.0, float("nan"), x)


FUNCTIONS: dict[str, Function] = {
    "tan": torch.tan,
    "atan": lambda x: torch.atan(3 * x),
    "atan2": lambda x: torch.atan2(x[:, :4], x[:, 4:]),
    "asin": lambda x: torch.asin(unit(x)),
    "acos": lambda x: torch.acos(unit(x)),
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "asinh": lambda x: torch.asinh(5 * x),
    "acosh": lambda x: torch.acosh(x.abs() + 1.1),
    "atanh": lambda x: torch.atanh(unit(x)),
    "erfc": torch.erfc,
    "erfinv": lambda x: torch.erfinv(unit(x)),
    "lgamma": lambda x: torch.lgamma(3 * x.abs() + 0.1),
    "lgamma below zero": lambda x: torch.lgamma(-x.abs() - 0.3),
    "digamma": lambda x: torch.digamma(3 * x.abs() + 0.1),
    "hypot": lambda x: torch.hypot(x[:, :4], x[:, 4:]),
    "sinc": torch.sinc,
    "frac": lambda x: torch.frac(3 * x) * x,
    "trunc": lambda x: torch.trunc(3 * x) * x,
    "copysign": lambda x: torch.copysign(x, VECTOR) + torch.copysign(x, -1.0),
    "heaviside": lambda x: torch.heaviside(x.detach(), torch.tensor(0.5)) * x,
    "fmax": lambda x: torch.fmax(with_nan(x), x.flip(0)).nan_to_num(0.5),
    "fmin": lambda x: torch.fmin(x, VECTOR),
    "nan_to_num": lambda x: torch.nan_to_num(with_nan(x), nan=0.25, posinf=9.0),
    "log_ndtr": lambda x: torch.special.log_ndtr(3 * x) + torch.special.erfcx(x),
    "mvlgamma": lambda x: torch.mvlgamma(x.abs() + 2, 2),
    "degrees": lambda x: torch.deg2rad(x) + torch.rad2deg(0.1 * x),
    "ldexp": lambda x: torch.ldexp(x, torch.tensor(2)),
    "round": lambda x: x + torch.round(x, decimals=1).detach() + torch.round(x),
    "logit": lambda x: torch.logit(torch.sigmoid(x)) + torch.logit(torch.sigmoid(9 * x), eps=1e-2),
    "xlogy": lambda x: torch.xlogy(x.abs(), x.abs() + 0.1) + torch.special.xlog1py(x, x.abs()),
    "entr": lambda x: torch.special.entr(x.abs()),
    "ndtr": torch.special.ndtr,
    "ndtri": lambda x: torch.special.ndtri(torch.sigmoid(x)),
    "fmod": lambda x: torch.fmod(x, 0.75) + torch.remainder(x, VECTOR.abs() + 0.1),
    "remainder of a number": lambda x: x * torch.remainder(3.0, x.detach().abs() + 0.5),
    "isclose": lambda x: torch.isclose(x, x + 1e-9).float() * x,
    "isfinite": lambda x: (torch.isfinite(with_nan(x)) & ~torch.isposinf(x) & ~torch.isneginf(x)).float() * x,
    "signbit": lambda x: torch.signbit(x).float() * x,
    "cumprod": lambda x: torch.cumprod(1 + 0.1 * x, 1),
    "cumprod of zeros": lambda x: torch.cumprod(torch.relu(x), 0),
    "cummax": lambda x: torch.cummax(x, 1)[0],
    "cummin and places": lambda x: torch.cummin(x, 0)[0] * torch.cummin(x, 0)[1],
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 1),
    "median": lambda x: x.median(1)[0] + x.median(),
    "median over rows": lambda x: x.median(0, keepdim=True)[0] * x,
    "nanmedian": lambda x: with_nan(x).nanmedian(1)[0],
    "kthvalue": lambda x: x.kthvalue(3, 1)[0] + x.kthvalue(2, 0, True)[0].sum(),
    "quantile": lambda x: torch.quantile(x, 0.3, dim=1),
    "quantile of all": lambda x: torch.quantile(x, 0.3, interpolation="midpoint") * x,
    "covariance": lambda x: torch.cov(x, correction=0) + torch.corrcoef(x),
    "quantiles": lambda x: torch.quantile(x, torch.tensor([0.25, 0.5]), dim=1, keepdim=True),
    "nanquantile": lambda x: torch.nanquantile(with_nan(x), 0.5, dim=-1),
    "argsort": lambda x: torch.argsort(x, 1) * x,
    "msort": lambda x: torch.msort(x) * VECTOR,
    "aminmax": lambda x: torch.stack([*torch.aminmax(x), *torch.aminmax(x)]) + torch.aminmax(x, dim=1)[0][:4],
    "nansum": lambda x: torch.nansum(with_nan(x), 1) + with_nan(x).nansum(),
    "nanmean": lambda x: with_nan(x).nanmean(1),
    "logsumexp": lambda x: torch.logsumexp(x, (0, 1)) + torch.logsumexp(x, 1, True),
    "prod of all": lambda x: (1 + 0.1 * x).prod(),
    "prod": lambda x: x.prod(1) + x[0].prod(),
    "prod of zeros": lambda x: torch.relu(x).prod(1) + x[:2, :2].prod(),
    "var": lambda x: x.var(1) + x.var() + x.std(0, unbiased=False).sum() + torch.std_mean(x, 1)[0],
    "var_mean": lambda x: torch.var_mean(x, (0, 1), correction=2)[0] * x,
    "norms": lambda x: x.norm() + x.norm(1, 1) + x.norm(float("inf"), 1) + x.norm(3, 1) + x.norm(0, 1),
    "norm of matrices": lambda x: (
        torch.linalg.matrix_norm(x) + torch.linalg.matrix_norm(x, 1) + torch.linalg.norm(x, float("inf"))
    ),
    "dist": lambda x: torch.dist(x, VECTOR) + torch.dist(x, VECTOR, 3),
    "cdist": lambda x: torch.cdist(x, x.flip(0) * 0.5) + torch.cdist(x, x.flip(0) * 0.5, p=1.0),
    "cdist of order 3": lambda x: torch.cdist(x.view(2, 3, 8), x.view(2, 3, 8) + 1, p=3.0),
    "pdist": lambda x: functional.pdist(x) + functional.pdist(x, 1.5),
    "pairwise_distance": lambda x: functional.pairwise_distance(x, x.flip(0), p=1.5),
    "normalize": lambda x: functional.normalize(x, p=3.0) + functional.normalize(x, dim=0),
    "renorm": lambda x: x * torch.renorm(x.detach(), 2, 0, 0.7),
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, 3:6]) + torch.cross(x[:3], x[3:], dim=0)[:, :1].sum(),
    "outer": lambda x: torch.outer(x[0], x[1]),
    "kron": lambda x: torch.kron(x[:2, :2], x[2:, 4:]),
    "einsum": lambda x: torch.einsum("bi,ij,bj->b", x, MATRIX, x) + torch.einsum("bi->", x),
    "einsum diagonal": lambda x: torch.einsum("ii->i", x[:, :6]) * torch.einsum("ii", x[:, 2:]),
    "tensordot": lambda x: torch.tensordot(x.view(6, 2, 4), MATRIX.view(2, 4, 8), dims=2),
    "vdot": lambda x: torch.vdot(x[0], x[1]) + torch.dot(x[2], VECTOR) + torch.inner(x[0], x[3]),
    "diag": lambda x: torch.diag(x[0]) @ MATRIX + torch.diag(x[:, :6], 1).sum(),
    "diag_embed": lambda x: torch.diag_embed(x, -1, 0, 2)[:, :, 0] + torch.diag_embed(x, 2).sum(),
    "diagonal": lambda x: torch.diagonal(x.view(2, 3, 8), 1, -2, -1) ** 2,
    "diagonal in place": lambda x: (x[:, :6] * 1).fill_diagonal_(0.5) * x[:, 2:],
    "take": lambda x: torch.take(x, torch.tensor([0, 5, 9, -1])),
    "every second row": lambda x: torch.slice_scatter(x, 2 * x[::2], 0, 0, None, 2),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, x[0, :6] * 2),
    "trace": lambda x: torch.trace(x[:, :6]) * x,
    "count_nonzero": lambda x: torch.count_nonzero(torch.relu(x), 1)[:, None] * x + torch.count_nonzero(x),
    "any and all": lambda x: ((x > 1).any(1) | (x > -2).all(1) | (x > 0).all((0, 1))).float()[:, None] * x,
    "bucketize": lambda x: torch.bucketize(x, POINTS) * x,
    "searchsorted": lambda x: torch.searchsorted(x.detach().sort(1)[0], x, right=True) * x,
    "searchsorted by a sorter": lambda x: torch.searchsorted(x, x, sorter=x.argsort(1)) * x,
    "one_hot": lambda x: functional.one_hot(x.argmax(1), 8) * x,
    "isin": lambda x: torch.isin(x.argmax(1), torch.tensor([1, 3, 5])).float()[:, None] * x,
    "eye": lambda x: (x[:, :6] + torch.eye(6)) @ torch.eye(6, 8),
    "linspace": lambda x: x * torch.linspace(-1, 1, 8) + torch.logspace(-1, 0, 8),
    "triangles": lambda x: x[:, :6][tuple(torch.tril_indices(6, 6, -1))],
    "addr": lambda x: torch.addr(x[:, :6], x[:, 0], x[:, 1], beta=0.5, alpha=2.0),
    "block_diag": lambda x: torch.block_diag(x[:2], x[2:, :3]) * 2,
    "rot90": lambda x: torch.rot90(x) * 2,
    "shifts": lambda x: (
        ((x.argmax(1)[:, None] >> torch.arange(3)) & 1).float() + (x.argmin(1) << 2)[:, None] * x[:, :3]
    ),
    "powers of two": lambda x: (x.argmax(1)[:, None] & 2 ** torch.arange(3)).ne(0).float() * x[:, :3],
    "integers": lambda x: (torch.fmod(x.argmax(1) - 4, 3) ^ 1).float() * x[:, 0],
    "bfloat16": lambda x: torch.atan(x.bfloat16()).float() + torch.sinc(x.bfloat16()).float(),
    "functions of integers": lambda x: torch.atan(x.argmax(1)) + torch.lgamma(x.argmax(1) + 1) + x.sum(),
    "rrelu": lambda x: functional.rrelu(x, 0.1, 0.3, training=True) + functional.rrelu(x, training=False),
}


@pytest.mark.parametrize("names", chosen_rows.together(FUNCTIONS, 16, alone=pytest.mark.slow))
def test_a_step_with_operations_is_that_of_torch(names: list[str]) -> None:
    torch.manual_seed(2)
    compared_step(behind_all(FUNCTIONS[name] for name in names))


LONG: dict[str, Function] = {
    "sort": lambda x: x.sort(1)[0] * torch.linspace(0, 1, 3000),
    "sort with ties": lambda x: x.round().sort(dim=1, descending=True, stable=True)[1] * x,
    "topk": lambda x: x.topk(5, 1)[0],
    "median": lambda x: x.median(1)[0],
    "places": lambda x: x.argsort(1).argsort(1).float() * x,
}


@pytest.mark.parametrize("name", LONG)
def test_long_rows_are_sorted(name: str) -> None:
    torch.manual_seed(2)
    compared_step(Behind(LONG[name], 3000))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: torch.linalg.svdvals(x) * 2, r"svd.*eigenvalues and singular values"),
        (lambda x: torch.linalg.eigvalsh(x[:, :6]), r"eigh.*eigenvalues and singular values"),
        (lambda x: torch.polygamma(2, x.abs()), r"polygamma.*operations\.md"),
        (lambda x: torch.special.i0(x) * 2, r"i0.*operations\.md"),
    ],
)
def test_what_has_no_definition_is_refused_with_its_line(function: Function, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        compared_step(Behind(function))
    assert "test_capture_numbers.py:" in str(caught.value)
