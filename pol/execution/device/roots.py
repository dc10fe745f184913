"""Roots of tensors in a device's memory: only hashes leave it (docs/spec/commitments.md, "Tensor")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pol.commitments import merkle
from pol.commitments.keccak import HASH_SIZE
from pol.commitments.tensor import ListTag, list_root, root_over_tree
from pol.errors import ProtocolError
from pol.execution.device.device import NAME, Buffer, Device, Kernel
from pol.graph.tensor_type import TensorType

_HASH_WORDS, _LEAF_WORDS = HASH_SIZE // 4, 64
_SUBTREE_DEPTH = 8
_SUBTREE = 1 << _SUBTREE_DEPTH
"""Nodes that one block reduces to one."""
_DEEPEST = 40


def _kernel(leaves: bool) -> Kernel:
    source = f"""
POL_KERNEL({NAME}, {_SUBTREE}, Word* out, const Word* data, const Word* pads, Long number) {{
    hash_subtrees<{str(leaves).lower()}>(out, data, pads, number, block);
}}
POL_END
"""
    return Kernel(source, _SUBTREE, 1)


LEAF_TREES, NODE_TREES = _kernel(leaves=True), _kernel(leaves=False)
"""One hash for each 256 leaves of data, and for each 256 hashes."""


class DeviceRoots:
    """Hashes tensors where they are: 32 bytes of each are copied to the host.

    Raises OperationalError if the kernels can't be compiled.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        device.load([LEAF_TREES, NODE_TREES])
        pads = b"".join(merkle.pad_root(height) for height in range(_DEEPEST))
        self._pads = device.put(np.frombuffer(pads, "<u4"))

    def tensor_trees(self, sizes: Sequence[int], buffers: Sequence[Buffer]) -> list[bytes]:
        """The tree over the leaves of each buffer, of this many words; ProtocolError if a buffer has none."""
        if min(sizes, default=1) < 1:
            raise ProtocolError("a tensor is at least one word")
        trees = self._device.empty(max(1, len(sizes)) * _HASH_WORDS)
        for number, (words, buffer) in enumerate(zip(sizes, buffers, strict=True)):
            self._reduce(buffer, words, self._device.part(trees, number * _HASH_WORDS))
        joined = self._device.get(trees, (max(1, len(sizes)), _HASH_WORDS))
        return [tree.tobytes() for tree in joined[: len(sizes)]]

    def tensor_roots(self, types: Sequence[TensorType], buffers: Sequence[Buffer]) -> list[bytes]:
        """The roots of tensors; ProtocolError if there are more or fewer than types."""
        if len(types) != len(buffers):
            raise ProtocolError(f"{len(buffers)} tensors were given for {len(types)} types")
        trees = self.tensor_trees([type_.numel for type_ in types], buffers)
        return [root_over_tree(type_, tree) for type_, tree in zip(types, trees, strict=True)]

    def state_root(self, types: Sequence[TensorType], buffers: Sequence[Buffer]) -> bytes:
        """The root of a state: the tensors of all slots in program order. Raises as `tensor_roots`."""
        return list_root(ListTag.STATE, self.tensor_roots(types, buffers))

    def _reduce(self, data: Buffer, words: int, tree: Buffer) -> None:
        """Leave the tree over the leaves of ``data`` in ``tree``; each launch takes eight levels off."""
        kernel, number, nodes, height = LEAF_TREES, words, -(-words // _LEAF_WORDS), 0
        while True:
            blocks = -(-nodes // _SUBTREE)
            out = tree if blocks == 1 else self._device.empty(blocks * _HASH_WORDS)
            pads = self._device.part(self._pads, height * _HASH_WORDS)
            self._device.launch(kernel, [out, data, pads], number, blocks)
            if blocks == 1:
                return
            kernel, data, number, nodes, height = NODE_TREES, out, blocks, blocks, height + _SUBTREE_DEPTH
