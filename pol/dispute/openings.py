"""Openings: leaves of a committed tensor with the branches that prove their place (docs/spec/dispute.md)."""

from dataclasses import dataclass

from pol.commitments.array import LEAF_SIZE
from pol.commitments.merkle import climb, climb_two, depth, leaf_hash, length_of_two
from pol.commitments.tensor import ListTag, list_root_over_tree, root_over_tree
from pol.dispute.agreed_facts import Pick
from pol.errors import ProtocolError
from pol.graph.tensor_type import TensorType


class WrongInclusionProof(ProtocolError):
    """Opened bytes do not hash to the commitment; the contract reverts on it."""


@dataclass(frozen=True)
class Opening:
    """One leaf, or two adjacent ones, of a tensor in a list: a state, the constants, or agreed nodes of a trace."""

    list_count: int
    """Tensors in the list; 0 for nodes, whose number is agreed."""
    leaf: bytes
    """256 bytes a leaf."""
    leaf_branch: tuple[bytes, ...]
    """The branch in the tensor's tree; of two leaves the result of `branch_of_two`."""
    list_branch: tuple[bytes, ...]


@dataclass(frozen=True)
class ShownLeaf:
    """A leaf of a published output: its place, its hash, and the branch to the output's tree."""

    number: int
    hash: bytes
    branch: tuple[bytes, ...]


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
    opening: Opening, tag: ListTag, root: bytes, position: int, tensor: TensorType, leaves: range, what: str
) -> None:
    """Check that an opening shows these leaves (one or two) of tensor ``position`` of the list with this ``root``.

    Raises:
        WrongInclusionProof: it does not.
    """
    if not 0 <= position < opening.list_count or len(opening.list_branch) != depth(opening.list_count):
        raise WrongInclusionProof(f"the opening of {what} is not one of a list that holds it")
    above = climb(_tensor_root(opening, tensor, leaves, what), position, list(opening.list_branch))
    if list_root_over_tree(tag, opening.list_count, above) != root:
        raise WrongInclusionProof(f"the opening of {what} does not lead to its commitment")


def require_node_opening(
    opening: Opening, picks: tuple[Pick, ...], node: int, number: int, tensor: TensorType, leaves: range
) -> None:
    """Check that an opening shows these leaves (one or two) of node ``number``, agreed when ``node`` is disputed.

    Raises:
        WrongInclusionProof: it does not.
    """
    what, agreed = f"node {number}", agreed_root(picks, node, number)
    if opening.list_count or len(opening.list_branch) != agreed.height:
        raise WrongInclusionProof(f"the branch of {what} in the trace has the wrong length")
    above = climb(_tensor_root(opening, tensor, leaves, what), number % (1 << agreed.height), list(opening.list_branch))
    if above != agreed.root:
        raise WrongInclusionProof(f"the opening of {what} does not lead to the agreed trace")


def agreed_root(picks: tuple[Pick, ...], node: int, number: int) -> Pick:
    """The pick that made node ``number`` agreed: the smallest subtree with both nodes, in different children."""
    if number >= node:
        raise WrongInclusionProof(f"node {node} reads node {number}, which isn't before it: the program is invalid")
    return next(pick for pick in reversed(picks) if number >> pick.height == node >> pick.height)


def _tensor_root(opening: Opening, tensor: TensorType, leaves: range, what: str) -> bytes:
    if len(opening.leaf) != LEAF_SIZE * len(leaves):
        raise WrongInclusionProof(f"{what} shows {len(opening.leaf)} bytes, expected {LEAF_SIZE * len(leaves)}")
    hashes = [leaf_hash(opening.leaf[at : at + LEAF_SIZE]) for at in range(0, len(opening.leaf), LEAF_SIZE)]
    height, siblings = depth(tensor.leaves), list(opening.leaf_branch)
    if len(siblings) != (height if len(leaves) == 1 else length_of_two(leaves.start, height)):
        raise WrongInclusionProof(f"the branch of {what} has the wrong length")
    if len(leaves) == 1:
        return root_over_tree(tensor, climb(hashes[0], leaves.start, siblings))
    return root_over_tree(tensor, climb_two(hashes[0], hashes[1], leaves.start, siblings))
