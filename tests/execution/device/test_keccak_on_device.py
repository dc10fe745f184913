"""Leaves hashed by the kernel for GPUs, built for the host: whole ones, cut ones, and data at any address."""

import numpy as np
import pytest
import sha3

from pol.execution.device.device import NAME, Device, Kernel

LEAF_WORDS = 64
LEAF_HASH = Kernel(
    f"""
POL_KERNEL({NAME}, 1, Word* out, const Word* data, Long number) {{
    POL_ALONE(t) {{ hash_leaf(data, number, out); }}
    (void)block;
}}
POL_END
""",
    1,
    1,
)


@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("number", [1, 2, 33, 34, 35, 63, 64, 100])
def test_a_leaf(device: Device, number: int, first: int) -> None:
    words = np.random.default_rng(number).integers(0, 2**32, first + number, dtype=np.uint32)
    out = device.empty(8)
    device.launch(LEAF_HASH, [out, device.part(device.put(words), first)], number)
    leaf = words[first : first + LEAF_WORDS].tobytes().ljust(4 * LEAF_WORDS, b"\0")
    assert device.get(out, (8,)).tobytes() == sha3.keccak_256(b"\0" + leaf).digest()
