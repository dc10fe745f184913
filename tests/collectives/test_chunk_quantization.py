"""Integers of chunks: against NumPy, at the edges of binary32, and what the errors are bounded by.

And the order of additions over ranks: the package's fold against NumPy's, bit by bit.
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy_collectives import integers, ordered

from pol.collectives.chunk_quantization import CHUNK, ChunkLayout, ChunkScales, largest, magnitudes
from pol.collectives.rank_order import OPERATIONS, ORDERS, Operation, Order, fold_ranks, scaled, settled

pytestmark = pytest.mark.rules
EDGES = (0.0, -0.0, 2.0**-149, -(2.0**-126), 2.0**-120, 1.0, 1.5, 2.5, -3.5, 127.5, 3.4028234663852886e38)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.sampled_from(EDGES)


def reduced(rows: list[torch.Tensor], bits: int, operation: str = "mean") -> tuple[np.ndarray, list[np.ndarray]]:
    """One tensor of every rank, without processes."""
    layout = ChunkLayout([len(rows[0])])
    chunks = [layout.chunks([row]) for row in rows]
    scales = ChunkScales.of(torch.stack([magnitudes(c) for c in chunks]).amax(0), bits)
    quantized = [scales.quantize(c, torch.int32) for c in chunks]
    sums = torch.stack([q.to(torch.int64) for q in quantized]).sum(0)
    rests = [layout.pieces(scales.rest(c, q))[0] for c, q in zip(chunks, quantized, strict=True)]
    scales.restore(sums, operation, len(rows), chunks[0])
    return layout.pieces(chunks[0])[0].numpy(), [rest.numpy() for rest in rests]


@given(
    bits=st.integers(3, 24),
    operation=st.sampled_from(["sum", "mean"]),
    rows=st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[floats] * 4), min_size=n, max_size=n)),
    shift=st.integers(-100, 0),
)
def test_every_bit_is_the_definition_s(bits: int, operation: str, rows: list[tuple[float, ...]], shift: int) -> None:
    arrays = [(np.array(row, np.float64) * 2.0**shift).astype(np.float32) for row in rows]
    expected, rests = integers(arrays, operation, bits)
    found, left = reduced([torch.from_numpy(a) for a in arrays], bits, operation)
    assert found.view(np.uint32).tolist() == expected.view(np.uint32).tolist()
    assert [r.tolist() for r in left] == [r.tolist() for r in rests]


@pytest.mark.parametrize("bits", [3, 8, 16, 24])
def test_an_element_errs_by_half_a_quantum_or_one_at_the_limit(bits: int) -> None:
    x = torch.randn(3 * CHUNK + 7, generator=torch.Generator().manual_seed(bits))
    found, (rest,) = reduced([x], bits)
    for begin in range(0, len(x), CHUNK):
        chunk = slice(begin, begin + CHUNK)
        quantum = 2.0 ** (np.frexp(np.abs(x[chunk].numpy()).max())[1] - bits + 1)
        assert np.abs(rest[chunk]).max() <= quantum
        assert np.median(np.abs(rest[chunk])) <= quantum / 2
    assert (found.astype(np.float64) + rest == x.numpy()).all()  # nothing is lost


def test_each_tensor_has_chunks_of_its_own() -> None:
    """What lies beside a tensor doesn't change its exponents."""
    small, large = torch.full((5,), 2.0**-20), torch.full((2000,), 2.0**20)
    layout = ChunkLayout([5, 2000])
    scales = ChunkScales.of(magnitudes(layout.chunks([small, large])), 8)
    assert scales.quantum.flatten().tolist() == [2.0**-26, 2.0**14, 2.0**14]
    pieces = layout.pieces(layout.chunks([small, large]))
    assert [len(piece) for piece in pieces] == [5, 2000]
    assert torch.equal(layout.spread(torch.cat(pieces)), layout.chunks([small, large]))


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_a_poisoned_chunk_is_nan_and_leaves_no_rest(poison: float) -> None:
    x = torch.ones(2 * CHUNK)
    x[CHUNK + 3] = poison
    found, (rest,) = reduced([x], 8)
    assert (found[:CHUNK] == 1).all()
    assert (found[CHUNK:].view(np.uint32) == 0x7FC00000).all()
    assert not rest.any()


def test_the_limit_is_symmetric() -> None:
    assert [largest(bits) for bits in (3, 8, 24)] == [3, 127, 8388607]


words = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F800000])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("operation", OPERATIONS)
@given(rows=st.integers(1, 9).flatmap(lambda n: st.lists(st.tuples(*[words] * 5), min_size=n, max_size=n)))
def test_every_bit_of_a_fold_is_the_definition_s(
    order: Order, operation: Operation, rows: list[tuple[int, ...]]
) -> None:
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
