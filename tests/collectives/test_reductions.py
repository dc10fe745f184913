"""Reductions over one to four processes, against NumPy, bit by bit."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy_collectives import integers, ordered, to_bfloat16
from process_group import run_ranks
from reducing_ranks import SIZES, TRANSPORTS, bytes_sent, integer_results, ordered_results, splits, values

from pol.collectives.rank_order import ORDERS

pytestmark = pytest.mark.long


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_ordered_sums(tmp_path: Path, count: int) -> None:
    found = run_ranks(tmp_path, count, ordered_results)
    for size in SIZES:
        rows = [values(rank, size) for rank in range(count)]
        for order in ORDERS:
            for forwards in (True, False):
                roster = None if forwards else list(range(count))[::-1]
                expected = ordered(rows, "sum", order, roster).tobytes()
                assert [one["sum", size, order, forwards] for one in found] == [expected] * count
            expected = ordered(rows, "mean", order).tobytes()
            assert [one["mean", size, order, True] for one in found] == [expected] * count
    # Narrow floats are rounded once.
    rows = [values(rank, 4097) for rank in range(count)]
    wide = ordered([to_bfloat16(row) for row in rows], "mean")
    expected = (to_bfloat16(wide).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    assert [one["mean", torch.bfloat16, rank] for rank, one in enumerate(found)] == [expected] * count
    with np.errstate(over="ignore", invalid="ignore"):
        half = ordered([row.astype(np.float16).astype(np.float32) for row in rows], "mean").astype(np.float16)
    expected = np.where(np.isnan(half), np.uint16(0x7E00), half.view(np.uint16)).astype(np.uint16).tobytes()
    assert [one["mean", torch.float16, rank] for rank, one in enumerate(found)] == [expected] * count


@pytest.mark.parametrize("count", [2, 3, 4])
def test_messages_and_threads_change_no_bit(tmp_path: Path, count: int) -> None:
    expected = ordered([values(rank, 4097) for rank in range(count)], "mean").tobytes()
    for one in run_ranks(tmp_path, count, splits):
        assert {name for name, result in one.items() if result != expected} == set()
        assert len(one) == 6


@pytest.mark.parametrize(("count", "bits"), [(1, 8), (2, 3), (3, 8), (4, 16), (3, 24)])
def test_integer_sums(tmp_path: Path, count: int, bits: int) -> None:
    found = run_ranks(tmp_path, count, integer_results, bits)

    def same(case: tuple[object, ...], expected: bytes) -> None:
        for transport in TRANSPORTS:
            assert [one[transport, *case] for one in found] == [expected] * count

    for size in SIZES:
        rows = [values(rank, size, finite=True) for rank in range(count)]
        for operation in ("sum", "mean"):
            same((operation, size), integers(rows, operation, bits)[0].tobytes())
    large, small = ([values(rank, size, finite=True) for rank in range(count)] for size in (4097, 64))
    square = [row.reshape(8, 8).T.reshape(-1).copy() for row in small]
    several = integers(large, "mean", bits)[0], integers(square, "mean", bits)[0]
    same(("several",), several[0].tobytes() + several[1].reshape(8, 8).T.tobytes())
    poisoned = integers([values(rank, 4097) for rank in range(count)], "mean", bits)[0]
    assert np.isnan(poisoned).any()
    same(("poisoned",), poisoned.tobytes())
    rests = [np.zeros(4097, np.float32) for _ in range(count)]
    for _ in range(3):
        result, rests = integers(large, "mean", bits, rests)
    same(("fed back",), result.tobytes())
    for transport in TRANSPORTS:
        assert [one[transport, "rests"] for one in found] == [rest.tobytes() for rest in rests]


def test_bytes_sent(tmp_path: Path) -> None:
    """A ring sends 4 bytes an element and way: 2 * 4 * (n - 1) / n."""
    (one, _, _, _) = run_ranks(tmp_path, 4, bytes_sent, [1 << 20], 8)
    ring = 2 * 4 * (1 << 20) * 3 // 4
    exponents = 2 * 4 * (1 << 10) * 3 // 4
    assert one == 3 * 104 + exponents + ring * 3 // 8  # a byte there, two back
    assert one / ring == pytest.approx(0.376, abs=1e-3)
