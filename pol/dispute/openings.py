"""One word of a committed tensor, shown with the branches that prove where it stands (docs/spec/dispute.md)."""

from dataclasses import dataclass

from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth
from pol.commitments.tensor import ListTag, list_root_over_tree, root_over_tree
from pol.dispute.facts import AtSubtree
from pol.dispute.position import LEAF_BYTES
from pol.errors import ProtocolError
from pol.graph.types import TensorType


class WrongInclusionProof(ProtocolError):
    """Opened bytes do not hash to the commitment; the contract reverts on it."""


@dataclass(frozen=True)
class Opening:
    """A 256-byte leaf of a tensor inside a list of tensors: a state, the constants, or agreed nodes of a trace."""

    list_count: int
    """Tensors in the list; 0 for nodes, whose number is agreed."""
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
    if not 0 <= position < opening.list_count or len(opening.list_branch) != depth(opening.list_count):
        raise WrongInclusionProof(f"the opening of {what} is not one of a list that holds it")
    above = climb(_tensor_root(opening, tensor, leaf_index, what), position, list(opening.list_branch))
    if list_root_over_tree(tag, opening.list_count, above) != root:
        raise WrongInclusionProof(f"the opening of {what} does not lead to its commitment")


def require_node_opening(
    opening: Opening, picks: tuple[AtSubtree, ...], node: int, number: int, tensor: TensorType, leaf_index: int
) -> None:
    """Check that an opening shows a leaf of node ``number``, which is agreed when ``node`` is disputed.

    Raises:
        WrongInclusionProof: it does not.
    """
    what, agreed = f"node {number}", agreed_root(picks, node, number)
    if opening.list_count or len(opening.list_branch) != agreed.height:
        raise WrongInclusionProof(f"the branch of {what} in the trace has the wrong length")
    above = climb(
        _tensor_root(opening, tensor, leaf_index, what), number % (1 << agreed.height), list(opening.list_branch)
    )
    if above != agreed.root:
        raise WrongInclusionProof(f"the opening of {what} does not lead to the agreed trace")


def agreed_root(picks: tuple[AtSubtree, ...], node: int, number: int) -> AtSubtree:
    """The pick that made node ``number`` agreed: the smallest subtree with both nodes, in different children."""
    if number >= node:
        raise WrongInclusionProof(f"node {node} reads node {number}, which isn't before it: the program is invalid")
    return next(pick for pick in reversed(picks) if number >> pick.height == node >> pick.height)


def _tensor_root(opening: Opening, tensor: TensorType, leaf_index: int, what: str) -> bytes:
    if len(opening.leaf) != LEAF_BYTES:
        raise WrongInclusionProof(f"the leaf of {what} has {len(opening.leaf)} bytes, expected {LEAF_BYTES}")
    if len(opening.leaf_branch) != depth(tensor.leaves):
        raise WrongInclusionProof(f"the branch of {what} has the wrong length")
    tree = climb(leaf_hash(opening.leaf), leaf_index, list(opening.leaf_branch))
    return root_over_tree(tensor, tree)
