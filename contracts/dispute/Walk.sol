// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    LEAF_BYTES,
    LEAF_WORDS,
    MerkleBranch,
    TAG_LEAF,
    TAG_NODE,
    TAG_SLOT,
    TAG_STATE,
    TAG_TRACE
} from "../commitments/MerkleBranch.sol";
import {Descriptor, Header, NodeOutline, SlotView} from "./Descriptor.sol";
import {Distance} from "./Distance.sol";
import {Openings} from "./Opening.sol";
import {Level, Position} from "./Position.sol";

/// @title Walk
/// @notice The rules by which a move changes a position (docs/spec/dispute.md): no storage, no clocks, no players.
/// A rule changes exactly the fields that the specification names. `pol.dispute.rules` is its mirror.
library Walk {
    /// @notice The move does not belong to level `level`.
    error WrongLevel(Level level);
    /// @notice The payload has `actual` bytes instead of `expected`.
    error WrongPayloadLength(uint256 actual, uint256 expected);
    /// @notice What was opened or described does not hash to what is disputed.
    error WrongOpening();
    /// @notice The payload is not what the asserter opened.
    error NotOpened();
    /// @notice Pick `index` does not exist; there are `count`.
    error NoSuchPart(uint256 index, uint256 count);
    /// @notice The leaf has bytes other than zero past the end of its tensor.
    error DirtyLeaf();
    /// @notice A descriptor does not stand where the program has to have it.
    error WrongDescriptor();

    /// @dev Children of an opening of hashes or sums: 16, four levels of a tree.
    uint256 private constant HASH_ARITY = 16;
    uint256 private constant OPENED_HEIGHT = 4;
    /// @dev Parts of an opening of accumulators.
    uint256 private constant VALUE_ARITY = 64;
    uint256 private constant HASH_BYTES = 32;
    uint256 private constant WORD_BYTES = 4;
    uint256 private constant HEADER_BYTES = 112;

    /// @notice The first position of a challenge to a replay.
    /// @param header Of the program: later moves know the number of nodes and the tree of their descriptors from the position.
    function startReplay(Header memory header, uint64 firstStep, uint64 steps, bytes32 start, bytes32 end)
        internal
        pure
        returns (Position memory p)
    {
        p.level = Level.STEPS;
        p.count = header.nodes;
        p.descriptor = header.nodesTree;
        p.lo = firstStep;
        p.hi = firstStep + steps;
        p.agreed = start;
        p.claimed = end;
        if (steps == 1) _enterTrace(p);
    }

    /// @notice The first position of a challenge to a sum of distances.
    function startSum(uint32 slots, uint8 component, bytes32 x, bytes32 y, uint256 sum)
        internal
        pure
        returns (Position memory p)
    {
        p.level = slots == 1 ? Level.SUM_SLOT : Level.SUM_SLOTS;
        p.hi = slots;
        p.claimed = bytes32(sum);
        p.pre = x;
        p.trace = y;
        p.node = component;
    }

    /// @notice The asserter shows what lies under the disputed commitment.
    /// @param program Hash of the step program; looked at on STATE only.
    function open(Position memory p, bytes calldata payload, bytes32 program) internal pure {
        Level level = p.level;
        bytes calldata opened = payload;
        if (level == Level.TRACE) {
            p.trace = _openRoot(p, opened, TAG_TRACE);
        } else if (level == Level.STATE) {
            if (payload.length < HEADER_BYTES) revert WrongPayloadLength(payload.length, HEADER_BYTES);
            opened = payload[HEADER_BYTES:];
            p.count = Descriptor.header(payload[:HEADER_BYTES], program).slots;
            if (_openRoot(p, opened, TAG_STATE) != p.claimed) revert WrongOpening();
        } else if (level == Level.NODES || level == Level.LEAVES || level == Level.SLOTS) {
            if (_childrenRoot(p, opened) != p.claimed) revert WrongOpening();
        } else if (level == Level.STEPS || level == Level.TERMS) {
            _requireLength(opened, (_parts(p) - 1) * (level == Level.STEPS ? HASH_BYTES : WORD_BYTES));
        } else if (level == Level.LEAF) {
            _openLeaf(p, opened);
        } else if (level == Level.BODY) {
            uint256 length = WORD_BYTES * uint256(p.instructions);
            _requireLength(opened, length);
            if (bytes32(uint256(uint32(bytes4(opened[length - WORD_BYTES:])))) != p.claimed) revert WrongOpening();
        } else if (level == Level.SUM_SLOTS || level == Level.SUM_LEAVES) {
            _openSums(p, opened);
        } else {
            revert WrongLevel(level);
        }
        p.opening = keccak256(opened);
    }

    /// @notice The challenger names the first part of an opening that it disagrees with.
    /// @param payload What the asserter opened (children only on STATE); empty on BODY.
    function pick(Position memory p, uint256 index, bytes calldata payload) internal pure {
        Level level = p.level;
        if (level == Level.BODY) {
            _requireLength(payload, 0);
            if (index >= p.instructions) revert NoSuchPart(index, p.instructions);
            p.level = Level.ONE_STEP;
            p.instruction = uint8(index);
            return;
        }
        if (keccak256(payload) != p.opening) revert NotOpened();
        p.opening = 0;
        if (level == Level.STEPS || level == Level.TERMS) _pickPart(p, index, payload);
        else if (level == Level.SUM_SLOTS || level == Level.SUM_LEAVES) _pickSum(p, index, payload);
        else if (level == Level.LEAF) _pickWord(p, index, payload);
        else _pickChild(p, index, payload);
    }

    /// @notice The challenger agrees with the whole trace, but not with the state that is claimed after the step.
    function pickState(Position memory p) internal pure {
        if (p.level != Level.TRACE) revert WrongLevel(p.level);
        p.level = Level.STATE;
        p.opening = 0;
    }

    /// @notice The asserter shows the disputed node's descriptor and the tree of its output.
    function describe(Position memory p, bytes32[] calldata branch, bytes calldata descriptor, bytes32 tree)
        internal
        pure
    {
        if (p.level != Level.NODE) revert WrongLevel(p.level);
        bytes32 root = MerkleBranch.climbIn(MerkleBranch.tagged(TAG_NODE, descriptor), p.node, branch, p.count);
        if (root != p.descriptor) revert WrongDescriptor();
        NodeOutline memory node = Descriptor.outline(descriptor);
        if (MerkleBranch.tensorRoot(descriptor[node.output.begin:node.output.end], tree) != p.claimed) {
            revert WrongOpening();
        }
        uint256 leaves = Descriptor.leaves(node.output.elements);
        // The casts below fit: see `outline`.
        p.level = leaves == 1 ? Level.LEAF : Level.LEAVES;
        p.claimed = tree;
        p.count = uint32(leaves);
        p.lo = 0;
        p.hi = uint64(node.output.elements);
        p.height = uint8(MerkleBranch.depth(leaves));
        p.descriptor = keccak256(descriptor);
        p.terms = uint64(node.terms);
        p.init = node.init;
        p.instructions = uint8(node.instructions);
    }

    /// @notice The asserter shows the descriptor of the slot that a disputed sum belongs to.
    /// @return isCounted False if the slot belongs to another component: its sum is zero and the dispute ends.
    function describeSlot(Position memory p, Header memory header, bytes32[] calldata branch, bytes calldata descriptor)
        internal
        pure
        returns (bool isCounted)
    {
        if (p.level != Level.SUM_SLOT) revert WrongLevel(p.level);
        SlotView memory slot = slotAt(header, p.lo, branch, descriptor);
        if (slot.component != p.node) return false;
        uint256 leaves = Descriptor.leaves(slot.tensor.elements);
        p.level = leaves == 1 ? Level.SUM_LEAF : Level.SUM_LEAVES;
        p.element = p.lo;
        p.count = uint32(leaves);
        p.lo = 0;
        p.hi = uint64(leaves);
        p.descriptor = keccak256(descriptor);
        return true;
    }

    /// @notice The slot descriptor that stands at `index` in the program.
    function slotAt(Header memory header, uint256 index, bytes32[] calldata branch, bytes calldata descriptor)
        internal
        pure
        returns (SlotView memory)
    {
        bytes32 root = MerkleBranch.climbIn(MerkleBranch.tagged(TAG_SLOT, descriptor), index, branch, header.slots);
        if (root != header.slotsTree) revert WrongDescriptor();
        return Descriptor.slot(descriptor);
    }

    /// @dev The top of a whole tree over `count` tensors, and the commitment that it fixes.
    function _openRoot(Position memory p, bytes calldata children, uint8 tag) private pure returns (bytes32) {
        p.height = uint8(MerkleBranch.depth(p.count));
        return MerkleBranch.listRoot(tag, p.count, _childrenRoot(p, children));
    }

    /// @dev The root over the children that begin before the end of the tree, exactly, and padding after them.
    function _childrenRoot(Position memory p, bytes calldata children) private pure returns (bytes32) {
        uint256 opened = _opened(p);
        uint256 height = p.height - opened;
        uint256 existing = (p.count - _base(p) + (uint256(1) << height) - 1) >> height;
        uint256 shown = uint256(1) << opened;
        _requireLength(children, HASH_BYTES * (existing < shown ? existing : shown));
        return MerkleBranch.root(children, opened, height);
    }

    function _openLeaf(Position memory p, bytes calldata leaf) private pure {
        _requireLength(leaf, LEAF_BYTES);
        if (MerkleBranch.tagged(TAG_LEAF, leaf) != p.claimed) revert WrongOpening();
        for (uint256 offset = WORD_BYTES * _words(p); offset < LEAF_BYTES; offset += 32) {
            // A slice of less than 32 bytes is filled up with zeros.
            if (bytes32(leaf[offset:]) != 0) revert DirtyLeaf();
        }
    }

    function _openSums(Position memory p, bytes calldata sums) private pure {
        uint256 parts = _parts(p);
        _requireLength(sums, HASH_BYTES * parts);
        uint256 total = 0;
        for (uint256 i = 0; i < parts; ++i) {
            total = Distance.add(total, uint256(_hashAt(sums, i)));
        }
        if (bytes32(total) != p.claimed) revert WrongOpening();
    }

    function _pickChild(Position memory p, uint256 index, bytes calldata children) private pure {
        if (index >= children.length / HASH_BYTES) revert NoSuchPart(index, children.length / HASH_BYTES);
        uint256 height = p.height - _opened(p);
        uint256 lo = _base(p) + (index << height);
        p.height = uint8(height);
        p.lo = uint64(lo);
        p.claimed = _hashAt(children, index);
        if (p.level == Level.LEAVES) {
            if (height == 0) p.level = Level.LEAF;
        } else if (p.level == Level.TRACE || p.level == Level.NODES) {
            p.level = height == 0 ? Level.NODE : Level.NODES;
            if (height == 0) p.node = uint32(lo);
        } else {
            p.level = height == 0 ? Level.SLOT : Level.SLOTS;
            if (height == 0) p.element = uint64(lo);
        }
    }

    function _pickWord(Position memory p, uint256 index, bytes calldata leaf) private pure {
        if (index >= _words(p)) revert NoSuchPart(index, _words(p));
        p.element = uint64(LEAF_WORDS * p.lo + index);
        p.claimed = bytes32(uint256(Openings.word(leaf, index)));
        p.agreed = bytes32(uint256(p.init));
        p.term = 0;
        if (p.terms == 1) {
            _enterBody(p);
        } else {
            p.level = Level.TERMS;
            p.lo = 0;
            p.hi = p.terms;
        }
    }

    /// @dev States along the steps, accumulators along a fold: `agreed` and `claimed` close in on one part.
    function _pickPart(Position memory p, uint256 index, bytes calldata inner) private pure {
        bool isSteps = p.level == Level.STEPS;
        uint256 last = _narrow(p, index);
        if (index > 0) p.agreed = isSteps ? _hashAt(inner, index - 1) : _wordAt(inner, index - 1);
        if (index < last) p.claimed = isSteps ? _hashAt(inner, index) : _wordAt(inner, index);
        if (p.hi - p.lo > 1) return;
        if (isSteps) {
            _enterTrace(p);
        } else {
            p.term = p.lo;
            _enterBody(p);
        }
    }

    function _pickSum(Position memory p, uint256 index, bytes calldata sums) private pure {
        _narrow(p, index);
        p.claimed = _hashAt(sums, index);
        if (p.hi - p.lo == 1) p.level = p.level == Level.SUM_SLOTS ? Level.SUM_SLOT : Level.SUM_LEAF;
    }

    /// @dev Sets the range to its part `index`; gives the index of the last part.
    function _narrow(Position memory p, uint256 index) private pure returns (uint256 last) {
        uint256 parts = _parts(p);
        if (index >= parts) revert NoSuchPart(index, parts);
        (uint256 lo, uint256 size) = (p.lo, uint256(p.hi) - p.lo);
        p.lo = uint64(lo + index * size / parts);
        p.hi = uint64(lo + (index + 1) * size / parts);
        return parts - 1;
    }

    function _enterTrace(Position memory p) private pure {
        p.level = Level.TRACE;
        p.step = p.lo;
        p.pre = p.agreed;
        p.agreed = 0;
    }

    function _enterBody(Position memory p) private pure {
        p.level = p.instructions > 1 ? Level.BODY : Level.ONE_STEP;
        if (p.instructions == 1) p.instruction = 0;
    }

    /// @dev Into how many parts an opening cuts the range.
    function _parts(Position memory p) private pure returns (uint256) {
        uint256 arity = p.level == Level.TERMS ? VALUE_ARITY : HASH_ARITY;
        uint256 size = p.hi - p.lo;
        return size < arity ? size : arity;
    }

    /// @dev First leaf of the disputed subtree; `lo` is still a step where a whole tree is disputed.
    function _base(Position memory p) private pure returns (uint256) {
        return p.level == Level.TRACE || p.level == Level.STATE ? 0 : p.lo;
    }

    /// @dev How many levels of the disputed subtree an opening shows.
    function _opened(Position memory p) private pure returns (uint256) {
        return p.height < OPENED_HEIGHT ? p.height : OPENED_HEIGHT;
    }

    /// @dev Words of the tensor in the disputed leaf.
    function _words(Position memory p) private pure returns (uint256) {
        uint256 rest = p.hi - LEAF_WORDS * p.lo;
        return rest < LEAF_WORDS ? rest : LEAF_WORDS;
    }

    /// @dev The row has been opened, so its length is right, and the index has been compared with it.
    function _hashAt(bytes calldata row, uint256 index) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            hash := calldataload(add(row.offset, mul(HASH_BYTES, index)))
        }
    }

    function _wordAt(bytes calldata row, uint256 index) private pure returns (bytes32) {
        return bytes32(uint256(uint32(bytes4(row[WORD_BYTES * index:]))));
    }

    function _requireLength(bytes calldata payload, uint256 expected) private pure {
        if (payload.length != expected) revert WrongPayloadLength(payload.length, expected);
    }
}
