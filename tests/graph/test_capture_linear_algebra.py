"""Factorizations and solutions of small matrices in a step, and the parametrizations of torch.nn.utils."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

import chosen_rows
from pol.errors import UnsupportedError
from step_comparison import INPUTS, LABELS, Behind, behind_all, compared_step

torch.manual_seed(3)
RIGHT = torch.randn(5, 2)
Function = Callable[[Tensor], Tensor]


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
