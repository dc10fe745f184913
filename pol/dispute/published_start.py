"""The first position of a dispute about published traces (docs/spec/dispute.md#published-traces)."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth, tree
from pol.commitments.program_hash import NODE_TAG
from pol.commitments.published_traces import PublishedStep, traces_root
from pol.commitments.tensor import ListTag, list_root_over_tree, root_over_tree
from pol.dispute.agreed_facts import AtNode, AtState, AtStep, AtTrace, Replayed
from pol.dispute.disputed_claim import PublishedClaim
from pol.dispute.moves import IllegalMove
from pol.dispute.openings import WrongInclusionProof, require_branch
from pol.dispute.packed_bytes import PackedReader
from pol.dispute.position import HASH_BITS, Level, Position, Side
from pol.dispute.program_header import ProgramHeader
from pol.dispute.rules import lay_open
from pol.errors import ProtocolError

MAX_STEPS = 2**32 - 1


class ShownPart(IntEnum):
    """The part of a claim that is shown."""

    NODE = 1
    LEAF = 2
    STATE = 3


def start_published(claim: PublishedClaim, header: bytes, payload: bytes, bits: int = HASH_BITS) -> Position:
    """The position after the challenger's opening.

    Args:
        claim: what is disputed.
        header: of its program.
        payload: what is shown, and then what the challenger opens.
        bits: levels of a tree that one move opens.

    Raises:
        IllegalMove: bytes are missing, or what is opened leads to what it should differ from.
        WrongInclusionProof: what is shown does not stand in what was published.
        ProtocolError: the header is another program's, or the segment is none.
    """
    counts = ProgramHeader.decode(header, claim.program)
    if not 0 < claim.steps <= MAX_STEPS or claim.first_step + claim.steps >= 1 << 64:
        raise ProtocolError(f"{claim.steps} steps from step {claim.first_step} on cannot be published")
    reader = PackedReader(payload)
    what, index = reader.number(1), reader.number(4)
    shown = _step(claim, reader, index)
    facts = AtStep(
        Replayed(claim.id, claim.program, claim.constants),
        end=claim.end,
        pre=shown.pre if index else claim.start,
        step=claim.first_step + index,
    )
    if what == ShownPart.STATE:
        claimed = _step(claim, reader, index + 1).pre if index + 1 < claim.steps else claim.end
        return _state(AtState(facts, shown.trace), counts.slots, claimed, reader.rest(), bits)
    if what not in (ShownPart.NODE, ShownPart.LEAF):
        raise IllegalMove(f"part {what} of a claim cannot be shown")
    return _node(AtTrace(facts, shown.trace, depth(counts.nodes)), counts, what == ShownPart.LEAF, reader, bits)


def _step(claim: PublishedClaim, reader: PackedReader, index: int) -> PublishedStep:
    step, siblings = PublishedStep(*reader.hashes(2)), reader.hashes(depth(claim.steps))
    if index >= claim.steps or traces_root(claim.steps, climb(step.hash, index, siblings)) != claim.traces:
        raise WrongInclusionProof(f"step {index} of the segment was not published like that")
    return step


def _node(trace: AtTrace, counts: ProgramHeader, is_leaf: bool, reader: PackedReader, bits: int) -> Position:
    number, height, (root,) = reader.number(4), depth(counts.nodes), reader.hashes(1)
    require_branch(root, number, reader.hashes(height), counts.nodes, trace.root, f"node {number}")
    siblings, descriptor = reader.hashes(height), reader.sized()
    leaf = keccak256(NODE_TAG + descriptor)
    require_branch(leaf, number, siblings, counts.nodes, counts.nodes_tree, f"node {number}")
    facts = AtNode(trace, descriptor, number)
    type_ = facts.node.type
    level = Level.LEAF if is_leaf or type_.leaves == 1 else Level.LEAVES
    p = Position(level, Side.CHALLENGER, facts, height=depth(type_.leaves), count=type_.numel, bits=bits)
    if not is_leaf:
        return lay_open(p, reader.rest(), root)
    at, (claimed,) = reader.number(8), reader.hashes(1)
    siblings = reader.hashes(depth(type_.leaves))
    if at >= type_.leaves or root_over_tree(type_, climb(claimed, at, siblings)) != root:
        raise WrongInclusionProof(f"leaf {at} of node {number} was not published like that")
    # The rules compare the tensor's root if an output has a single leaf.
    return lay_open(replace(p, lo=at, height=0), reader.rest(), root if type_.leaves == 1 else claimed)


def _state(facts: AtState, slots: int, claimed: bytes, payload: bytes, bits: int) -> Position:
    p = Position(Level.STATE, Side.CHALLENGER, facts, height=depth(slots), count=slots, bits=bits)
    p = lay_open(p, payload, b"")
    if list_root_over_tree(ListTag.STATE, slots, tree(p.row)) == claimed:
        raise IllegalMove("the children hash to the state that was claimed; there is nothing to dispute about it")
    return p
