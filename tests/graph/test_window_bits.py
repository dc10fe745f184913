"""Every operation over windows and positions gives the same bits natively as in the reference, on hostile words too."""

import numpy as np
import pytest
import torch
from test_lowering_operations import CASES, graph_of

from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor
from pol.graph.capture import to_words
from pol.graph.lowering import RULES, lower
from pol.graph.lowering.rules.images import adaptive_pooling, pooling, resampling
from pol.graph.lowering.rules.shapes import padding

HOSTILE = [0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x3F800000, 0xBF800001]


FAMILIES = {module.__name__ for module in (pooling, adaptive_pooling, resampling, padding)}


@pytest.mark.parametrize("name", sorted(name for name, rule in RULES.items() if rule.lower.__module__ in FAMILIES))
def test_bits_of_the_kernels_are_those_of_the_reference(name: str) -> None:
    generator = np.random.default_rng(3)
    for case in CASES[name.removeprefix("aten.")]:
        graph, tensors = graph_of(name.removeprefix("aten."), case)
        program, _ = lower(graph)
        words = [to_words("s", tensor) for tensor in tensors]
        for tensor, given in zip(words, tensors, strict=True):
            if given.dtype == torch.float32:
                tensor.reshape(-1)[generator.integers(tensor.size, size=5)] = generator.choice(HOSTILE, 5)
        constant = [to_words("c", torch.tensor(0.0))]
        reference = ReferenceExecutor(program, constant).run(words, 0)
        for threads in (1, 2):
            for mine, theirs in zip(CpuExecutor(program, constant, threads).run(words, 0), reference, strict=True):
                np.testing.assert_array_equal(mine, theirs)
