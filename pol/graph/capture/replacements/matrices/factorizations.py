"""Factorizations of small matrices, unrolled: LU with partial pivoting, Cholesky, QR by Householder's reflections.

Signs and pivots are LAPACK's, so that results agree with torch's up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces

LARGEST = 64
"""The most rows or columns that are unrolled: each takes about fifteen operations of the program."""
F = TypeVar("F", bound=Callable[..., Any])


def unrolled(*operations: str) -> Callable[[F], F]:
    """Make the decorated function the replacement of the operations for small matrices; larger ones are refused."""

    def entered(function: F) -> F:
        def small(matrix: Tensor, *arguments: Any, **options: Any) -> Any:
            if max(matrix.shape[-2:]) > LARGEST or matrix.dtype != torch.float32:
                return NotImplemented
            return function(matrix, *arguments, **options)

        replaces(*operations)(small)
        return function

    return entered


def places(size: int) -> Tensor:
    """0, 1, 2, ..."""
    return torch.arange(size)


def solved(matrix: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with matrix @ X = right (or X @ matrix = right): one row after the other, its part taken off the others."""
    if not left:
        turned = solved(matrix.transpose(-2, -1), right.transpose(-2, -1), upper=not upper, unitriangular=unitriangular)
        return turned.transpose(-2, -1)
    size = matrix.shape[-1]
    batch = torch.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])  # type: ignore[no-untyped-call]  # torch declares no types
    rest = right.expand(*batch, *right.shape[-2:])
    rows: list[Tensor] = []
    for k in reversed(range(size)) if upper else range(size):
        row = rest[..., k : k + 1, :]
        if not unitriangular:
            row = row / matrix[..., k : k + 1, k : k + 1]
        rows.append(row)
        if len(rows) < size:
            rest = rest - matrix[..., :, k : k + 1] * row
    return torch.cat(rows[::-1] if upper else rows, -2)


def lu(matrix: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """(L below and U on and above the diagonal, the order of the rows, the pivot of each column)."""
    rows, columns = matrix.shape[-2:]
    here, across = places(rows), places(columns)
    order = here.expand(*matrix.shape[:-2], rows)
    pivots = []
    for k in range(min(rows, columns)):
        size = torch.where(here >= k, torch.abs(matrix[..., :, k]), -1.0)
        pivot = torch.argmax(size, -1, keepdim=True)
        pivots.append(pivot)
        swap = torch.where(here == k, pivot, torch.where(here == pivot, k, here))
        order = torch.gather(order, -1, swap)
        matrix = torch.gather(matrix, -2, swap.unsqueeze(-1).expand(matrix.shape))
        head = matrix[..., k : k + 1, k : k + 1]
        factor = torch.where((here > k).unsqueeze(-1), matrix[..., :, k : k + 1] / head, 0.0)
        below = torch.where(across > k, matrix - factor * matrix[..., k : k + 1, :], matrix)
        matrix = torch.where((across == k) & (here > k).unsqueeze(-1), factor, below)
    return matrix, order, pivots


def _reflected(matrix: Tensor, count: int) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """R, and Householder's vectors with their factors: H_k = 1 - tau v v^T, H_count-1 ... H_0 A = R."""
    rows = matrix.shape[-2]
    here = places(rows).unsqueeze(-1)
    reflections = []
    for k in range(count):
        column = matrix[..., :, k : k + 1]
        head = column[..., k : k + 1, :]
        below = torch.where(here > k, column, 0.0)
        rest = torch.linalg.vector_norm(below, 2, [-2], True)
        length = torch.sqrt(head * head + rest * rest)
        end = torch.where(head < 0, length, -length)
        is_done = rest == 0
        tau = torch.where(is_done, 0.0, (end - head) / end)
        vector = torch.where(is_done, 0.0, below / (head - end))
        vector = torch.where(here == k, 1.0, vector)
        reflections.append((vector, tau))
        matrix = _mirror(matrix, vector, tau)
    return matrix, reflections


def _mirror(matrix: Tensor, vector: Tensor, tau: Tensor) -> Tensor:
    """(1 - tau v v^T) @ matrix."""
    return matrix - (tau * vector) * (vector * matrix).sum(-2, True)


def _orthogonal(reflections: list[tuple[Tensor, Tensor]], rows: int, columns: int, batch: torch.Size) -> Tensor:
    """The first columns of H_0 H_1 ..."""
    result = torch.eye(rows, columns).expand(*batch, rows, columns)
    for vector, tau in reversed(reflections):
        result = _mirror(result, vector, tau)
    return result


@unrolled("linalg_solve_triangular.default")
def _solve_triangular(
    matrix: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    return solved(matrix, right, upper=upper, left=left, unitriangular=unitriangular)


@replaces("triangular_solve.default")
def _old_solve_triangular(
    right: Tensor, matrix: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    if matrix.shape[-1] > LARGEST:
        return NotImplemented
    given = matrix.transpose(-2, -1) if transpose else matrix
    return solved(given, right, upper=upper != transpose, unitriangular=unitriangular), matrix.clone()


@unrolled("linalg_cholesky_ex.default")
def _cholesky(matrix: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    size = matrix.shape[-1]
    # Of the matrix only one triangle counts.
    rest = matrix.transpose(-2, -1) if upper else matrix
    here = places(size).unsqueeze(-1)
    columns = []
    for k in range(size):
        head = torch.sqrt(rest[..., k : k + 1, k : k + 1])
        column = torch.where(here == k, head, rest[..., :, k : k + 1] / head)
        column = torch.where(here >= k, column, 0.0)
        columns.append(column)
        if k + 1 < size:
            rest = rest - column * column.transpose(-2, -1)
    factor = torch.cat(columns, -1)
    return (factor.transpose(-2, -1) if upper else factor), _info(matrix)


@unrolled("linalg_qr.default")
def _qr(matrix: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    rows, columns = matrix.shape[-2:]
    count = min(rows, columns)
    upper, reflections = _reflected(matrix, count)
    upper = torch.triu(upper if mode == "complete" else upper[..., :count, :])
    if mode == "r":
        return matrix.new_zeros(0), upper
    width = rows if mode == "complete" else count
    return _orthogonal(reflections, rows, width, matrix.shape[:-2]), upper


@unrolled("geqrf.default")
def _geqrf(matrix: Tensor) -> tuple[Tensor, Tensor]:
    count = min(matrix.shape[-2:])
    upper, reflections = _reflected(matrix, count)
    vectors = torch.cat([vector for vector, _ in reflections], -1)
    vectors = torch.nn.functional.pad(vectors, (0, matrix.shape[-1] - count))
    factors = torch.cat([tau for _, tau in reflections], -2).squeeze(-1)
    return torch.triu(upper) + torch.tril(vectors, -1), factors


@unrolled("linalg_householder_product.default")
def _householder_product(vectors: Tensor, factors: Tensor) -> Tensor:
    rows, columns = vectors.shape[-2:]
    here = places(rows).unsqueeze(-1)
    reflections = []
    for k in range(factors.shape[-1]):
        vector = torch.where(here > k, vectors[..., :, k : k + 1], (here == k).to(vectors.dtype))
        reflections.append((vector, factors[..., k : k + 1].unsqueeze(-1)))
    return _orthogonal(reflections, rows, columns, vectors.shape[:-2])


def _info(matrix: Tensor) -> Tensor:
    """No error: where a factorization fails, results are infinite or NaN."""
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32)
