"""One word of a committed tensor, shown with the branches that prove where it stands (docs/spec/dispute.md)."""

from dataclasses import dataclass

from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth
from pol.commitments.tensor import ListTag, list_root_over_tree, root_over_tree
from pol.dispute.position import LEAF_WORDS
from pol.errors import ProtocolError
from pol.graph.types import TensorType

LEAF_BYTES = 4 * LEAF_WORDS


class WrongInclusionProof(ProtocolError):
    """Opened bytes do not hash to the commitment; the contract reverts on it."""


@dataclass(frozen=True)
class Opening:
    """A 256-byte leaf of a tensor inside a list of tensors."""

    list_count: int
    leaf: bytes
    leaf_branch: tuple[bytes, ...]
    list_branch: tuple[bytes, ...]


def leaf_hash(leaf: bytes) -> bytes:
    """Hash of 256 bytes of data."""
    return keccak256(b"\x00" + leaf)


def word_in_leaf(leaf: bytes, index: int) -> int:
    """The ``index``-th little-endian word of a leaf."""
    return int.from_bytes(leaf[4 * index : 4 * index + 4], "little")


def require_branch(leaf: bytes, index: int, branch: tuple[bytes, ...], count: int, root: bytes, what: str) -> None:
    """Check that ``leaf`` stands at ``index`` of a tree over ``count`` leaves.

    Raises:
        WrongInclusionProof: it does not, or the branch has the wrong length.
    """
    if len(branch) != depth(count):
        raise WrongInclusionProof(f"the branch of {what} has {len(branch)} hashes, expected {depth(count)}")
    if not 0 <= index < count:
        raise WrongInclusionProof(f"{what} would stand at position {index}, past the end")
    if climb(leaf, index, list(branch)) != root:
        raise WrongInclusionProof(f"{what} does not stand at position {index} of what was committed")


def require_opening(
    opening: Opening, tag: ListTag, root: bytes, position: int, tensor: TensorType, leaf_index: int, what: str
) -> None:
    """Check that an opening shows leaf ``leaf_index`` of tensor ``position`` of the list committed to by ``root``.

    Raises:
        WrongInclusionProof: it does not.
    """
    if len(opening.leaf) != LEAF_BYTES:
        raise WrongInclusionProof(f"the leaf of {what} has {len(opening.leaf)} bytes, expected {LEAF_BYTES}")
    if len(opening.leaf_branch) != depth(tensor.leaves) or len(opening.list_branch) != depth(opening.list_count):
        raise WrongInclusionProof(f"a branch of {what} has the wrong length")
    tree = climb(leaf_hash(opening.leaf), leaf_index, list(opening.leaf_branch))
    above = climb(root_over_tree(tensor, tree), position, list(opening.list_branch))
    if position >= opening.list_count or list_root_over_tree(tag, opening.list_count, above) != root:
        raise WrongInclusionProof(f"the opening of {what} does not lead to its commitment")
