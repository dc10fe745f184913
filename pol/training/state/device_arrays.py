"""Arrays whose trees a device has hashed, where their tensors are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from pol.commitments.array import Array
from pol.execution.device.open_device import is_gpu, open_device
from pol.execution.device.roots import DeviceRoots
from pol.execution.device.tensor_words import buffer_of
from pol.training.state.tensors import of_tensor

LEAST_BYTES = 1 << 16
"""Smaller tensors are hashed here while a device would still be asked."""


def hashed_on(name: str, least: int = LEAST_BYTES) -> Callable[[Tensor, str], Array]:
    """What takes the bytes of a tensor, as `of_tensor`, with its tree if the device holds it.

    Raises:
        ProtocolError: there is no such name.
        OperationalError: the device can't be used.
    """
    device = open_device(name)
    roots, holder = DeviceRoots(device), "cuda" if is_gpu(name) else "cpu"

    def take(tensor: Tensor, path: str) -> Array:
        array = of_tensor(tensor, path)
        if tensor.device.type != holder or array.type.nbytes < least:
            return array
        (tree,) = roots.tensor_trees([-(-array.type.nbytes // 4)], [buffer_of(tensor)])
        return replace(array, tree=tree)

    return take
