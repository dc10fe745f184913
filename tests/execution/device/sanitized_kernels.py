"""A program to run with a sanitizer's runtime preloaded: ``good`` kernels of every class, or one with both faults."""

import sys

import numpy as np

from lab.kernels.drawn_forms import FormDraw
from pol.commitments.tensor import tensor_tree
from pol.execution.cpu import CpuNode
from pol.execution.device.device import NAME, Kernel
from pol.execution.device.host import HostDevice
from pol.execution.device.planned_kernels import planned_kernels
from pol.execution.device.roots import DeviceRoots
from pol.execution.operand_sources import Sources

BLOCKS, THREADS = 16_384, 32  # long enough for two threads to meet, also beside other work
FAULTY = f"""
POL_KERNEL({NAME}, {THREADS}, Word* out, const Word* data, Long number) {{
    POL_ALONE(t) {{ out[0] = data[block * {THREADS} + t + number]; }}
}}
POL_END
"""


def good(device: HostDevice) -> None:
    drawn = [FormDraw(seed).drawn(kind) for seed in range(8) for kind in ("product", "sum", "map")]
    plans = [planned_kernels(each.node) for each in drawn]
    device.load([kernel for plan in plans for kernel in plan.kernels])
    for each, plan in zip(drawn, plans, strict=True):
        expected = CpuNode(each.node).run(3, Sources([], each.tensors, []))
        output = plan.run(device, [device.put(tensor) for tensor in each.tensors], 3)
        np.testing.assert_array_equal(output.reshape(each.node.type.shape), expected)
    for words in (1, 65, 16_385, 40_000, 256 * 16_384 + 1):
        data = np.random.default_rng(words).integers(0, 1 << 32, words, np.uint32)
        assert DeviceRoots(device).tensor_trees([words], [device.put(data)]) == [tensor_tree(data)]


def faulty(device: HostDevice) -> None:
    """All blocks write one word, and the last thread reads beyond the end."""
    for _ in range(100):
        device.launch(Kernel(FAULTY, THREADS, BLOCKS), [device.empty(1), device.empty(BLOCKS * THREADS)], 1)


{"good": good, "faulty": faulty}[sys.argv[1]](HostDevice(["-g1", sys.argv[2]], threads=2))
print("done")
