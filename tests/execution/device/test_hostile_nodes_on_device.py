"""Nodes from strangers: kernels for GPUs give the bits of the CPU's and do nothing undefined."""

import numpy as np
import pytest

from lab.kernels.hostile_nodes import STEPS, Hostile
from pol.execution.cpu import CpuExecutor
from pol.execution.device.device import Device
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice
from pol.execution.device.planned_kernels import planned_kernels

GROUP = 40


def check(device: Device, seeds: range) -> None:
    draws = [(draw := Hostile(seed), *draw.program()) for seed in seeds]
    device.load(
        [kernel for _, program, _, _ in draws for node in program.nodes for kernel in planned_kernels(node).kernels]
    )
    for seed, (draw, program, state, constants) in zip(seeds, draws, strict=True):
        step = draw.random.choice(STEPS)
        got = DeviceExecutor(program, constants, device).run(state, step)
        expected = CpuExecutor(program, constants).run(state, step)
        for number, (one, other) in enumerate(zip(got, expected, strict=True)):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}, node {program.nodes[number]}")


@pytest.mark.parametrize("group", [pytest.param(g, marks=pytest.mark.slow if g >= 2 else ()) for g in range(20)])
def test_drawn(device: Device, group: int) -> None:
    check(device, range(group * GROUP, (group + 1) * GROUP))


def test_nothing_undefined() -> None:
    check(HostDevice(["-fsanitize=undefined", "-fno-sanitize-recover=all"]), range(GROUP))
