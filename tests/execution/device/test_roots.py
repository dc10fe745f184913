"""Roots that a device computes are those of pol.commitments, at every size at which a tree changes its form."""

import itertools

import numpy as np
import pytest

from pol.commitments import tensor
from pol.errors import ProtocolError
from pol.execution.device.device import Device
from pol.execution.device.host import HostDevice
from pol.execution.device.roots import DeviceRoots
from pol.graph.tensor_type import DType, TensorType

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


def test_refusals(device: Device) -> None:
    roots = DeviceRoots(device)
    with pytest.raises(ProtocolError, match="at least one word"):
        roots.tensor_trees([0], [device.empty(0)])
    with pytest.raises(ProtocolError, match="1 tensors were given for 0 types"):
        roots.tensor_roots([], [device.empty(1)])
    assert roots.tensor_trees([], []) == []
