"""Rounding to bfloat16 and float16 is torch's, bit by bit."""

import numpy as np
import pytest
import torch

from pol.arithmetic.primitives import NAN, Op, apply, is_nan


@pytest.mark.parametrize(
    ("op", "dtype", "dropped"), [(Op.RBF16, torch.bfloat16, 16), (Op.RF16, torch.float16, 13)], ids=["bf16", "f16"]
)
def test_shorter_formats_are_rounded_as_torch_rounds_them(op: Op, dtype: torch.dtype, dropped: int) -> None:
    drawn = np.random.default_rng(1).integers(0, 2**32, 1 << 20, dtype=np.uint32)
    # Every number of that precision, with lower bits at and beside a tie.
    upper = np.arange(1 << (32 - dropped), dtype=np.uint32) << np.uint32(dropped)
    tie = 1 << (dropped - 1)
    words = np.concatenate([drawn, *(upper | np.uint32(low) for low in (0, 1, tie - 1, tie, tie + 1, 2 * tie - 1))])
    got = apply(op, words)
    expected = torch.from_numpy(words.view(np.float32)).to(dtype).float().numpy().view(np.uint32)
    np.testing.assert_array_equal(got, np.where(is_nan(words), NAN, expected))
    np.testing.assert_array_equal(apply(op, got), got)
