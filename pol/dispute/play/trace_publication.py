"""Published traces: an asserter publishes them beside the end, and a challenger shows the first lie in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pol.commitments.merkle import branch, depth, tree
from pol.commitments.published_traces import PublishedStep, traces_root
from pol.commitments.tensor import root_over_tree
from pol.dispute.agreed_facts import AtNode, AtState, AtStep, AtTrace, Replayed
from pol.dispute.disputed_claim import PublishedClaim
from pol.dispute.play.execution_evidence import SegmentTrace, leaf_bytes
from pol.dispute.play.honest_players import NothingToDispute, first_difference, opened_by
from pol.dispute.position import HASH_BITS, Level, Position, Side
from pol.dispute.published_start import ShownPart
from pol.errors import ProtocolError
from pol.graph.tensor_type import TensorType


@dataclass(frozen=True)
class Publication:
    """The published traces of a segment."""

    steps: tuple[PublishedStep, ...]
    row: Callable[[int], Sequence[bytes]]
    """The node roots of step ``s`` of the segment, as published."""
    leaves: Callable[[int, int], bytes] | None = None
    """The joined leaf hashes of node ``n``'s output at step ``s`` of the segment, if they are known."""

    @cached_property
    def root(self) -> bytes:
        """The root that the claim names."""
        return traces_root(len(self.steps), tree([step.hash for step in self.steps]))

    def node_roots(self, s: int, nodes: int) -> Sequence[bytes]:
        """The node roots of step ``s``.

        Raises:
            ProtocolError: they are not those of the published trace: dispute the claim as a replay instead.
        """
        row = self.row(s)
        if len(row) != nodes or tree(row) != self.steps[s].trace:
            raise ProtocolError(f"the node roots of step {s} of the segment were not published: dispute its end only")
        return row

    def leaves_of(self, s: int, node: int, type_: TensorType, root: bytes) -> bytes | None:
        """The joined leaf hashes of a node's output; None if none are offered, or others than those of its root.

        A dispute with leaf hashes that don't hash to the published root would be lost by the side that is right.
        """
        if self.leaves is None:
            return None
        joined = self.leaves(s, node)
        hashes = [joined[at : at + 32] for at in range(0, len(joined), 32)]
        is_whole = len(joined) == 32 * type_.leaves and root_over_tree(type_, tree(hashes)) == root
        return joined if is_whole else None


def publish(trace: SegmentTrace, with_leaves: bool = False) -> Publication:
    """The traces of a segment, in one pass over it.

    Args:
        trace: the asserter's execution.
        with_leaves: whether the leaf hashes of all outputs can be asked for too; they are computed again then.
    """
    steps, rows = [], []
    for step in range(trace.first_step, trace.first_step + trace.steps):
        rows.append(tuple(trace.node_roots(step)))
        steps.append(PublishedStep(trace.state_root(step), tree(rows[-1])))
    leaves = (lambda s, node: trace.output_leaves(trace.first_step + s, node)) if with_leaves else None
    return Publication(tuple(steps), rows.__getitem__, leaves)


def show_first_lie(
    trace: SegmentTrace, publication: Publication, claim: PublishedClaim, bits: int = HASH_BITS
) -> bytes:
    """The payload with which a challenger begins a dispute: the first lie, and its own version of it.

    Args:
        trace: the challenger's execution of the same steps.
        publication: what the asserter has published.
        claim: what is disputed.
        bits: levels of a tree that one move opens.

    Raises:
        NothingToDispute: all that was published is right.
        ProtocolError: what was published cannot be shown.
    """
    first, published = claim.first_step, publication.steps
    if publication.root != claim.traces:
        raise ProtocolError("these are not the traces that the claim names: dispute its end only")
    ends = [step.pre for step in published[1:]] + [claim.end]
    # Only the trace before the first wrong state is compared; all traces if no state is wrong.
    wrong = [s for s, claimed in enumerate(ends) if trace.state_root(first + s + 1) != claimed][:1]
    for s in wrong or range(len(published)):
        if tree(trace.node_roots(first + s)) != published[s].trace:
            return _node(trace, publication, first, s, bits)
    if not wrong:
        raise NothingToDispute("every published trace is right, and so is the end")
    s = wrong[0]
    following = b"" if s + 1 == len(published) else _step(publication, s + 1)
    slots = len(trace.program.slots)
    at = AtState(_at(first + s, publication, s), published[s].trace)
    p = Position(Level.STATE, Side.CHALLENGER, at, height=depth(slots), count=slots, bits=bits)
    return _begun(ShownPart.STATE, publication, s) + following + opened_by(trace, p)


def _node(trace: SegmentTrace, publication: Publication, first: int, s: int, bits: int) -> bytes:
    program, step = trace.program, first + s
    row = publication.node_roots(s, len(program.nodes))
    number = first_difference(b"".join(trace.node_roots(step)), b"".join(row), 32)
    assert number is not None, "the two rows have different roots"
    node = program.nodes[number]
    descriptor, type_ = node.encode(), node.type
    shown = number.to_bytes(4, "big") + row[number] + b"".join(branch(row, number))
    shown += b"".join(trace.commitment.node_branch(number)) + len(descriptor).to_bytes(2, "big") + descriptor
    leaves = publication.leaves_of(s, number, type_, row[number]) if type_.leaves > 1 else None
    if leaves is not None:
        at = first_difference(trace.output_leaves(step, number), leaves, 32)
        assert at is not None, "leaf hashes of different roots differ"
        shown += at.to_bytes(8, "big") + leaves[32 * at : 32 * at + 32] + b"".join(branch(leaves, at))
        return _begun(ShownPart.LEAF, publication, s) + shown + leaf_bytes(trace.outputs(step)[number], at)
    at_node = AtNode(AtTrace(_at(step, publication, s), tree(row), depth(len(row))), descriptor, number)
    level = Level.LEAF if type_.leaves == 1 else Level.LEAVES
    p = Position(level, Side.CHALLENGER, at_node, height=depth(type_.leaves), count=type_.numel, bits=bits)
    return _begun(ShownPart.NODE, publication, s) + shown + opened_by(trace, p)


def _begun(what: ShownPart, publication: Publication, s: int) -> bytes:
    return bytes([what]) + s.to_bytes(4, "big") + _step(publication, s)


def _step(publication: Publication, s: int) -> bytes:
    step = publication.steps[s]
    return step.pre + step.trace + b"".join(branch([step.hash for step in publication.steps], s))


def _at(step: int, publication: Publication, s: int) -> AtStep:
    """The facts about a step that `opened_by` reads."""
    return AtStep(Replayed(bytes(32), bytes(32), bytes(32)), bytes(32), publication.steps[s].pre, step)
