"""The rule for each move: ``apply(position, move, claim)`` is the whole referee, except for its clocks.

The contract `DisputeGame` is the same function; tests hold the two against each other, hash by hash.
"""

from dataclasses import replace

from pol.commitments.keccak import keccak256
from pol.commitments.merkle import depth, pad_root, tree
from pol.commitments.program import HEADER_SIZE, NODE_TAG, SLOT_TAG
from pol.commitments.tensor import ListTag, list_root_over_tree, root_over_tree
from pol.dispute.arbitration import prove_slot, prove_step, prove_sum
from pol.dispute.header import Header
from pol.dispute.moves import (
    Claim,
    Describe,
    DescribeSlot,
    Ended,
    IllegalMove,
    Move,
    Open,
    Pick,
    PickState,
    ProveSlot,
    ProveStep,
    ProveSum,
)
from pol.dispute.openings import LEAF_BYTES, leaf_hash, require_branch, word_in_leaf
from pol.dispute.position import HASH_ARITY, LEAF_WORDS, VALUE_ARITY, ZERO, Level, Position, enter_trace, parts, word
from pol.graph.node import Node
from pol.graph.step_program import Slot
from pol.verification.distance import saturating_sum

TREE_LEVELS = (Level.TRACE, Level.NODES, Level.LEAVES, Level.STATE, Level.SLOTS)
ROOTS = (Level.TRACE, Level.STATE)
SUM_LEVELS = (Level.SUM_SLOTS, Level.SUM_LEAVES)
ALWAYS_ASSERTER = (Level.NODE, Level.SUM_SLOT, Level.ONE_STEP, Level.SLOT, Level.SUM_LEAF)
OPENED_HEIGHT = 4


def is_asserters_turn(position: Position) -> bool:
    """Whether the asserter has to move: it does until something lies open, and wherever only it can show or prove."""
    return position.level in ALWAYS_ASSERTER or position.opening == ZERO


def apply(position: Position, move: Move, claim: Claim) -> Position | Ended:
    """The position after ``move``, or the end of the game.

    Raises:
        IllegalMove: the move breaks a rule; the contract would revert.
        WrongInclusionProof: something shown is not what was committed to; the contract would revert.
    """
    challengers = isinstance(move, Pick | PickState)
    if challengers == is_asserters_turn(position):
        raise IllegalMove(f"it is the {'asserter' if challengers else 'challenger'}'s turn; wait for its move")
    match move:
        case Open(payload):
            return _open(position, payload, claim)
        case Pick(index, payload):
            return _pick(position, index, payload)
        case PickState():
            _require_level(position, Level.TRACE)
            return replace(position, level=Level.STATE, opening=ZERO)
        case Describe():
            return _describe(position, move)
        case DescribeSlot():
            return _describe_slot(position, move, claim)
        case ProveStep():
            _require_level(position, Level.ONE_STEP)
            return prove_step(position, move, claim)
        case ProveSlot():
            _require_level(position, Level.SLOT)
            return prove_slot(position, move, claim)
        case ProveSum():
            _require_level(position, Level.SUM_LEAF)
            return prove_sum(position, move)


def _require_level(position: Position, *levels: Level) -> None:
    if position.level not in levels:
        raise IllegalMove(f"this move belongs to {levels[0].name}, the dispute is at {position.level.name}")


def _chunks(payload: bytes, size: int, count: int) -> list[bytes]:
    if len(payload) != size * count:
        raise IllegalMove(f"the opening has {len(payload)} bytes, expected {count} x {size}")
    return [payload[i : i + size] for i in range(0, len(payload), size)]


# --- what the asserter opens ------------------------------------------------------------------------------------------


def _open(position: Position, payload: bytes, claim: Claim) -> Position:
    match position.level:
        case Level.STEPS:
            _chunks(payload, 32, min(HASH_ARITY, position.hi - position.lo) - 1)
        case Level.TERMS:
            _chunks(payload, 4, min(VALUE_ARITY, position.hi - position.lo) - 1)
        case Level.BODY:
            if _chunks(payload, 4, position.instructions)[-1] != position.claimed[28:]:
                raise IllegalMove("the last result of the body is not the claimed value")
        case Level.SUM_SLOTS | Level.SUM_LEAVES:
            sums = _chunks(payload, 32, min(HASH_ARITY, position.hi - position.lo))
            if word(saturating_sum([int.from_bytes(s, "big") for s in sums])) != position.claimed:
                raise IllegalMove("the parts do not add up to the claimed sum")
        case Level.LEAF:
            _check_leaf(position, payload)
        case Level.TRACE:
            return _open_root(position, payload, ListTag.TRACE)
        case Level.STATE:
            count = Header.decode(payload[:HEADER_SIZE], claim.program).slots
            return _open_root(replace(position, count=count), payload[HEADER_SIZE:], ListTag.STATE)
        case Level.NODES | Level.LEAVES | Level.SLOTS:
            if _children_root(position, position.lo, payload) != position.claimed:
                raise IllegalMove("the children do not hash to what is disputed")
        case _:
            raise IllegalMove(f"nothing is opened at {position.level.name}")
    return replace(position, opening=keccak256(payload))


def _open_root(position: Position, payload: bytes, tag: ListTag) -> Position:
    """The top of the trace's tree, which fixes the trace, or of the claimed state's."""
    position = replace(position, height=depth(position.count), opening=keccak256(payload))
    root = list_root_over_tree(tag, position.count, _children_root(position, 0, payload))
    if tag is ListTag.TRACE:
        return replace(position, trace=root)
    if root != position.claimed:
        raise IllegalMove("the children do not hash to the disputed state")
    return position


def _check_leaf(position: Position, leaf: bytes) -> None:
    if len(leaf) != LEAF_BYTES or leaf_hash(leaf) != position.claimed:
        raise IllegalMove("the leaf does not hash to the disputed one")
    words = min(LEAF_WORDS, position.hi - LEAF_WORDS * position.lo)
    if any(leaf[4 * words :]):
        raise IllegalMove("the leaf has bytes other than zero past the end of its tensor")


def _children_root(position: Position, first: int, payload: bytes) -> bytes:
    """The root over the children that begin before the end of the tree, exactly, and padding after them."""
    shown = 1 << min(OPENED_HEIGHT, position.height)
    height = position.height - min(OPENED_HEIGHT, position.height)
    existing = min(shown, -(-(position.count - first) // (1 << height)))
    return tree(_chunks(payload, 32, existing) + [pad_root(height)] * (shown - existing))


# --- what the challenger picks ----------------------------------------------------------------------------------------


def _pick(position: Position, index: int, payload: bytes) -> Position:
    if position.level is Level.BODY:
        if not 0 <= index < position.instructions or payload:
            raise IllegalMove(f"pick one of {position.instructions} instructions, with nothing else")
        return replace(position, level=Level.ONE_STEP, instruction=index)
    if keccak256(payload) != position.opening:
        raise IllegalMove("repeat exactly what the asserter opened")
    position = replace(position, opening=ZERO)
    if position.level in TREE_LEVELS:
        return _pick_child(position, index, payload)
    if position.level is Level.LEAF:
        return _pick_element(position, index, payload)
    return _pick_part(position, index, payload)


def _pick_child(position: Position, index: int, payload: bytes) -> Position:
    height = position.height - min(OPENED_HEIGHT, position.height)
    lo = (0 if position.level in ROOTS else position.lo) + (index << height)
    if not 0 <= index < len(payload) // 32:
        raise IllegalMove(f"child {index} does not exist")
    position = replace(position, height=height, lo=lo, claimed=payload[32 * index : 32 * index + 32])
    match position.level:
        case Level.LEAVES:
            return replace(position, level=Level.LEAVES if height else Level.LEAF)
        case Level.TRACE | Level.NODES:
            return replace(position, level=Level.NODES) if height else replace(position, level=Level.NODE, node=lo)
        case _:
            return replace(position, level=Level.SLOTS) if height else replace(position, level=Level.SLOT, element=lo)


def _pick_element(position: Position, index: int, leaf: bytes) -> Position:
    element = LEAF_WORDS * position.lo + index
    if not 0 <= index < LEAF_WORDS or element >= position.hi:
        raise IllegalMove(f"word {index} lies past the end of the tensor")
    position = replace(
        position, element=element, claimed=word(word_in_leaf(leaf, index)), agreed=word(position.init), term=0
    )
    if position.terms > 1:
        return replace(position, level=Level.TERMS, lo=0, hi=position.terms)
    return _enter_body(position)


def _pick_part(position: Position, index: int, payload: bytes) -> Position:
    """Ranges: states along the steps, accumulators along a fold, sums along slots and leaves."""
    arity = VALUE_ARITY if position.level is Level.TERMS else HASH_ARITY
    bounds = parts(position.lo, position.hi, arity)
    if not 0 <= index < len(bounds) - 1:
        raise IllegalMove(f"part {index} does not exist; there are {len(bounds) - 1}")
    lo, hi = bounds[index], bounds[index + 1]
    if position.level in SUM_LEVELS:
        claimed = payload[32 * index : 32 * index + 32]
        position = replace(position, lo=lo, hi=hi, claimed=claimed)
        if hi - lo > 1:
            return position
        return replace(position, level=Level.SUM_SLOT if position.level is Level.SUM_SLOTS else Level.SUM_LEAF)
    size = 4 if position.level is Level.TERMS else 32
    ends = [position.agreed]
    ends += [payload[i : i + size].rjust(32, b"\0") for i in range(0, len(payload), size)]
    ends += [position.claimed]
    position = replace(position, lo=lo, hi=hi, agreed=ends[index], claimed=ends[index + 1])
    if hi - lo > 1:
        return position
    return enter_trace(position) if position.level is Level.STEPS else _enter_body(replace(position, term=lo))


def _enter_body(position: Position) -> Position:
    if position.instructions > 1:
        return replace(position, level=Level.BODY)
    return replace(position, level=Level.ONE_STEP, instruction=0)


# --- what the asserter describes --------------------------------------------------------------------------------------


def _describe(position: Position, move: Describe) -> Position:
    _require_level(position, Level.NODE)
    leaf = keccak256(NODE_TAG + move.descriptor)
    require_branch(leaf, position.node, move.branch, position.count, position.descriptor, f"node {position.node}")
    node = Node.decode(move.descriptor)
    if root_over_tree(node.type, move.tree) != position.claimed:
        raise IllegalMove("the tree does not belong to the disputed tensor")
    height = depth(node.type.leaves)
    return replace(
        position,
        level=Level.LEAVES if height else Level.LEAF,
        claimed=move.tree,
        count=node.type.leaves,
        lo=0,
        hi=node.type.numel,
        height=height,
        descriptor=keccak256(move.descriptor),
        terms=node.terms,
        init=node.init,
        instructions=len(node.body.instructions),
    )


def _describe_slot(position: Position, move: DescribeSlot, claim: Claim) -> Position | Ended:
    _require_level(position, Level.SUM_SLOT)
    header = Header.decode(move.header, claim.program)
    leaf = keccak256(SLOT_TAG + move.descriptor)
    require_branch(leaf, position.lo, move.branch, header.slots, header.slots_tree, f"slot {position.lo}")
    slot = Slot.decode(move.descriptor)
    if slot.component != position.node:
        return Ended(position.claimed == ZERO, "the slot belongs to another component, its sum is zero")
    leaves = slot.type.leaves
    return replace(
        position,
        level=Level.SUM_LEAVES if leaves > 1 else Level.SUM_LEAF,
        element=position.lo,
        count=leaves,
        lo=0,
        hi=leaves,
        descriptor=keccak256(move.descriptor),
    )
