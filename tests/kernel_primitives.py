"""Scalar programs on the native kernels, without a node around them."""

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.execution import _kernels


def program_values(program: ScalarProgram, inputs: Sequence[Words]) -> Words:
    """The result of every instruction on equally long input arrays, shape [instructions, lanes]."""
    lanes = len(inputs[0]) if inputs else 1
    results = np.empty((len(program.instructions), lanes), np.uint32)
    _kernels.program_values(program.encode(), np.array(inputs[: program.inputs], np.uint32), results, lanes)
    return results
