"""Whole trainings on a device: every node of the sample models, then their states over many steps."""

import numpy as np
import pytest

from lab.benchmarks.training_bits import MODELS
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice

STEPS = 30


@pytest.mark.parametrize("name", MODELS)
def test_sample_model(host_device: HostDevice, name: str) -> None:
    captured = MODELS[name](STEPS)
    device = DeviceExecutor(captured.program, captured.constants, host_device)
    cpu = CpuExecutor(captured.program, captured.constants)
    state = list(captured.state)
    for number, (got, expected) in enumerate(zip(device.run(state, 0), cpu.run(state, 0), strict=True)):
        np.testing.assert_array_equal(got, expected, err_msg=f"node {number}")
    resident = device.place(state)
    for step in range(STEPS):
        state = [words.copy() for words in cpu.advance(state, step)[0]]
        resident, _ = device.advance_resident(resident, step)
    for got, expected in zip(device.fetch(resident), state, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_watched_and_observed_nodes(host_device: HostDevice) -> None:
    captured = MODELS["mlp"](2)
    device = DeviceExecutor(captured.program, captured.constants, host_device)
    expected = device.run(captured.state, 1)
    seen = {}
    after = device.watch(captured.state, 1, lambda number, words: seen.update({number: words}))
    assert sorted(seen) == list(range(len(captured.program.nodes)))
    assert all(np.array_equal(seen[number], words) for number, words in enumerate(expected))
    state, observed = device.observing([5, 2]).advance(captured.state, 1)
    assert all(np.array_equal(one, other) for one, other in zip(state, after, strict=True))
    assert np.array_equal(observed[0], expected[5])
    assert np.array_equal(observed[1], expected[2])


def test_refusals(host_device: HostDevice) -> None:
    captured = MODELS["mlp"](2)
    with pytest.raises(ProtocolError, match="observed nodes"):
        DeviceExecutor(captured.program, captured.constants, host_device, [10_000])
    device = DeviceExecutor(captured.program, captured.constants, host_device)
    with pytest.raises(ProtocolError, match="tensors were given"):
        device.advance(captured.state[:-1], 0)
    with pytest.raises(ProtocolError, match="step"):
        device.advance(captured.state, -1)
