"""The order of additions over ranks: the package's fold against NumPy's, bit by bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy_collectives import ordered

from pol.collectives.rank_order import OPERATIONS, ORDERS, Operation, Order, fold_ranks, scaled, settled

pytestmark = pytest.mark.rules
words = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F800000])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("operation", OPERATIONS)
@given(rows=st.integers(1, 9).flatmap(lambda n: st.lists(st.tuples(*[words] * 5), min_size=n, max_size=n)))
def test_every_bit_is_the_definition_s(order: Order, operation: Operation, rows: list[tuple[int, ...]]) -> None:
    floats = [np.array(row, np.uint32).view(np.float32) for row in rows]
    total = fold_ranks([torch.from_numpy(row.copy()) for row in floats], order)
    found = settled(scaled(total, operation, len(rows)), torch.float32).numpy()
    assert found.view(np.uint32).tolist() == ordered(floats, operation, order).view(np.uint32).tolist()


def test_orders_are_those_of_the_specification() -> None:
    """Next to 2^24 a one is lost, and two of them aren't: ((g0 + g1) + (g2 + g3)) + (g4 + g5)."""

    def total(order: Order) -> float:
        return fold_ranks([torch.tensor([x]) for x in (2.0**24, 1.0, 1.0, 1.0, 1.0, 1.0)], order).item()

    assert total("ascending") == 2.0**24
    assert total("tree") == 2.0**24 + 4


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_narrow_floats_are_added_in_float32(kind: torch.dtype) -> None:
    rows = [torch.tensor([1.0], dtype=kind), *[torch.tensor([2.0**-12], dtype=kind)] * 4]
    assert fold_ranks(rows).item() == 1 + 2.0**-10
    assert fold_ranks(rows).dtype == torch.float32


@pytest.mark.parametrize("ranks", [*range(1, 200), 1023, 4097])
def test_one_over_n_is_rounded_once(ranks: int) -> None:
    one = scaled(torch.ones(9), "mean", ranks)
    assert (one.numpy() == np.float32(1) / np.float32(ranks)).all()
