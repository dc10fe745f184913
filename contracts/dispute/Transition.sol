// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_NODE, TAG_SLOT, TAG_STATE} from "../commitments/MerkleBranch.sol";
import {Descriptor, Header, NodeOutline, SlotView} from "./Descriptor.sol";
import {FrameHash, StepFacts} from "./FrameHash.sol";
import {MovePayload} from "./MovePayload.sol";
import {Level, Part, Position} from "./Position.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";
import {OpeningSize} from "./OpeningSize.sol";

/// @title Transition
/// @notice The rules by which a move leads from a position and a picked part to the next position
/// (docs/spec/dispute.md, Moves): no storage, no clocks, no players. Positions come with their opening; all bytes of a
/// move that follow its witness are read here.
library Transition {
    using PackedReader for Cursor;

    /// @notice The move does not belong to level `level`, or not to a part of this size.
    error WrongLevel(Level level);
    /// @notice The facts are not those that both sides agree on.
    error WrongFrame();
    /// @notice What was opened is not what the mover is bound to.
    error WrongOpening();
    /// @notice A descriptor does not stand where the program has to have it.
    error WrongDescriptor();
    /// @notice The produced root does not stand in the trace.
    error WrongTrace();

    /// @notice The next opening of the same kind, below the picked part; but for subtrees and steps, see `SubtreeMoves`
    /// and `StepMoves`.
    function answer(Position memory p, Part memory part, bytes calldata payload, uint256 width)
        internal
        pure
        returns (Position memory next)
    {
        Level level = p.level;
        (next.level, next.count, next.lo) = (level, p.count, part.lo);
        next.frame = p.frame;
        if (level == Level.TERMS || level == Level.SUM_SLOTS || level == Level.SUM_LEAVES) {
            next.hi = part.hi;
            if (part.hi - part.lo == 1) revert WrongLevel(level);
            if (level == Level.TERMS) {
                MovePayload.openTerms(next, payload, part.agreed, part.claimed);
            } else {
                MovePayload.openSums(next, payload, part.claimed, width);
            }
            return next;
        }
        // Below children of height 0 there are leaves only; those of higher ones are answered in `SubtreeMoves`.
        if (level != Level.LEAVES) revert WrongLevel(level);
        next.level = Level.LEAF;
        if (MovePayload.openLeaf(next, payload) == part.claimed) revert MovePayload.Agreed();
    }

    /// @notice The node whose output is disputed, and the mover's own output.
    function describe(Position memory p, Part memory part, Cursor memory rest, uint256 width)
        internal
        pure
        returns (Position memory next)
    {
        if (p.level != Level.NODES || p.height != OpeningSize.of_(p.height, width)) revert WrongLevel(p.level);
        StepFacts memory facts = FrameHash.readStep(rest);
        // The picks before this one lead from the step's frame to this frame.
        bytes32 frame = facts.frame;
        uint256 height = MerkleBranch.depth(facts.header.nodes);
        while (height > p.height) {
            frame = FrameHash.pick(frame, rest.hash(), height);
            height -= OpeningSize.of_(height, width);
        }
        if (frame != p.frame) revert WrongFrame();
        bytes calldata descriptor = descriptorAt(rest, TAG_NODE, part.lo, facts.header.nodes, facts.header.nodesTree);
        NodeOutline memory node = Descriptor.outline(descriptor);
        bytes32 tree = openOutput(next, node.output.elements, remainder(rest), width);
        if (MerkleBranch.tensorRoot(descriptor[node.output.begin:node.output.end], tree) == part.claimed) {
            revert MovePayload.Agreed();
        }
        frame = FrameHash.pick(frame, p.opening, p.height);
        // The casts fit: see `outline`.
        next.frame = FrameHash.node(
            frame, keccak256(descriptor), uint32(part.lo), uint64(node.terms), node.init, uint8(node.instructions)
        );
    }

    /// @notice The mover agrees with the whole trace, and opens the state after the step that it had said itself.
    function openState(Position memory p, Cursor memory rest, uint256 width)
        internal
        pure
        returns (Position memory next)
    {
        if (p.level != Level.NODES || p.lo != 0 || p.height != MerkleBranch.depth(p.count)) {
            revert WrongLevel(p.level);
        }
        StepFacts memory facts = FrameHash.readStep(rest);
        if (facts.frame != p.frame) revert WrongFrame();
        bytes calldata payload = remainder(rest);
        next.level = Level.STATE;
        next.count = facts.header.slots;
        next.height = MerkleBranch.depth(next.count);
        next.frame = FrameHash.pair(p.frame, p.opening);
        MovePayload.openSubtree(next, payload, width);
        bytes32 end = MerkleBranch.listRoot(TAG_STATE, facts.header.slots, next.opening);
        if (end != facts.end) revert WrongOpening();
    }

    /// @notice The disputed element's fold, or its body if the fold has one term.
    function unfold(Position memory p, Part memory part, Cursor memory rest)
        internal
        pure
        returns (Position memory next)
    {
        if (p.level != Level.LEAF) revert WrongLevel(p.level);
        (bytes32 frame, uint64 terms, uint32 init, uint8 instructions) = _readNode(rest);
        if (frame != p.frame) revert WrongFrame();
        bytes calldata payload = remainder(rest);
        frame = FrameHash.element(frame, uint64(part.lo));
        if (terms > 1) {
            next.level = Level.TERMS;
            next.hi = terms;
            next.frame = frame;
            MovePayload.openTerms(next, payload, bytes32(uint256(init)), part.claimed);
        } else {
            _enterBody(next, FrameHash.body(frame, 0, init), instructions, payload, part.claimed);
        }
    }

    /// @notice The results of all instructions in the disputed term.
    function openBody(Position memory p, Part memory part, Cursor memory rest)
        internal
        pure
        returns (Position memory next)
    {
        if (p.level != Level.TERMS || part.hi - part.lo != 1) revert WrongLevel(p.level);
        (bytes32 frame,,, uint8 instructions) = _readNode(rest);
        frame = FrameHash.element(frame, uint64(rest.number(8)));
        if (frame != p.frame) revert WrongFrame();
        bytes calldata payload = remainder(rest);
        frame = FrameHash.body(frame, uint64(part.lo), uint32(uint256(part.agreed)));
        _enterBody(next, frame, instructions, payload, part.claimed);
    }

    /// @notice The slot whose sum is disputed, and the mover's sums of its leaves.
    /// @return isCounted False if the slot belongs to another component: its sum is zero.
    function describeSlot(Position memory p, Part memory part, Cursor memory rest, uint256 width)
        internal
        pure
        returns (bool isCounted, Position memory next)
    {
        if (p.level != Level.SUM_SLOTS || part.hi - part.lo != 1) revert WrongLevel(p.level);
        (Header memory header, uint8 component, bytes32 frame) = FrameHash.readSum(rest);
        if (frame != p.frame) revert WrongFrame();
        bytes calldata descriptor = descriptorAt(rest, TAG_SLOT, part.lo, header.slots, header.slotsTree);
        SlotView memory slot = Descriptor.slot(descriptor);
        if (slot.component != component) {
            rest.finish();
            return (false, next);
        }
        next.level = Level.SUM_LEAVES;
        next.hi = Descriptor.leaves(slot.tensor.elements);
        next.frame = FrameHash.slot(frame, uint32(part.lo), keccak256(descriptor));
        MovePayload.openSums(next, remainder(rest), part.claimed, width);
        return (true, next);
    }

    /// @notice What the step's trace has at the producer of the picked slot.
    function produced(Position memory p, Part memory part, Cursor memory rest, uint256 width)
        internal
        pure
        returns (bytes32 root)
    {
        if (p.level != Level.STATE || p.height != OpeningSize.of_(p.height, width)) revert WrongLevel(p.level);
        StepFacts memory facts = FrameHash.readStep(rest);
        bytes32 trace = rest.hash();
        if (FrameHash.pair(facts.frame, trace) != p.frame) revert WrongFrame();
        Header memory header = facts.header;
        bytes calldata descriptor = descriptorAt(rest, TAG_SLOT, part.lo, header.slots, header.slotsTree);
        root = rest.hash();
        bytes32[] calldata branch = rest.hashes(MerkleBranch.depth(header.nodes));
        rest.finish();
        uint256 producer = Descriptor.slot(descriptor).producer;
        if (MerkleBranch.climbIn(root, producer, branch, header.nodes) != trace) revert WrongTrace();
    }

    /// @notice What has not been read yet: a payload comes last. It stays unread.
    function remainder(Cursor memory rest) internal pure returns (bytes calldata data) {
        (uint256 next, uint256 end) = (rest.next, rest.end);
        assembly ("memory-safe") {
            // A cursor never passes its end.
            data.offset := next
            data.length := sub(end, next)
        }
    }

    function _enterBody(
        Position memory next,
        bytes32 frame,
        uint8 instructions,
        bytes calldata payload,
        bytes32 claimed
    ) private pure {
        if (instructions < 2) revert WrongLevel(Level.BODY);
        next.level = Level.BODY;
        next.count = instructions;
        next.frame = frame;
        MovePayload.openBody(next, payload, claimed);
    }

    /// @notice The children of a tensor's tree, or its only leaf; the tree's root.
    function openOutput(Position memory next, uint256 elements, bytes calldata payload, uint256 width)
        internal
        pure
        returns (bytes32)
    {
        next.count = elements;
        uint256 leaves = Descriptor.leaves(elements);
        if (leaves == 1) {
            next.level = Level.LEAF;
            return MovePayload.openLeaf(next, payload);
        }
        next.level = Level.LEAVES;
        next.height = MerkleBranch.depth(leaves);
        MovePayload.openSubtree(next, payload, width);
        return next.opening;
    }

    /// @notice Reads `branch || u16 length || descriptor`, which stands at `index` in the program.
    function descriptorAt(Cursor memory rest, uint8 tag, uint256 index, uint256 count, bytes32 tree)
        internal
        pure
        returns (bytes calldata descriptor)
    {
        bytes32[] calldata branch = rest.hashes(MerkleBranch.depth(count));
        descriptor = rest.slice(rest.number(2));
        if (MerkleBranch.climbIn(MerkleBranch.tagged(tag, descriptor), index, branch, count) != tree) {
            revert WrongDescriptor();
        }
    }

    /// @dev Reads `previous frame || H(descriptor) || u32 node || u64 terms || u32 init || u8 instructions`.
    function _readNode(Cursor memory rest)
        private
        pure
        returns (bytes32 frame, uint64 terms, uint32 init, uint8 instructions)
    {
        bytes32 before = rest.hash();
        bytes32 descriptor = rest.hash();
        uint32 node = uint32(rest.number(4));
        (terms, init, instructions) = (uint64(rest.number(8)), uint32(rest.number(4)), uint8(rest.number(1)));
        frame = FrameHash.node(before, descriptor, node, terms, init, instructions);
    }
}
