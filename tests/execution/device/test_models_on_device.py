"""Whole trainings on a device: every node of the sample models, then their states over many steps.

And roots that a device computes: those of pol.commitments, at every size at which a tree changes its form.
"""

import itertools
from functools import partial

import numpy as np
import pytest

from lab.benchmarks.training_bits import MODELS
from pol.commitments import tensor
from pol.commitments.tensor import state_root
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.execution.device.device import Device
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice
from pol.execution.device.roots import DeviceRoots
from pol.execution.executor import look_at_nothing
from pol.execution.reference import next_state
from pol.graph.tensor_type import DType, TensorType

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


SUBTREE = 256 * 64
SIZES = [
    1, 2, 63, 64, 65, 127, 128, 129, 191, 64 * 255, SUBTREE - 1, SUBTREE, SUBTREE + 1, 2 * SUBTREE,
    3 * SUBTREE + 77,
]  # fmt: skip
BACKWARDS = "-DPOL_BACKWARDS=1"


def drawn(words: int) -> np.ndarray:
    return np.random.default_rng(words).integers(0, 1 << 32, words, np.uint32)


def check(device: Device, sizes: list[int]) -> None:
    tensors = [drawn(words) for words in sizes]
    trees = DeviceRoots(device).tensor_trees(sizes, [device.put(words) for words in tensors])
    for words, size, tree in zip(tensors, sizes, trees, strict=True):
        assert tree == tensor.tensor_tree(words), size


def test_sizes(device: Device) -> None:
    check(device, SIZES)


def test_three_launches(device: Device) -> None:
    """More than 256 subtrees, the last of them a word long."""
    check(device, [256 * SUBTREE, 256 * SUBTREE + 1])


def test_sizes_that_the_seed_draws(device: Device) -> None:
    check(device, np.random.default_rng(5).integers(1, 5 * SUBTREE, 40).tolist())


@pytest.mark.parametrize(
    "flags", [[BACKWARDS], ["-fsanitize=undefined", "-fno-sanitize-recover=all"]], ids=["backwards", "undefined"]
)
def test_any_order_of_threads_and_nothing_undefined(flags: list[str]) -> None:
    check(HostDevice(flags), SIZES)


def test_blocks_on_two_threads() -> None:
    check(HostDevice(threads=2), SIZES)


def test_state_and_types(device: Device) -> None:
    types = [TensorType(DType.F32, (3, 70)), TensorType(DType.I32, ()), TensorType(DType.F32, (17000,))]
    tensors = [drawn(type_.numel).reshape(type_.shape) for type_ in types]
    roots, buffers = DeviceRoots(device), [device.put(words) for words in tensors]
    assert roots.tensor_roots(types, buffers) == tensor.tensor_roots(types, tensors)
    assert roots.state_root(types, buffers) == tensor.state_root(types, tensors)


def test_every_bit_counts(device: Device) -> None:
    """Among them those of the last leaf's last word, and of a leaf without a sibling."""
    words, roots = drawn(SUBTREE + 65), DeviceRoots(device)
    seen = {roots.tensor_trees([words.size], [device.put(words)])[0]}
    for place, bit in itertools.product((0, 63, 64, SUBTREE - 1, SUBTREE, SUBTREE + 64), (0, 31)):
        other = words.copy()
        other[place] ^= np.uint32(1 << bit)
        seen.add(roots.tensor_trees([other.size], [device.put(other)])[0])
    assert len(seen) == 13


def test_only_hashes_leave_the_device() -> None:
    copied: list[int] = []

    class Counted(HostDevice):
        def get(self, buffer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
            copied.append(buffer.size)
            return super().get(buffer, shape)

    device = Counted(["-O0"])
    DeviceRoots(device).tensor_trees([70_000, 5, 64], [device.put(drawn(words)) for words in (70_000, 5, 64)])
    assert copied == [3 * 8]


def test_refusals_of_roots(device: Device) -> None:
    roots = DeviceRoots(device)
    with pytest.raises(ProtocolError, match="at least one word"):
        roots.tensor_trees([0], [device.empty(0)])
    with pytest.raises(ProtocolError, match="1 tensors were given for 0 types"):
        roots.tensor_roots([], [device.empty(1)])
    assert roots.tensor_trees([], []) == []
