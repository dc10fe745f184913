"""Rounding to bfloat16 is torch's, bit by bit."""

import numpy as np
import torch

from pol.arithmetic.interpreter import run
from pol.arithmetic.rounding import round_bf16


def test_bfloat16_is_rounded_as_torch_rounds_it() -> None:
    random = np.random.default_rng(1)
    drawn = random.integers(0, 2**32, 1 << 20, dtype=np.uint32)
    # Every upper half, with lower halves at and beside a tie.
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    words = np.concatenate([drawn, *(upper | np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF))])
    got = run(round_bf16(), [words])
    numbers = torch.from_numpy(words.view(np.float32))
    expected = numbers.to(torch.bfloat16).float().numpy().view(np.uint32)
    expected = np.where(np.isnan(words.view(np.float32)), np.uint32(0x7FC00000), expected)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(run(round_bf16(), [got]), got)
