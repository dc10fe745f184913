"""The rule for each move: ``apply(position, move)`` is the whole referee, except for its clocks.

A move first narrows the position down to the part that it picks, then lays the mover's own version open. The contract
`DisputeGame` is the same function; tests compare the two, state hash by state hash. Clocks run on chain only
(contracts/dispute/ClockExpiry.sol), where `timeout` ends a dispute whose side on turn has no time left.

Every rule states its rationale: the lie, or the waste, that it rules out.
"""

from __future__ import annotations

from dataclasses import replace

from pol.claims.distance import saturating_sum
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth, leaf_hash, tree
from pol.commitments.program_hash import NODE_TAG, SLOT_TAG
from pol.commitments.tensor import ListTag, list_root_over_tree, root_over_tree
from pol.dispute.agreed_facts import (
    AtElement,
    AtNode,
    AtSlot,
    AtState,
    AtStep,
    AtSubtree,
    AtTerm,
    AtTrace,
    Replayed,
    Summed,
    node_of,
    step_of,
)
from pol.dispute.disputed_claim import ProgramHeader
from pol.dispute.moves import (
    Answer,
    Describe,
    DescribeSlot,
    DisputeEnded,
    IllegalMove,
    Move,
    OpenBody,
    OpenState,
    ProveSlot,
    ProveStep,
    ProveSum,
    Show,
    Unfold,
    Upheld,
)
from pol.dispute.one_step import prove_slot, prove_step, prove_sum
from pol.dispute.openings import WrongInclusionProof, require_branch, word_in_leaf
from pol.dispute.position import SUMS, TREES, Level, Position
from pol.graph.step_program import Slot
from pol.graph.tensor_type import LEAF_WORDS


def start(position: Position, claimed: bytes, payload: bytes) -> Position:
    """The challenger opens its own version of a claim.

    Rationale: saying that a claim is false costs nothing; a challenger must commit to another value.
    """
    return lay_open(position, payload, claimed)


def apply(position: Position, move: Move) -> Position | DisputeEnded:
    """The position after ``move`` of the side on turn, or the end of the game.

    Raises:
        IllegalMove: the move breaks a rule; the contract would revert.
        WrongInclusionProof: something shown is not what was committed to; the contract would revert.
    """
    match move:
        case Answer(index, payload):
            # Rationale: at sixteen parts a move, a disagreement about 2^32 values is narrowed down in eight moves.
            return lay_open(answered(position, index), payload, picked(position, index))
        case Describe():
            return _describe(position, move)
        case OpenState(header, payload):
            return _open_state(position, header, payload)
        case Show():
            return _show(position, move)
        case Unfold(index, payload):
            # Rationale: a fold may have millions of terms, of which the chain executes 64 at most.
            return lay_open(unfolded(position, index), payload, picked(position, index))
        case OpenBody(index, payload):
            # Rationale: the chain executes one instruction, so the results of all instructions are told apart.
            return lay_open(opened_body(position, index), payload, picked(position, index))
        case DescribeSlot():
            return _describe_slot(position, move)
        case ProveStep(index=index):
            # Rationale: one scalar operation on agreed operands has one result, and the chain computes it itself.
            require_level(position, Level.LEAF, Level.TERMS, Level.BODY)
            return prove_step(position, index, picked(position, index), move)
        case ProveSlot(index=index):
            # Rationale: the trace is agreed, so the root that the slot's node produced is agreed as well.
            require_level(position, Level.STATE)
            require_children(position, leaves=True)
            return prove_slot(position, index, picked(position, index), move)
        case ProveSum(index=index):
            # Rationale: both states are agreed, and the chain adds up 64 squared differences in one transaction.
            require_level(position, Level.SUM_LEAVES)
            return prove_sum(position, index, picked(position, index), move)


# --- picking ----------------------------------------------------------------------------------------------------------


def picked(position: Position, index: int) -> bytes:
    """The other side's claim about part ``index``: a root, a sum, or a word.

    Rationale: padding is fixed, so no disagreement about it can exist.

    Raises:
        IllegalMove: there is no such part.
    """
    if position.level is Level.LEAF:
        if not 0 <= index < LEAF_WORDS or LEAF_WORDS * position.lo + index >= position.count:
            raise IllegalMove(f"word {index} lies past the end of the tensor")
        return word_in_leaf(position.opened, index).to_bytes(4, "big")
    if not 0 <= index < len(position.items):
        raise IllegalMove(f"part {index} does not exist; {len(position.items)} lie open")
    return position.items[index]


def answered(position: Position, index: int) -> Position:
    """The position at which an answer that picks part ``index`` opens.

    Rationale: the pick is the first difference, so everything before it is agreed, and is hashed into the frame.
    """
    p = replace(position, opened=b"")
    picked(position, index)
    if position.level in TREES:
        require_children(position, leaves=position.level is Level.LEAVES and position.opened_height == position.height)
        height = position.height - position.opened_height
        p = replace(p, height=height, lo=position.lo + (index << height))
        if position.level is Level.NODES:
            return replace(p, facts=_pick_nodes(position))
        return replace(p, level=Level.LEAF) if position.level is Level.LEAVES and height == 0 else p
    require_level(position, Level.STEPS, Level.TERMS, *SUMS)
    ends = position.boundaries
    p = replace(p, lo=ends[index], hi=ends[index + 1])
    if position.level in (Level.STEPS, Level.TERMS):
        p = replace(p, agreed=[position.agreed, *position.items][index])
    if p.hi - p.lo > 1:
        return p
    require_level(position, Level.STEPS)
    assert isinstance(p.facts, Replayed)
    facts = AtStep(p.facts, end=position.items[index], pre=p.agreed, step=p.lo)
    return replace(p, level=Level.NODES, facts=facts, lo=0, hi=0, height=depth(p.count), agreed=b"")


def described(position: Position, index: int, descriptor: bytes) -> Position:
    """The position at which a description of the picked node opens.

    Rationale: the descriptor enters the frame, so no later move can show another one.
    """
    require_level(position, Level.NODES)
    require_children(position, leaves=True)
    picked(position, index)
    facts = AtNode(_pick_nodes(position), descriptor, position.lo + index)
    leaves = facts.node.type.leaves
    level = Level.LEAF if leaves == 1 else Level.LEAVES
    return replace(
        position, level=level, facts=facts, opened=b"", height=depth(leaves), count=facts.node.type.numel, lo=0, hi=0
    )


def shown(
    position: Position, node: int, root: bytes, branch: tuple[bytes, ...], descriptor: bytes, leaf: int | None
) -> Position:
    """The position at which a shown node opens, or one leaf of it; ``branch`` leads from its root to the trace's.

    Rationale: the trace that lies open is one hash, so a branch picks from all of its nodes at once.
    """
    require_level(position, Level.NODES)
    if not isinstance(position.facts, AtStep):
        raise IllegalMove("a node can be shown only where the whole trace lies open")
    trace = AtTrace(position.facts, position.opening, position.height, node, root, branch)
    facts = AtNode(trace, descriptor, node)
    type_ = facts.node.type
    is_leaf = leaf is not None or type_.leaves == 1
    height = 0 if is_leaf else depth(type_.leaves)
    level = Level.LEAF if is_leaf else Level.LEAVES
    return replace(position, level=level, facts=facts, opened=b"", height=height, count=type_.numel, lo=leaf or 0, hi=0)


def unfolded(position: Position, index: int) -> Position:
    """The position at which an unfolded element opens: its fold, or the body of a map.

    Rationale: the fold begins with the node's own initial accumulator, which nobody can choose.
    """
    require_level(position, Level.LEAF)
    picked(position, index)
    assert isinstance(position.facts, AtNode)
    node = position.facts.node
    element = AtElement(position.facts, LEAF_WORDS * position.lo + index)
    p = replace(position, opened=b"", height=0, count=0, lo=0, hi=0)
    if node.terms > 1:
        return replace(p, level=Level.TERMS, facts=element, hi=node.terms, agreed=node.init.to_bytes(4, "big"))
    return _body(p, AtTerm(element, 0, node.init))


def opened_body(position: Position, index: int) -> Position:
    """The position at which the body of one term opens.

    Rationale: only of one term are the accumulator before it and that after it both on the table.
    """
    require_level(position, Level.TERMS)
    picked(position, index)
    ends = position.boundaries
    if ends[index + 1] - ends[index] > 1:
        raise IllegalMove("more than one term is disputed: answer")
    assert isinstance(position.facts, AtElement)
    agreed = [position.agreed, *position.items][index]
    return _body(position, AtTerm(position.facts, ends[index], int.from_bytes(agreed, "big")))


def _body(position: Position, facts: AtTerm) -> Position:
    instructions = node_of(facts).instructions
    if instructions == 1:
        raise IllegalMove("the body has one instruction: prove it")
    return replace(
        position, level=Level.BODY, facts=facts, opened=b"", count=instructions, lo=0, hi=0, height=0, agreed=b""
    )


def _pick_nodes(position: Position) -> AtSubtree:
    assert isinstance(position.facts, AtStep | AtSubtree)
    return AtSubtree(position.facts, tuple(position.row), position.height)


def require_level(position: Position, *levels: Level) -> None:
    """Refuse a move that does not belong to where the dispute stands.

    Rationale: a move of another level would read the open bytes as claims that were never made.
    """
    if position.level not in levels:
        raise IllegalMove(f"this move belongs to {levels[0].name}, the dispute is at {position.level.name}")


def require_children(position: Position, leaves: bool) -> None:
    """Refuse a move that does not fit the height of what lies open.

    Rationale: a leaf of a tree has no children, and an inner node is no tensor.
    """
    if (position.opened_height == position.height) != leaves:
        raise IllegalMove(
            "subtrees lie open: answer" if leaves else "leaves of the tree lie open: answer does not lead on"
        )


def _own_header(position: Position, header: bytes) -> ProgramHeader:
    """The header of the disputed program.

    Rationale: its counts and trees decide which branches are accepted, so the header of another program is refused.
    """
    require_level(position, Level.NODES)
    return ProgramHeader.decode(header, step_of(position.facts).before.program)


# --- opening ----------------------------------------------------------------------------------------------------------


def lay_open(position: Position, payload: bytes, claimed: bytes) -> Position:
    """The mover's own version lies open at ``position``, the other side is on turn.

    Rationale: a mover that opens the same value agrees with it, and a dispute about nothing would never end.

    Raises:
        IllegalMove: the payload has the wrong length, or leads to just what the other side had said.
    """
    _require_length(position, payload)
    p = replace(position, opened=payload, turn=position.turn.other)
    if _leads_to(p) == claimed:
        raise IllegalMove("what you open leads to just what the other side said; there is nothing to dispute about it")
    return p


def _require_length(position: Position, payload: bytes) -> None:
    """Refuse an opening of another length than the position asks for.

    Rationale: a part left out could not be picked, and the lie in it would stand.
    """
    if len(payload) != position.expected_bytes:
        raise IllegalMove(f"the opening has {len(payload)} bytes, expected {position.expected_bytes}")


def _leads_to(p: Position) -> bytes | None:
    """The value of the whole that follows from the opened parts; None where nothing is comparable."""
    match p.level:
        case Level.SUM_SLOTS | Level.SUM_LEAVES:
            return saturating_sum([int.from_bytes(s, "big") for s in p.items]).to_bytes(32, "big")
        case Level.STEPS | Level.TERMS | Level.BODY:
            return p.items[-1]
        case Level.NODES:
            return None if isinstance(p.facts, AtStep) else p.opening
        case Level.LEAF:
            words = min(LEAF_WORDS, p.count - LEAF_WORDS * p.lo)
            # Rationale: bytes past the end would make two leaves of one tensor.
            if any(p.opened[4 * words :]):
                raise IllegalMove("the leaf has bytes other than zero past the end of its tensor")
            return _output(p, leaf_hash(p.opened)) if p.count <= LEAF_WORDS else leaf_hash(p.opened)
        case Level.LEAVES:
            assert isinstance(p.facts, AtNode)
            whole = p.height == depth(p.list_length)
            return _output(p, p.opening) if whole else p.opening
        case Level.STATE:
            return p.opening


def _output(p: Position, tree_root: bytes) -> bytes:
    """The root of a whole output: what stands in the trace."""
    return root_over_tree(node_of(p.facts).node.type, tree_root)


def _describe(position: Position, move: Describe) -> Position:
    """Show the descriptor of one node, and open one's own output of it.

    Rationale: the program was committed to before the dispute, so neither side chooses what a node computes.
    """
    header = _own_header(position, move.header)
    after, number = described(position, move.index, move.descriptor), position.lo + move.index
    leaf = keccak256(NODE_TAG + move.descriptor)
    require_branch(leaf, number, move.branch, header.nodes, header.nodes_tree, f"node {number}")
    return lay_open(after, move.payload, picked(position, move.index))


def _open_state(position: Position, header: bytes, payload: bytes) -> Position:
    """Agree with the whole trace, and open the state that one had claimed to follow from it.

    Rationale: a side may execute honestly and still claim another end; the slots show where the two part.
    """
    slots = _own_header(position, header).slots
    if not isinstance(position.facts, AtStep):
        raise IllegalMove("a state can be opened only where the whole trace lies open")
    facts, turn = AtState(position.facts, position.opening), position.turn.other
    p = replace(position, level=Level.STATE, facts=facts, opened=payload, count=slots, height=depth(slots), turn=turn)
    _require_length(p, payload)
    if list_root_over_tree(ListTag.STATE, slots, tree(p.row)) != position.facts.end:
        raise IllegalMove("the children do not hash to the state that you had claimed")
    return p


def _show(position: Position, move: Show) -> Position:
    """Show a node of a published trace, or a leaf of it, where it stands; open one's own version.

    Rationale: whoever knows all node roots finds the first lie without asking for a subtree at a time.
    """
    header, node = _own_header(position, move.header), move.node
    numbers = [leaf.number for leaf in move.leaf]
    leaf_number = numbers[0] if numbers else None
    after = shown(position, node, move.root, move.trace_branch, move.descriptor, leaf_number)
    require_branch(move.root, node, move.trace_branch, header.nodes, position.opening, f"the root of node {node}")
    leaf = keccak256(NODE_TAG + move.descriptor)
    require_branch(leaf, node, move.branch, header.nodes, header.nodes_tree, f"node {node}")
    type_, claimed = node_of(after.facts).node.type, move.root
    for part in move.leaf:
        if part.number >= type_.leaves or len(part.branch) != depth(type_.leaves):
            raise WrongInclusionProof(f"node {node} has no leaf {part.number} with a branch of this length")
        if root_over_tree(type_, climb(part.hash, part.number, list(part.branch))) != move.root:
            raise WrongInclusionProof(f"leaf {part.number} of node {node} was not published like that")
        claimed = part.hash if type_.leaves > 1 else move.root
    return lay_open(after, move.payload, claimed)


def _describe_slot(position: Position, move: DescribeSlot) -> Position | DisputeEnded:
    """Show the descriptor of one slot, and open the sums of its leaves if it belongs to the component.

    Rationale: slots of another component count as zero, so a sum that is claimed for one is refuted at once.
    """
    require_level(position, Level.SUM_SLOTS)
    claimed = picked(position, move.index)
    ends = position.boundaries
    if ends[move.index + 1] - ends[move.index] > 1:
        raise IllegalMove("more than one slot is disputed: answer")
    assert isinstance(position.facts, Summed)
    header, q = ProgramHeader.decode(move.header, position.facts.program), ends[move.index]
    leaf = keccak256(SLOT_TAG + move.descriptor)
    require_branch(leaf, q, move.branch, header.slots, header.slots_tree, f"slot {q}")
    slot = Slot.decode(move.descriptor)
    if slot.component != position.facts.component:
        if move.payload:
            raise IllegalMove("the slot belongs to another component: nothing is opened")
        if not any(claimed):
            raise Upheld(f"slot {q} belongs to another component: its distance is 0, as the other side had said")
        return DisputeEnded(position.turn, f"slot {q} belongs to another component, so its distance is 0")
    facts = AtSlot(position.facts, q, move.descriptor)
    p = replace(position, level=Level.SUM_LEAVES, facts=facts, opened=b"", lo=0, hi=slot.type.leaves)
    return lay_open(p, move.payload, claimed)
