"""Whole trainings on a device: every node of the sample models, then their states over many steps."""

from functools import partial

import numpy as np
import pytest

from lab.benchmarks.training_bits import MODELS
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.device.device import Device
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice
from pol.execution.executor import look_at_nothing
from pol.execution.reference import next_state

pytestmark = pytest.mark.long

IS_OPTIMISED = True
"""Kernels are run often enough here."""
STEPS = {"host": 30}
"""By device; 1,000 on a GPU."""


@pytest.mark.parametrize("name", MODELS)
def test_sample_model(device: Device, name: str) -> None:
    steps = STEPS.get(device.name, 1_000)
    captured = MODELS[name](steps)
    executor = DeviceExecutor(captured.program, captured.constants, device)
    cpu = CpuExecutor(captured.program, captured.constants)
    state = list(captured.state)
    for number, (got, expected) in enumerate(zip(executor.run(state, 0), cpu.run(state, 0), strict=True)):
        np.testing.assert_array_equal(got, expected, err_msg=f"node {number}")
    resident = executor.place(state)
    for step in range(steps):
        state = [words.copy() for words in cpu.advance(state, step)[0]]
        resident, _ = executor.advance_resident(resident, step)
    for got, expected in zip(executor.fetch(resident), state, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_watched_and_observed_nodes(device: Device) -> None:
    captured = MODELS["mlp"](2)
    executor = DeviceExecutor(captured.program, captured.constants, device)
    expected = executor.run(captured.state, 1)
    seen = {}
    after = executor.watch(captured.state, 1, lambda number, words: seen.update({number: words}))
    assert sorted(seen) == list(range(len(captured.program.nodes)))
    assert all(np.array_equal(seen[number], words) for number, words in enumerate(expected))
    state, observed = executor.observing([5, 2]).advance(captured.state, 1)
    assert all(np.array_equal(one, other) for one, other in zip(state, after, strict=True))
    assert np.array_equal(observed[0], expected[5])
    assert np.array_equal(observed[1], expected[2])


def test_a_look_at_nothing_copies_the_state_alone() -> None:
    copied: list[int] = []

    class Counted(HostDevice):
        def get(self, buffer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
            copied.append(buffer.size)
            return super().get(buffer, shape)

    captured = MODELS["mlp"](2)
    device = DeviceExecutor(captured.program, captured.constants, Counted(["-O0"]))
    after = device.watch(captured.state, 0, look_at_nothing)
    assert copied == [slot.type.numel for slot in captured.program.slots]
    expected = CpuExecutor(captured.program, captured.constants).advance(captured.state, 0)[0]
    assert all(np.array_equal(one, other) for one, other in zip(after, expected, strict=True))


def test_executors_share_constants_on_a_device() -> None:
    """Those that are the same arrays; a task's reruns have them."""
    placed: list[int] = []

    class Counted(HostDevice):
        def put(self, words: np.ndarray) -> np.ndarray:
            placed.append(words.size)
            return super().put(words)

    captured, device = MODELS["mlp"](2), Counted(["-O0"])
    first = DeviceExecutor(captured.program, captured.constants, device)
    before, changed = len(placed), captured.constants[0] ^ np.uint32(1)
    second = DeviceExecutor(captured.program, [changed, *captured.constants[1:]], device, other=first)
    assert placed[before:].count(changed.size) == 1
    assert len(placed) == before + 2  # the changed one, and the PADs of trees
    expected = CpuExecutor(captured.program, [changed, *captured.constants[1:]]).advance(captured.state, 0)[0]
    got = second.advance(captured.state, 0)[0]
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))


def test_roots_of_states(device: Device) -> None:
    captured = MODELS["mlp"](2)
    program, types = captured.program, [slot.type for slot in captured.program.slots]
    executor, cpu = (
        make(program, captured.constants) for make in (partial(DeviceExecutor, device=device), CpuExecutor)
    )
    after, _ = executor.advance(captured.state, 1)
    expected = next_state(program, cpu.run(captured.state, 1))
    assert executor.state_root(executor.place(after)) == state_root(types, expected)


def test_constants_of_one_step(device: Device) -> None:
    """As a user's loop gives its batch; other steps see those of the executor."""
    captured = MODELS["mlp"](2)
    batch = [words[::-1].copy() if place < 2 else words for place, words in enumerate(captured.constants)]
    executor = DeviceExecutor(captured.program, captured.constants, device)
    cpu = CpuExecutor(captured.program, captured.constants)
    for constants in (batch, None):
        got, expected = executor.advance(captured.state, 0, constants)[0], cpu.advance(captured.state, 0, constants)[0]
        assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))
    with pytest.raises(ProtocolError, match="tensors were given"):
        executor.advance(captured.state, 0, batch[:-1])


def test_refusals(device: Device) -> None:
    captured = MODELS["mlp"](2)
    with pytest.raises(ProtocolError, match="observed nodes"):
        DeviceExecutor(captured.program, captured.constants, device, [10_000])
    executor = DeviceExecutor(captured.program, captured.constants, device)
    with pytest.raises(ProtocolError, match="tensors were given"):
        executor.advance(captured.state[:-1], 0)
    with pytest.raises(ProtocolError, match="observed nodes"):
        executor.observing([-1])
    with pytest.raises(ProtocolError, match="step"):
        executor.advance(captured.state, -1)
