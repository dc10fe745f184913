"""Linear systems of small matrices: solutions, inverses, determinants, the exponential."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.matrices.factorizations import LARGEST, lu, places, solved, unrolled
from pol.graph.capture.replacements.table import replaces

_HALVINGS, _DEGREE = 5, 12
"""exp(A) = exp(A / 2^5)^(2^5): the series of degree 12 is exact to binary32 for |A| up to 32."""


def _info(matrix: Tensor) -> Tensor:
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32)


def _numbered(pivots: list[Tensor]) -> Tensor:
    """Pivots as LAPACK counts them, from 1."""
    return (torch.cat(pivots, -1) + 1).to(torch.int32)


def _in_order(right: Tensor, order: Tensor) -> Tensor:
    """The rows in another order."""
    batch = torch.broadcast_shapes(right.shape[:-2], order.shape[:-1])  # type: ignore[no-untyped-call]  # torch declares no types
    rows = order.expand(*batch, order.shape[-1]).unsqueeze(-1)
    wide = right.expand(*batch, *right.shape[-2:])
    return torch.gather(wide, -2, rows.expand(wide.shape))


def _by_factors(factors: Tensor, right: Tensor) -> Tensor:
    lower = solved(factors, right, upper=False, unitriangular=True)
    return solved(factors, lower, upper=True)


def _order_of(pivots: Tensor, size: int) -> Tensor:
    """The order of the rows after the exchanges."""
    here = places(size)
    order = here.expand(*pivots.shape[:-1], size)
    for k in range(pivots.shape[-1]):
        pivot = pivots[..., k : k + 1].long() - 1
        order = torch.gather(order, -1, torch.where(here == k, pivot, torch.where(here == pivot, k, here)))
    return order


@unrolled("linalg_lu_factor_ex.default")
def _lu_factor(matrix: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    if not pivot:
        return NotImplemented
    factors, _, pivots = lu(matrix)
    return factors, _numbered(pivots), _info(matrix)


@unrolled("lu_unpack.default")
def _lu_unpack(factors: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    rows, columns = factors.shape[-2:]
    count = min(rows, columns)
    order = _order_of(pivots, rows)
    exchanges = (order.unsqueeze(-2) == places(rows).unsqueeze(-1)).to(factors.dtype)
    lower = torch.tril(factors[..., :count], -1) + torch.eye(rows, count)
    return exchanges, lower, torch.triu(factors[..., :count, :])


@unrolled("linalg_lu_solve.default")
def _lu_solve(factors: Tensor, pivots: Tensor, right: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    if not left:
        turned = _lu_solve(factors, pivots, right.transpose(-2, -1), adjoint=not adjoint)
        return turned.transpose(-2, -1)
    order = _order_of(pivots, factors.shape[-1])
    if not adjoint:
        return _by_factors(factors, _in_order(right, order))
    # A = P^T L U, so A^T X = B is U^T L^T P X = B.
    turned = factors.transpose(-2, -1)
    inner = solved(turned, right, upper=False)
    inner = solved(turned, inner, upper=True, unitriangular=True)
    return _in_order(inner, torch.argsort(order, dim=-1, stable=True))


@unrolled("_linalg_solve_ex.default")
def _solve(matrix: Tensor, right: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    factors, _, pivots = lu(matrix)
    numbered = _numbered(pivots)
    is_vector = right.dim() == 1 or (right.dim() == matrix.dim() - 1 and right.shape == matrix.shape[:-1])
    columns = right.unsqueeze(-1) if is_vector else right
    found = _lu_solve(factors, numbered, columns, left=left)
    return (found.squeeze(-1) if is_vector else found), factors, numbered, _info(matrix)


@unrolled("linalg_inv_ex.default")
def _inverse(matrix: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    factors, order, _ = lu(matrix)
    return _by_factors(factors, _in_order(torch.eye(matrix.shape[-1]), order)), _info(matrix)


def _sign(pivots: list[Tensor]) -> Tensor:
    """1, or -1 after an odd number of exchanges."""
    all_pivots = torch.cat(pivots, -1)
    exchanges = (all_pivots != places(all_pivots.shape[-1])).sum(-1)
    return (1 - 2 * torch.remainder(exchanges, 2)).to(torch.float32)


def _factored(matrix: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Factors and pivots of the matrix, or of its transpose where it lies in memory by rows: the backward pass of a
    determinant counts on that."""
    factors, _, pivots = lu(matrix.transpose(-2, -1) if matrix.is_contiguous() else matrix)
    return factors, pivots


@unrolled("_linalg_det.default")
def _determinant(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots = _factored(matrix)
    return _sign(pivots) * torch.diagonal(factors, 0, -2, -1).prod(-1), factors, _numbered(pivots)


@unrolled("_linalg_slogdet.default")
def _log_determinant(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    factors, pivots = _factored(matrix)
    diagonal = torch.diagonal(factors, 0, -2, -1)
    sign = _sign(pivots) * torch.sign(diagonal).prod(-1)
    return sign, torch.log(torch.abs(diagonal)).sum(-1), factors, _numbered(pivots)


@replaces("_linalg_check_errors.default")
def _unchecked(info: Tensor, name: str, *, is_matrix: bool) -> None:
    """Where a factorization fails, its results are infinite or NaN."""


@replaces("linalg_matrix_exp.default")
def _matrix_exponential(matrix: Tensor) -> Any:
    if matrix.dtype != torch.float32:
        return NotImplemented
    small = matrix * 2.0**-_HALVINGS
    one = torch.eye(matrix.shape[-1])
    total = one + small * (1.0 / _DEGREE)
    for number in range(_DEGREE - 1, 0, -1):
        total = one + torch.matmul(small, total) * (1.0 / number)
    for _ in range(_HALVINGS):
        total = torch.matmul(total, total)
    return total


@replaces("cholesky_solve.default")
def _cholesky_solve(right: Tensor, factor: Tensor, upper: bool = False) -> Any:
    if factor.shape[-1] > LARGEST:
        return NotImplemented
    lower = factor.transpose(-2, -1) if upper else factor
    return solved(lower.transpose(-2, -1), solved(lower, right, upper=False), upper=True)


@replaces("cholesky_inverse.default")
def _cholesky_inverse(factor: Tensor, upper: bool = False) -> Any:
    return _cholesky_solve(torch.eye(factor.shape[-1]), factor, upper)


@unrolled("cholesky.default")
def _old_cholesky(matrix: Tensor, upper: bool = False) -> Tensor:
    factor: Tensor = torch.linalg.cholesky_ex(matrix, upper=upper)[0]
    return factor
