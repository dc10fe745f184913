// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_NODE} from "../commitments/MerkleBranch.sol";
import {Descriptor, NodeOutline} from "./Descriptor.sol";
import {FrameHash, StepFacts} from "./FrameHash.sol";
import {MovePayload} from "./MovePayload.sol";
import {Level, Position} from "./Position.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";
import {Transition} from "./Transition.sol";

/// @title PublishedTrace
/// @notice The move `show` (docs/spec/dispute.md, Published traces): where a side has published the trace that lies
/// open, branches name its first lie at once. Reverts if what is shown does not stand in that trace, or if the mover
/// opens what it shows.
library PublishedTrace {
    using PackedReader for Cursor;

    /// @notice What is shown is neither a node nor a leaf.
    error UnknownPart(uint256 what);
    /// @notice What is shown does not stand in what was published.
    error NotPublished();

    uint256 private constant NODE = 1;
    uint256 private constant LEAF = 2;

    /// @notice The position below what is shown.
    /// @param p A whole trace lies open.
    /// @param what 1: a node; 2: a leaf of one.
    /// @param rest Behind the opening.
    /// @param width Levels that an opening shows at most.
    /// @return next The mover's own output, or its own leaf.
    /// @return shown What follows the descriptor, with the payload.
    function show(Position memory p, uint256 what, Cursor memory rest, uint256 width)
        internal
        pure
        returns (Position memory next, bytes calldata shown)
    {
        if (p.level != Level.NODES || p.lo != 0 || p.height != MerkleBranch.depth(p.count)) {
            revert Transition.WrongLevel(p.level);
        }
        StepFacts memory facts = FrameHash.readStep(rest);
        if (facts.frame != p.frame) revert Transition.WrongFrame();
        uint256 node;
        (node, shown) = _lookAhead(Cursor(rest.next, rest.end), p.height);
        (bytes calldata tensorType, bytes32 root) = _enterNode(next, p, rest, node, facts.header.nodesTree);
        if (what == NODE) _openNode(next, rest, tensorType, root, width);
        else if (what == LEAF) _openLeaf(next, rest, tensorType, root);
        else revert UnknownPart(what);
    }

    /// @dev The number of the node, behind `branch || u16 length || descriptor`, and all from there on.
    function _lookAhead(Cursor memory ahead, uint256 height)
        private
        pure
        returns (uint256 node, bytes calldata shown)
    {
        // Only the place behind them is of interest.
        // slither-disable-next-line unused-return
        ahead.hashes(height);
        // slither-disable-next-line unused-return
        ahead.slice(ahead.number(2));
        shown = Transition.remainder(ahead);
        node = ahead.number(4);
    }

    /// @dev Reads `branch || u16 length || descriptor || u32 node || root || branch`: a node where the program has it,
    /// and its root where the trace has it. `next.frame` becomes the node frame, `next.count` the elements of the
    /// output.
    function _enterNode(Position memory next, Position memory p, Cursor memory rest, uint256 index, bytes32 nodes)
        private
        pure
        returns (bytes calldata tensorType, bytes32 root)
    {
        bytes calldata descriptor = Transition.descriptorAt(rest, TAG_NODE, index, p.count, nodes);
        NodeOutline memory node = Descriptor.outline(descriptor);
        tensorType = descriptor[node.output.begin:node.output.end];
        next.count = node.output.elements;
        // The casts fit: see `outline`.
        next.frame = FrameHash.node(
            FrameHash.pick(p.frame, p.opening, p.height),
            keccak256(descriptor),
            uint32(rest.number(4)),
            uint64(node.terms),
            node.init,
            uint8(node.instructions)
        );
        root = rest.hash();
        if (MerkleBranch.climbIn(root, index, rest.hashes(p.height), p.count) != p.opening) revert NotPublished();
    }

    /// @dev The mover's own output of a node: its children, or its only leaf.
    function _openNode(
        Position memory next,
        Cursor memory rest,
        bytes calldata tensorType,
        bytes32 root,
        uint256 width
    ) private pure {
        bytes32 tree = Transition.openOutput(next, next.count, Transition.remainder(rest), width);
        if (MerkleBranch.tensorRoot(tensorType, tree) == root) revert MovePayload.Agreed();
    }

    /// @dev Reads `u64 leaf || leaf hash || branch`, and the mover's own leaf.
    function _openLeaf(Position memory next, Cursor memory rest, bytes calldata tensorType, bytes32 root) private pure {
        next.level = Level.LEAF;
        next.lo = rest.number(8);
        bytes32 claimed = rest.hash();
        uint256 leaves = Descriptor.leaves(next.count);
        bytes32[] calldata branch = rest.hashes(MerkleBranch.depth(leaves));
        bytes32 tree = MerkleBranch.climbIn(claimed, next.lo, branch, leaves);
        if (MerkleBranch.tensorRoot(tensorType, tree) != root) revert NotPublished();
        if (MovePayload.openLeaf(next, Transition.remainder(rest)) == claimed) revert MovePayload.Agreed();
    }
}
